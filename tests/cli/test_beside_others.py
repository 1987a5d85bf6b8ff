"""A second run on a machine on which one measures: refused, or insisted on."""

from pathlib import Path

import pytest
from typer.testing import CliRunner

from weighbridge.cli.app import app
from weighbridge.errors import Unavailable
from weighbridge.runner import living, planned


@pytest.fixture(autouse=True)
def _another_measures(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("WEIGHBRIDGE_ALLOW_CONCURRENT")
    monkeypatch.setattr(living, "others", lambda own="": {"0123456789ab": "/runs/first"})


def test_it_is_refused_by_a_sentence_that_names_the_run(ready: list[tuple], tmp_path: Path):
    argv = ["run", "first-look", "--profile", "here", "--yes", "--out", str(tmp_path / "run")]
    refused = CliRunner().invoke(app, argv).exception
    assert isinstance(refused, Unavailable) and ready == []
    assert "0123456789ab in /runs/first" in str(refused) and "--allow-concurrent" in str(refused)
    assert len(str(refused).splitlines()) == 1


@pytest.mark.parametrize(
    "argv",
    [["weigh", "--", "true"], ["replicate", "docker-networks", "--yes"], ["calibrate"], ["doctor", "--noise"]],
    ids=lambda argv: argv[0],
)
def test_so_is_every_command_that_measures(
    ready: list[tuple], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, argv: list[str]
):
    """That of a gate, which runs more blocks, is in test_gate.py."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(planned, "userland_problems", lambda _: iter(()))
    refused = CliRunner().invoke(app, argv).exception
    assert isinstance(refused, Unavailable) and "0123456789ab in /runs/first" in str(refused)
    assert ready == [] and not any(tmp_path.iterdir())


INSISTING = ["--allow-concurrent", "--beside-others", "WEIGHBRIDGE_ALLOW_CONCURRENT", "WEIGHBRIDGE_BESIDE_OTHERS"]


@pytest.mark.parametrize("way", INSISTING)
def test_who_insists_measures_beside_it(
    ready: list[tuple], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, way: str
):
    insist = [way] if way.startswith("--") else []
    if not insist:
        monkeypatch.setenv(way, "yes")
    argv = ["run", "first-look", "--profile", "here", "--yes", "--out", str(tmp_path / "run"), *insist]
    ended = CliRunner().invoke(app, argv)
    assert ended.exit_code == 0, ended.output
    assert [directory for _, directory in ready] == [tmp_path / "run"]
