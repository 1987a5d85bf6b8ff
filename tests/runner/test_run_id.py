"""The id in a run directory is checked before anything is removed or ended by it."""

import os
import sqlite3
from pathlib import Path

import pytest

from weighbridge.errors import RunDirectoryError
from weighbridge.runner import clean, living, run, run_lock
from weighbridge.store.run import DATABASE, RunStore
from weighbridge.study.profiles import load

RUN = "0123456789ab"


@pytest.fixture
def interrupted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A run that has begun; any attempt to remove or end what it left is a failure."""
    monkeypatch.setattr(run_lock, "base", lambda: tmp_path / "states")
    monkeypatch.setattr(run, "cache_folder", lambda: tmp_path / "cache")
    monkeypatch.setattr(living, "_bases", lambda: [(run_lock.base(), os.geteuid())])
    monkeypatch.setattr(clean, "discard", lambda dead, kinds: pytest.fail(f"{dead.id} is swept"))
    with RunStore(tmp_path / "run", writable=True) as store:
        store.begin(load("first-look"), {"run_id": RUN, "version": "1"})
    return tmp_path / "run"


def claims(directory: Path, run_id: str) -> None:
    """Let the run say that it has this id."""
    with sqlite3.connect(directory / DATABASE) as file:
        file.execute("UPDATE run SET value = ? WHERE key = 'run_id'", (run_id,))
    file.close()


@pytest.mark.parametrize("hostile", ["{victim}", "..", "../..", "", ".", "0123456789AB", f"{RUN}\n", "x" * 65536])
def test_a_run_id_that_leads_elsewhere_removes_and_ends_nothing(interrupted: Path, tmp_path: Path, hostile: str):
    victim = tmp_path / "victim"
    victim.mkdir()
    (victim / "precious").write_text("kept")
    claims(interrupted, hostile.replace("{victim}", str(victim)))
    with pytest.raises(RunDirectoryError) as refused:
        run.run_study(None, interrupted, None, lambda _: None)  # type: ignore[arg-type]
    assert "\n" not in str(refused.value) and len(str(refused.value)) < 1000
    assert (victim / "precious").read_text() == "kept" and len([*victim.iterdir()]) == 1
    assert not (tmp_path / "states").exists()


def test_a_run_without_an_id_is_not_continued(interrupted: Path):
    with sqlite3.connect(interrupted / DATABASE) as file:
        file.execute("DELETE FROM run WHERE key = 'run_id'")
    file.close()
    with pytest.raises(RunDirectoryError):
        run.run_study(None, interrupted, None, lambda _: None)  # type: ignore[arg-type]


def test_the_id_of_a_living_run_of_another_user_is_not_continued(
    interrupted: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(living, "holder", lambda run_id: tmp_path / "theirs" / run_id)

    class Quiet:
        def say(self, text: str) -> None: ...

    with pytest.raises(RunDirectoryError, match="theirs"):
        run.run_study(None, interrupted, Quiet(), lambda _: None)  # type: ignore[arg-type]
