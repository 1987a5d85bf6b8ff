"""What LXC leaves of a run's containers is removed, and nothing of another run's."""

from pathlib import Path

import pytest

from weighbridge.linux import lxc_locks
from weighbridge.linux.lxc_locks import LxcLocks
from weighbridge.model.cleanup import OrphanedRun
from weighbridge.model.names import RunId

RUN, OTHER = RunId("0123456789ab"), RunId("ba9876543210")


@pytest.fixture
def engines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(lxc_locks, "LOCKS", tmp_path / "run/lxc/lock")
    (tmp_path / "run/lxc/lock").mkdir(parents=True)
    return Path("/var/cache/weighbridge/engines")


def lock(engines: Path, run: str) -> Path:
    folder = lxc_locks.lock_folder(engines / run / "data-1-lxc-server-lxc")
    folder.mkdir(parents=True)
    (folder / ".wb-6789ab-0").touch()
    return folder


def test_those_of_one_run_are_removed_and_empty_folders_above(engines: Path, tmp_path: Path):
    ours, others = lock(engines, RUN), lock(engines, OTHER)
    lxc_locks.remove(engines / RUN)
    assert not ours.parent.exists() and (others / ".wb-6789ab-0").exists()
    lxc_locks.remove(engines / OTHER)
    assert [*(tmp_path / "run").iterdir()] == []


def test_where_there_are_none_nothing_happens(engines: Path, tmp_path: Path):
    lxc_locks.remove(engines / RUN)
    assert (tmp_path / "run").exists()


def test_locks_that_stay_are_an_error(engines: Path, immutable: set[Path]):
    immutable.add(lock(engines, RUN).parent)
    with pytest.raises(OSError, match="Operation not permitted"):
        LxcLocks().remove(OrphanedRun(RUN, Path("/unused"), engines / RUN))
