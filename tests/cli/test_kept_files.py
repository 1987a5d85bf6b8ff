"""Commands read a run from its kept file and write nothing next to it; commands that continue a run refuse it."""

import json
import lzma
from pathlib import Path

import pytest

from weighbridge.store.database import DATABASE

from .command_line import Weighbridge, one_sentence


@pytest.fixture
def kept(run: Path, tmp_path: Path) -> Path:
    """The kept file of a run, alone in a folder."""
    path = tmp_path / "kept" / "my run.sqlite.xz"
    path.parent.mkdir()
    path.write_bytes(lzma.compress((run / DATABASE).read_bytes()))
    return path


@pytest.mark.parametrize(
    "command",
    [
        ["report"],
        ["report", "--all"],
        ["report", "--methods"],
        ["report", "--html", "page.html"],
        ["export", "--csv", "tables"],
        ["kit", "--out", "kit", "--run"],
        ["comment", "--markdown", "comment.md"],
        ["gate", "--budget", "*.redis.throughput<=99%"],
    ],
    ids=" ".join,
)
def test_a_command_reads_a_kept_file(weighbridge: Weighbridge, kept: Path, command: list[str]):
    said = weighbridge(*command, kept)
    assert said.code == 0, said
    assert [each.name for each in kept.parent.iterdir()] == [kept.name]


def test_the_report_is_that_of_the_run_directory(weighbridge: Weighbridge, run: Path, kept: Path):
    one, other = (json.loads(weighbridge("report", place, "--json").out) for place in (run, kept))
    assert other["directory"] == str(kept)
    assert [each["command"] for each in other["next_steps"]] == [None for _ in other["next_steps"]]
    for document in (one, other):
        del document["directory"], document["next_steps"]
    assert one == other


def test_a_kept_file_is_compared_with_its_run(weighbridge: Weighbridge, run: Path, kept: Path):
    said = weighbridge("compare", run, kept, "--json")
    assert said.code == 0, said
    one_sentence(weighbridge("compare", kept, kept), 2)


def test_a_gate_reads_the_earlier_run_from_a_kept_file(weighbridge: Weighbridge, run: Path, kept: Path):
    one_sentence(weighbridge("gate", run, "--against", kept, "--margin", "50%"), 2)


def test_a_history_lists_kept_files_and_a_run_once(weighbridge: Weighbridge, run: Path, kept: Path):
    listed = json.loads(weighbridge("history", kept.parent, "--json").out)
    assert [each["name"] for each in listed["runs"]] == [kept.name]
    run.rename(kept.parent / "run")
    said = weighbridge("history", kept.parent, "--json")
    assert [each["name"] for each in json.loads(said.out)["runs"]] == ["run"]
    assert said.err == f"skipped {kept.name}: it is a copy of run\n"


@pytest.mark.parametrize(
    "command",
    [
        ["explain"],
        ["run", "--yes", "--out"],
        ["run", "first-look", "--yes", "--out"],
        ["durability", "--yes", "--out"],
        ["gate", "--budget", "*.redis.throughput<=99%", "--extend", "1min"],
    ],
    ids=" ".join,
)
def test_a_command_that_measures_refuses_a_kept_file(weighbridge: Weighbridge, kept: Path, command: list[str]):
    content = kept.read_bytes()
    one_sentence(weighbridge(*command, kept), 6)
    assert kept.read_bytes() == content


def test_a_kept_file_that_is_damaged_is_one_sentence(weighbridge: Weighbridge, kept: Path):
    kept.write_bytes(kept.read_bytes()[:500])
    one_sentence(weighbridge("report", kept), 6)
