"""In a run directory of another user no link leads Weighbridge to another file of the machine."""

import os
import sqlite3
import struct
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from sentences import raises_sentence
from weighbridge.errors import RunDirectoryError
from weighbridge.store.database import DATABASE
from weighbridge.store.run import STATUS, RunStore, trials_of_live_run
from weighbridge.store.safe_folder import SafeFolder, file_in_run, open_named_file

from .made import STUDY, record

NOBODY = 65534
AS_ROOT = pytest.mark.skipif(os.geteuid() != 0, reason="gives a folder to another user: needs root")


@pytest.fixture
def canary(tmp_path: Path) -> Path:
    """A file elsewhere that must stay as it is."""
    path = tmp_path / "canary"
    path.write_bytes(b"")  # SQLite takes an empty file for a new database
    return path


def _put(link: Path, target: Path) -> None:
    if link.is_file():
        link.unlink()
    link.symlink_to(target)


@pytest.mark.parametrize("name", ["lock", DATABASE, f"{DATABASE}-wal", f"{DATABASE}-shm"])
@pytest.mark.parametrize("exists", [True, False])
def test_a_link_is_refused_and_its_target_stays(run: Path, canary: Path, name: str, exists: bool):
    if not exists:
        canary.unlink()
    _put(run / name, canary)
    with raises_sentence(RunDirectoryError):
        RunStore(run, writable=True)
    assert canary.exists() is exists and (not exists or canary.read_bytes() == b"")


@pytest.mark.parametrize("name", ["lock", DATABASE, f"{DATABASE}-wal"])
def test_a_hard_link_is_refused_too(run: Path, canary: Path, name: str):
    (run / name).unlink(missing_ok=True)
    (run / name).hardlink_to(canary)
    with raises_sentence(RunDirectoryError):
        RunStore(run, writable=True)
    assert canary.read_bytes() == b""


@pytest.mark.parametrize("name", ["lock", DATABASE])
def test_a_pipe_is_refused_and_nobody_waits_for_its_other_end(run: Path, name: str):
    (run / name).unlink()
    os.mkfifo(run / name)
    with pytest.raises(RunDirectoryError):
        RunStore(run, writable=True)


def test_an_output_replaces_a_link(run: Path, canary: Path):
    (run / "raw/000002.client.stdout").symlink_to(canary)
    (run / "raw/000002.client.stderr").hardlink_to(canary)
    with RunStore(run, writable=True) as store:
        store.save(record(block=2))
    assert canary.read_bytes() == b""
    assert (run / "raw/000002.client.stdout").read_bytes() == b"\x00out\xff"


def test_a_folder_of_outputs_that_is_a_link_is_refused(run: Path, tmp_path: Path):
    (run / "raw").rename(tmp_path / "elsewhere")
    (run / "raw").symlink_to(tmp_path / "elsewhere")
    with raises_sentence(RunDirectoryError):
        RunStore(run, writable=True)


def test_the_status_replaces_a_link(run: Path, canary: Path):
    (run / STATUS).symlink_to(canary)
    with RunStore(run, writable=True):
        assert not (run / STATUS).is_symlink()
    assert canary.read_bytes() == b""


@pytest.mark.parametrize("link", [Path.symlink_to, Path.hardlink_to])
def test_a_status_that_becomes_a_link_is_replaced(run: Path, canary: Path, link: Callable[[Path, Path], None]):
    with RunStore(run, writable=True) as store:
        (run / STATUS).unlink()
        link(run / STATUS, canary)
        store.save(record(block=2))
        store.save(record(block=3))
        assert trials_of_live_run(run) == 3
    assert canary.read_bytes() == b""


def test_a_database_that_is_a_link_is_not_read(run: Path, tmp_path: Path):
    """Root would show a run that another user must not read, in a report in that user's folder."""
    (run / DATABASE).rename(tmp_path / "private.sqlite")
    (run / DATABASE).symlink_to(tmp_path / "private.sqlite")
    with raises_sentence(RunDirectoryError):
        RunStore(run)


def test_files_that_a_backup_program_linked_are_read(run: Path, tmp_path: Path):
    (tmp_path / "backup.sqlite").hardlink_to(run / DATABASE)
    with RunStore(run) as store:
        assert len(store.trials()) == 1


@AS_ROOT
def test_a_file_of_root_with_a_second_name_in_a_users_folder_is_not_read(run: Path, canary: Path):
    canary.write_bytes(b"secret")
    (run / "raw/secret").hardlink_to(canary)
    for path in (run, run / "raw"):
        os.chown(path, NOBODY, NOBODY)
    with file_in_run(run, "raw", "secret") as file:
        assert file is None
    with file_in_run(run, "raw", "000001.client.stdout") as file:
        assert file is not None


@AS_ROOT
def test_root_follows_no_link_of_another_user_to_a_run_directory(run: Path, tmp_path: Path):
    link = tmp_path / "link"
    link.symlink_to(run)
    RunStore(link, writable=True).close()  # root's own
    os.lchown(link, NOBODY, NOBODY)
    with raises_sentence(RunDirectoryError):
        RunStore(link, writable=True)
    RunStore(link).close()


def _journal_with_a_super_journal(name: str, pages: int) -> bytes:
    """A journal that SQLite rolls back, and then deletes the file of this name (https://sqlite.org/fileformat2.html).

    The name is in the journal because one transaction can change several databases.
    """
    page = struct.pack(">I", 2**30 // 4096 + 1)
    header = b"\xd9\xd5\x05\xf9\x20\xa1\x63\xd7" + struct.pack(">IIIII", 0, 7, pages, 512, 4096)
    letters = name.encode()
    record = page + letters + struct.pack(">II", len(letters), sum(letters)) + header[:8]
    return header.ljust(512, b"\0") + record


def test_a_journal_that_names_another_file_does_not_delete_it(run: Path, canary: Path):
    canary.write_bytes(b"x")
    pages = (run / DATABASE).stat().st_size // 4096
    (run / f"{DATABASE}-journal").write_bytes(_journal_with_a_super_journal(str(canary), pages))
    with RunStore(run) as store:
        assert len(store.trials()) == 1
    with raises_sentence(RunDirectoryError):
        RunStore(run, writable=True)
    assert canary.exists()
    with closing(sqlite3.connect(run / DATABASE)) as unguarded:  # SQLite itself does it
        unguarded.execute("SELECT * FROM run").fetchall()
    assert not canary.exists()


@AS_ROOT
def test_root_writes_to_a_users_run_with_the_rights_of_that_user(run: Path):
    for path in (run, *run.rglob("*")):
        os.chown(path, NOBODY, NOBODY)
    for folder in (each for each in run.parents if not each.stat().st_mode & 0o001):
        folder.chmod(0o755)
    with RunStore(run, writable=True) as store:
        store.save(record(block=2))
        assert {path.stat().st_uid for path in run.rglob("*")} == {NOBODY}
    assert sorted(path.name for path in run.iterdir()) == ["lock", "raw", DATABASE]
    with RunStore(run) as store:
        assert len(store.trials()) == 2
    os.chown(run / DATABASE, 0, 0)
    with raises_sentence(RunDirectoryError):
        RunStore(run, writable=True)


@AS_ROOT
def test_a_users_run_below_a_folder_of_roots_own_is_explained(run: Path):
    for path in (run, *run.rglob("*")):
        os.chown(path, NOBODY, NOBODY)
    run.parent.chmod(0o700)
    with raises_sentence(RunDirectoryError):
        RunStore(run, writable=True)
    with RunStore(run) as store:
        assert len(store.trials()) == 1


def test_a_file_larger_than_the_memory_is_refused(run: Path, monkeypatch: pytest.MonkeyPatch):
    def read(*_: object) -> bytearray:
        raise MemoryError

    monkeypatch.setattr(SafeFolder, "read", read)
    with raises_sentence(RunDirectoryError):
        RunStore(run)


def test_a_folder_that_was_replaced_while_it_was_opened_is_noticed(run: Path, tmp_path: Path):
    """SQLite opens by path: here another run has come into the place of the one that was checked."""
    with RunStore(tmp_path / "other", writable=True) as store:
        store.begin(STUDY, {})
    require_own = SafeFolder.require_own

    def swap(folder: SafeFolder, name: str) -> os.stat_result | None:
        if name.endswith("-journal"):
            (run / DATABASE).rename(run / "checked.sqlite")
            (tmp_path / "other" / DATABASE).rename(run / DATABASE)
        if name == DATABASE:
            return (run / "checked.sqlite").stat()
        return require_own(folder, name)

    with pytest.MonkeyPatch.context() as patch, raises_sentence(RunDirectoryError):
        patch.setattr(SafeFolder, "require_own", swap)
        RunStore(run, writable=True)


@pytest.mark.parametrize("name", ["", "a/b", "../run.sqlite", "a\0b", "/etc/passwd"])
def test_names_of_other_folders_are_refused(run: Path, name: str):
    with SafeFolder.open(run) as folder, pytest.raises(RunDirectoryError):
        folder.open_file(name)
    with file_in_run(run, "raw", name) as file:
        assert file is None


def test_what_is_replaced_is_there_or_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    def fail(*_: object) -> None:
        raise OSError(28, "No space left on device")

    with SafeFolder.open(tmp_path, writable=True) as folder:
        folder.replace("a", "old", durable=True)
        with monkeypatch.context() as patch, pytest.raises(OSError):
            patch.setattr(os, "fsync", fail)
            folder.replace("a", "new", durable=True)
        assert folder.read("a") == b"old"
        folder.replace("a", "new")
        assert folder.read("a") == b"new" and folder.read("a", 2) == b"ne" and folder.read("none") == b""


def test_a_sparse_file_that_no_run_has_is_refused(tmp_path: Path):
    (tmp_path / "run.sqlite").touch()
    os.truncate(tmp_path / "run.sqlite", 2**40)
    with SafeFolder.open(tmp_path) as folder, pytest.raises(RunDirectoryError, match="larger than 4 GiB"):
        folder.read("run.sqlite")
    with pytest.raises(RunDirectoryError, match="larger than 4 GiB"):
        RunStore(tmp_path)


# -- a file that the user names --------------------------------------------------------------------


@AS_ROOT
def test_a_named_file_of_another_user_is_written(tmp_path: Path):
    (tmp_path / "summary.md").touch()
    os.chown(tmp_path / "summary.md", NOBODY, NOBODY)
    os.close(open_named_file(tmp_path / "summary.md", os.O_WRONLY | os.O_APPEND))
    with SafeFolder.open(tmp_path) as folder, raises_sentence(RunDirectoryError):
        folder.open_file("summary.md", os.O_WRONLY)


@pytest.mark.parametrize("flags", [os.O_RDONLY, os.O_WRONLY | os.O_APPEND | os.O_CREAT])
def test_a_named_file_is_no_link_and_no_pipe(canary: Path, tmp_path: Path, flags: int):
    (tmp_path / "link").symlink_to(canary)
    with raises_sentence(RunDirectoryError):
        open_named_file(tmp_path / "link", flags)
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises((RunDirectoryError, OSError)):
        open_named_file(tmp_path / "pipe", flags)


def test_a_second_name_is_not_written(canary: Path, tmp_path: Path):
    (tmp_path / "second").hardlink_to(canary)
    with raises_sentence(RunDirectoryError):
        open_named_file(tmp_path / "second", os.O_WRONLY)
