"""Whose a process is, by its variables: what anybody may have set is believed of nothing but a run's id."""

from pathlib import Path

import pytest

from weighbridge.linux import leavings
from weighbridge.linux.leavings import Processes, processes
from weighbridge.model.leavings import Leftover, RunFolders

RUN = "0123456789ab"


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
    monkeypatch.setattr(leavings.cgroups, "runs", lambda top: [])
    monkeypatch.setattr(leavings, "processes", lambda: processes(proc))
    (leftover,) = Processes().find(RunFolders(tmp_path, tmp_path))
    assert leftover == Leftover(RUN, "process", "100 benchmark-gr\N{REPLACEMENT CHARACTER}")


def test_other_users_processes_are_taken_only_where_they_are_known_to_be_the_runs(
    proc: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(leavings.os, "geteuid", lambda: proc.stat().st_uid + 1)
    assert not [*processes(proc)]
    assert [pid for pid, _, _ in processes(proc, everybodys=True)] == [100]
