"""A history reads a run that did not change from the user's cache, with the same result."""

from pathlib import Path

import pytest

from report.made_up_runs import Recipe, make_run
from sentences import raises_sentence
from weighbridge.analysis.analyse import Depth
from weighbridge.errors import RunDirectoryError
from weighbridge.features.gate import primary_run as primary
from weighbridge.features.gate.compared_run import ComparedRun
from weighbridge.features.gate.history_json import history_json
from weighbridge.features.gate.past_runs import history
from weighbridge.features.gate.primary_run import primary_run
from weighbridge.store.run import RunStore


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with two runs, and an empty cache."""
    monkeypatch.setenv("WEIGHBRIDGE_CACHE", str(tmp_path / "cache"))
    for number, factor in enumerate((1.2, 1.5)):
        make_run(tmp_path / f"runs/run{number}", Recipe(costs={"bridge": factor}, blocks=15, seed=number)).close()
    return tmp_path / "runs"


def test_a_run_that_did_not_change_is_not_analysed_again(folder: Path, monkeypatch: pytest.MonkeyPatch):
    first = history_json(history(folder))
    read: list[str] = []
    analysed = primary.read_run

    def noted(store: RunStore, name: str, depth: Depth) -> ComparedRun:
        read.append(store.directory.name)
        return analysed(store, name, depth)

    monkeypatch.setattr(primary, "read_run", noted)
    assert history_json(history(folder)) == first
    assert read == []
    with RunStore(folder / "run1", writable=True) as store:
        store.set_info("version", "another")
    history(folder)
    assert read == ["run1"]


def test_a_file_that_others_can_write_is_not_used(folder: Path, tmp_path: Path):
    first = history_json(history(folder))
    for each in (tmp_path / "cache/history").iterdir():
        each.write_bytes(b"code of a stranger")
        each.chmod(0o666)
    assert history_json(history(folder)) == first


def test_a_damaged_file_of_the_cache_is_one_sentence():
    with raises_sentence(RunDirectoryError):
        primary_run(b"damaged", "run0")


def test_progress_names_every_run(folder: Path):
    seen: list[tuple[int, int, str]] = []
    history(folder, lambda *each: seen.append(each))
    assert seen == [(1, 2, "run0"), (2, 2, "run1")]
