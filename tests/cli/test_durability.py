"""`weighbridge durability`: what it refuses, what it prints and what a run keeps of it."""

import json
from pathlib import Path

import pytest

from documents import fits
from weighbridge.analysis.analyse import analyse
from weighbridge.cli.commands.studies import SchemaDocument
from weighbridge.errors import Interrupted
from weighbridge.features.durability import runner as durability
from weighbridge.features.durability.runner import CheckedPowerCuts
from weighbridge.model.choices import Promise
from weighbridge.model.decisions import LeftOut
from weighbridge.model.power_cut import PowerCut
from weighbridge.store.run import RunStore

from .command_line import Weighbridge, one_sentence

FOUND = CheckedPowerCuts(
    [PowerCut("docker-bridge", Promise.FSYNC, "volume", "synchronous", "lab", 187, 180, 7, 180, 1, 0)],
    [LeftOut(environment="b", kind="qemu", why="its data are on a disk of a machine inside of its host")],
)
INTERRUPTED_S = 7.5


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, list[Promise], float]]:
    """What a check is asked for, which finds what is above."""
    found: list[tuple[str, list[Promise], float]] = []

    def checked(study, promises, seconds, say, keep) -> CheckedPowerCuts:
        found.append((study.file.study, promises, seconds))
        keep(FOUND.checked[0])
        if seconds == INTERRUPTED_S:
            raise Interrupted(2)
        return FOUND

    monkeypatch.setattr(durability, "check_durability", checked)
    return found


def test_what_it_is_to_check_must_be_said(weighbridge: Weighbridge, run: Path):
    one_sentence(weighbridge("durability"), 2)
    one_sentence(weighbridge("durability", "--out", run, "--profile", "here"), 2)
    one_sentence(weighbridge("durability", "--out", "nowhere"), 6)
    one_sentence(weighbridge("durability", "first-look"), 4)


def test_a_run_of_another_study_does_not_get_the_result(weighbridge: Weighbridge, run: Path, asked):
    said = weighbridge("durability", "first-look", "--out", run)
    one_sentence(said, 6)
    assert not asked


def test_a_table_says_what_was_kept_and_what_was_not_checked(weighbridge: Weighbridge, asked):
    said = weighbridge("durability", "first-look", "--promise", "fsync", "--seconds", "1.5")
    assert (said.code, asked) == (0, [("first-look", [Promise.FSYNC], 1.5)])
    told = " ".join(said.out.split())
    assert "claims synchronous, lost 7 of 187 (first: 180; 1 torn)" in told
    assert "b not checked: its data are on a disk of a machine inside of its host" in told
    assert max(map(len, said.out.splitlines())) <= 100


def test_json_has_every_figure_and_the_run_keeps_them(weighbridge: Weighbridge, run: Path, asked):
    said = weighbridge("durability", "--out", run, "--json")
    assert (said.code, asked) == (0, [("first-look", list(Promise), 3.0)])
    fits(SchemaDocument.DURABILITY, json.loads(said.out))
    assert json.loads(said.out) == {
        "version": 1,
        "checked": [
            {
                "environment": "docker-bridge", "promise": "fsync", "storage": "volume", "claimed": "synchronous",
                "host": "lab", "acknowledged": 187, "found": 180, "lost": 7, "first_lost": 180, "torn": 1,
                "displaced": 0, "workload": "", "failure": "", "verdict": "claims more than it keeps",
            }
        ],
        "unchecked": [{"environment": "b", "why": FOUND.unchecked[0].why}],
    }  # fmt: skip
    with RunStore(run) as store:
        assert list(analyse(store).power_cuts) == FOUND.checked


def test_interrupted_it_has_told_and_kept_what_was_known(weighbridge: Weighbridge, run: Path, asked):
    said = weighbridge("durability", "--out", run, "--seconds", INTERRUPTED_S)
    assert (said.code, said.out) == (130, "")
    assert "docker-bridge, write and fsync: claims synchronous, lost 7 of 187" in said.err
    with RunStore(run) as store:
        assert list(analyse(store).power_cuts) == FOUND.checked
