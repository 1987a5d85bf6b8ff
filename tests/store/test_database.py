"""A run's database is written by one process and read as a copy, from another host too; its errors are told apart."""

import errno
import os
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace

import pytest

from sentences import raises_sentence
from weighbridge.errors import DiskFull, RunDirectoryError
from weighbridge.linux import folders
from weighbridge.store import database
from weighbridge.store.database import DATABASE, WAL, saving
from weighbridge.store.run import STATUS, RunStore, trials_of_live_run
from weighbridge.store.safe_folder import SafeFolder

from .made import record

ROOM, FULL, NO_INODES, UNCOUNTED = (
    SimpleNamespace(f_bavail=blocks, f_files=files, f_favail=free)
    for blocks, files, free in ((9, 100, 9), (0, 100, 9), (9, 100, 0), (9, 0, 0))
)


def _mtimes(run: Path) -> dict[Path, int]:
    return {path: path.stat().st_mtime_ns for path in (run, *run.rglob("*"))}


# -- readers ---------------------------------------------------------------------------------------


def test_a_report_that_began_before_a_run_goes_on_has_the_rows_of_its_begin(run: Path):
    with RunStore(run) as reader:
        with RunStore(run, writable=True) as store:
            for block in range(2, 40):
                store.save(record(block=block, samples=(("host", "busy_s", 1.0),) * 50))
        assert len(reader.finished()) == len(reader.trials()) == 1
        assert len(reader.samples()) == 2


def test_a_reader_of_a_run_that_goes_on_changes_nothing_and_shares_no_memory(run: Path):
    """SQLite's readers map ``-shm``, which is damaged where reader and writer are on two hosts."""
    with RunStore(run, writable=True) as store:
        store.save(record(block=2))
        before = _mtimes(run)
        assert {path.name for path in run.iterdir()} == {"lock", "raw", DATABASE, WAL, STATUS}
        with RunStore(run) as reader:
            assert len(reader.trials()) == 2
        assert _mtimes(run) == before
        store.save(record(block=3))


def test_a_killed_run_is_read_and_left_as_it_is(run: Path, tmp_path: Path):
    with RunStore(run, writable=True) as store:
        store.save(record(block=2))
        shutil.copytree(run, tmp_path / "killed")
    before = _mtimes(tmp_path / "killed")
    with RunStore(tmp_path / "killed") as reader:
        assert len(reader.trials()) == 2
    assert _mtimes(tmp_path / "killed") == before


def test_a_run_that_an_older_weighbridge_left_with_shared_memory_goes_on(run: Path, tmp_path: Path):
    with closing(sqlite3.connect(run / DATABASE, isolation_level=None)) as older:
        older.execute("PRAGMA journal_mode=WAL")
        older.execute("INSERT INTO run VALUES ('finished', 'no')")
        assert (run / f"{DATABASE}-shm").exists()
        shutil.copytree(run, tmp_path / "killed")
    with RunStore(tmp_path / "killed", writable=True) as store:
        assert store.info()["finished"] == "no"
        store.save(record(block=2))
    with RunStore(tmp_path / "killed") as reader:
        assert len(reader.trials()) == 2


@pytest.mark.parametrize("log_begins_anew", [True, False])
def test_a_copy_of_two_states_is_made_again(run: Path, monkeypatch: pytest.MonkeyPatch, log_begins_anew: bool):
    """The writer goes on between the copy of its database and that of its log."""
    monkeypatch.setattr(database, "_PAUSE_S", 0.0)
    read, blocks = SafeFolder.read, iter((3, 4))

    def read_slowly(folder: SafeFolder, name: str, size: int = -1) -> bytearray:
        if name == WAL and size < 0 and (block := next(blocks, None)) is not None:
            if log_begins_anew:
                store._db.execute("PRAGMA wal_checkpoint")
            store.save(record(block=block))
        return read(folder, name, size)

    with RunStore(run, writable=True) as store:
        store.save(record(block=2))
        monkeypatch.setattr(SafeFolder, "read", read_slowly)
        with RunStore(run) as reader:
            assert len(reader.trials()) == len(reader.processes()) == (4 if log_begins_anew else 3)


def test_a_database_that_never_stands_still_is_told(run: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(database, "_PAUSE_S", 0.0)
    states = iter(range(1000))
    monkeypatch.setattr(database, "_state", lambda _: (next(states),))
    with raises_sentence(RunDirectoryError):
        RunStore(run)


def test_a_reader_stops_no_writer_and_a_writer_no_reader(run: Path):
    with RunStore(run) as first, RunStore(run, writable=True) as store, RunStore(run) as second:
        store.save(record(block=2))
        assert len(first.trials()) == len(second.trials()) == 1


def test_a_run_without_a_lock_is_read_and_gets_none(run: Path):
    (run / "lock").unlink()
    with RunStore(run) as reader:
        assert len(reader.trials()) == 1
    assert not (run / "lock").exists()


# -- the status of a run that goes on --------------------------------------------------------------


def test_the_number_of_trials_is_in_a_file_as_long_as_the_run_goes_on(run: Path):
    assert trials_of_live_run(run) is None
    with RunStore(run, writable=True) as store:
        assert trials_of_live_run(run) == 1
        store.save(record(block=2))
        assert trials_of_live_run(run) == 2
    assert trials_of_live_run(run) is None and not (run / STATUS).exists()


@pytest.mark.parametrize("text", ["", "{", "[]", "7", '{"trials": "2"}', '{"trials": -1}', '{"other": 1}', "\xff"])
def test_a_damaged_status_tells_nothing(run: Path, text: str):
    (run / STATUS).write_text(text, encoding="latin-1")
    assert trials_of_live_run(run) is None


def test_a_run_does_not_end_because_its_status_cannot_be_written(run: Path, monkeypatch: pytest.MonkeyPatch):
    def fail(*_: object) -> None:
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(SafeFolder, "replace", fail)
    with RunStore(run, writable=True) as store:
        store.save(record(block=2))
        assert len(store.trials()) == 2


# -- errors ----------------------------------------------------------------------------------------


def _sqlite_error(name: str) -> sqlite3.OperationalError:
    error = sqlite3.OperationalError("disk I/O error")
    error.sqlite_errorcode, error.sqlite_errorname = getattr(sqlite3, name), name
    return error


@pytest.mark.parametrize(
    ("name", "usage", "kind"),
    [
        ("SQLITE_FULL", ROOM, DiskFull),
        ("SQLITE_IOERR_WRITE", FULL, DiskFull),
        ("SQLITE_IOERR_WRITE", NO_INODES, DiskFull),
        ("SQLITE_IOERR_WRITE", UNCOUNTED, RunDirectoryError),  # btrfs counts no inodes
        ("SQLITE_IOERR_WRITE", ROOM, RunDirectoryError),
        ("SQLITE_IOERR_SHMMAP", ROOM, RunDirectoryError),
        ("SQLITE_IOERR_LOCK", None, RunDirectoryError),
    ],
)
def test_only_a_full_disk_is_called_full(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, usage: object, kind: type[Exception]
):
    def statvfs(_: Path) -> object:
        if usage is None:
            raise OSError(errno.ESTALE, "Stale file handle")
        return usage

    monkeypatch.setattr(os, "statvfs", statvfs)
    monkeypatch.setattr(folders, "filesystem_of", lambda _: "nfs4")
    with raises_sentence(kind), saving(tmp_path / "run"):
        raise _sqlite_error(name)


def test_the_file_system_of_a_path_is_that_of_the_innermost_mount(monkeypatch: pytest.MonkeyPatch):
    mounts = [folders.Mounted(*each) for each in (("/", "ext4"), ("/home", "nfs4"), ("/home/a", "tmpfs"))]
    monkeypatch.setattr(folders, "mount_table", lambda: mounts)
    kinds = [folders.filesystem_of(Path(path)) for path in ("/", "/home", "/home/b/run", "/home/a/run", "/homes")]
    assert kinds == ["ext4", "nfs4", "nfs4", "tmpfs", "ext4"]


def test_a_file_system_that_is_mounted_over_another_counts(monkeypatch: pytest.MonkeyPatch):
    mounts = [folders.Mounted("/home", "ext4"), folders.Mounted("/home", "nfs4")]
    monkeypatch.setattr(folders, "mount_table", lambda: mounts)
    assert folders.filesystem_of(Path("/home")) == "nfs4"


def test_an_unreadable_table_of_mounts_is_no_error(monkeypatch: pytest.MonkeyPatch):
    def fail() -> list[folders.Mounted]:
        raise OSError(errno.ENOENT, "No such file or directory")

    monkeypatch.setattr(folders, "mount_table", fail)
    assert folders.filesystem_of(Path("/home")) == "unknown"
