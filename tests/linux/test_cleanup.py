"""Whose a process is, by its variables: what anybody may have set is believed of nothing but a run's id.

What is not gone after its removal is an error.
"""

from pathlib import Path
from types import SimpleNamespace

import pytest

from sentences import raises_sentence
from weighbridge.linux import cleanup
from weighbridge.linux.cleanup import DataFolders, Processes, processes
from weighbridge.model.cleanup import Leftover, OrphanedRun, RunFolders
from weighbridge.model.names import RunId

RUN = RunId("0123456789ab")


@pytest.fixture
def proc(tmp_path: Path) -> Path:
    for number, run in enumerate((RUN, "", "..", "…6789ab", "0123456789AB", RUN), 100):
        folder = tmp_path / str(number)
        folder.mkdir()
        (folder / "environ").write_bytes(f"PATH=/bin\0WEIGHBRIDGE_RUN={run}\0".encode())
        (folder / "comm").write_bytes("benchmark-größe".encode()[:13] + b"\n")
    (tmp_path / "105/environ").write_bytes(b"PATH=/bin\0")
    return tmp_path


def test_only_the_id_of_a_run_names_one(proc: Path):
    assert [(pid, run) for pid, run, _ in processes(proc)] == [(100, RUN)]


def test_a_name_that_is_cut_inside_a_character_is_told(proc: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(cleanup.cgroups, "runs", lambda top: [])
    monkeypatch.setattr(cleanup, "processes", lambda: processes(proc))
    (leftover,) = Processes().find(RunFolders(tmp_path, tmp_path))
    assert leftover == Leftover(RUN, "process", "100 benchmark-gr\N{REPLACEMENT CHARACTER}")


def test_other_users_processes_are_taken_only_where_they_are_known_to_be_the_runs(
    proc: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(cleanup.os, "geteuid", lambda: proc.stat().st_uid + 1)
    assert not [*processes(proc)]
    assert [pid for pid, _, _ in processes(proc, of_all_users=True)] == [100]


def _group(name: str, *, removable: bool) -> SimpleNamespace:
    return SimpleNamespace(
        name=name, thaw_below=lambda: None, kill=lambda: None, pids=lambda: {7, 8}, remove=lambda: removable
    )


def test_processes_that_do_not_end_are_an_error(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    monkeypatch.setattr(cleanup.cgroups, "groups_of", lambda run: [_group(run, removable=False)])
    monkeypatch.setattr(cleanup, "_END_S", 0)
    monkeypatch.setattr(cleanup, "processes_of", lambda run: [7, 9])
    with raises_sentence(OSError):
        Processes().end(OrphanedRun(RUN, tmp_path, tmp_path))


def test_groups_that_stay_are_an_error_and_the_others_are_removed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    removed = []
    groups = [_group("stays", removable=False), _group("goes", removable=True)]
    groups[1].remove = lambda: removed.append("goes") or True
    monkeypatch.setattr(cleanup.cgroups, "groups_of", lambda run: groups)
    monkeypatch.setattr(cleanup.cgroups, "remove_top", lambda *, run_id: removed.append(run_id))
    with raises_sentence(OSError):
        Processes().remove(OrphanedRun(RUN, tmp_path, tmp_path))
    assert removed == ["goes", RUN]


def test_data_that_stays_is_an_error(immutable: set[Path], tmp_path: Path):
    run = OrphanedRun(RUN, tmp_path, tmp_path / "engines" / RUN)
    DataFolders().remove(run)  # there is none
    run.data.mkdir(parents=True)
    immutable.add(run.data)
    with raises_sentence(OSError):
        DataFolders().remove(run)
    immutable.clear()
    DataFolders().remove(run)
    assert not run.data.parent.exists()
