"""The SQLite file of a run: opened to write in place, and read as a copy in memory. Errors become one sentence.

Only the process that writes a run opens its database in place. SQLite then never shares memory with another process,
which it could not do with one on another host (https://sqlite.org/wal.html, section 8).
"""

import contextlib
import errno
import os
import sqlite3
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from weighbridge.errors import DiskFull, RunDirectoryError
from weighbridge.store.safe_folder import SafeFolder

DATABASE = "run.sqlite"
WAL, JOURNAL = f"{DATABASE}-wal", f"{DATABASE}-journal"
SIDE_FILES = (WAL, f"{DATABASE}-shm")
"""Files that SQLite keeps next to an open database, and that stay if its process is killed."""
SETTINGS = (
    "locking_mode=EXCLUSIVE", "journal_mode=MEMORY", "journal_mode=WAL", "foreign_keys=ON", "synchronous=FULL"
)  # fmt: skip
"""Settings of a connection that writes. With exclusive locking SQLite keeps the index of its log in private memory
instead of the file ``-shm``, which network file systems and some others cannot map. A new database begins without a
journal in a file."""
_LOG_HEADER = 32
"""The size of the log's header. SQLite changes two numbers in it (the salts) each time it restarts the log."""
_VERSIONS = slice(18, 20)
"""The bytes of the header that say whether a database is written through a log (2) or a journal (1)."""
_TRIES, _PAUSE_S = 40, 0.05


@contextmanager
def saving(where: Path) -> Iterator[None]:
    """Turn a full disk into DiskFull, and other errors of the file system or SQLite into RunDirectoryError."""
    try:
        yield
    except (sqlite3.Error, UnicodeDecodeError) as error:
        code = getattr(error, "sqlite_errorcode", None)
        if code is None:  # Python's own error for text that it cannot decode; its message would quote the text
            raise RunDirectoryError(f"{where} is damaged: it contains text that is not UTF-8") from error
        if code & 0xFF == sqlite3.SQLITE_FULL or (code & 0xFF == sqlite3.SQLITE_IOERR and _is_full(where)):
            raise DiskFull.of(where) from error
        if code & 0xFF == sqlite3.SQLITE_IOERR:
            raise RunDirectoryError(_io_error_sentence(where, str(getattr(error, "sqlite_errorname", "")))) from error
        if isinstance(error, sqlite3.OperationalError):
            raise RunDirectoryError(f"{where}: {error}") from error
        raise RunDirectoryError(f"{where} is not a Weighbridge run: {error}") from error
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise DiskFull.of(where) from error
        raise RunDirectoryError(f"{where}: {error.strerror or error}") from error
    except MemoryError as error:
        raise RunDirectoryError(f"{where} is larger than this machine's free memory, so it cannot be read") from error


def _is_full(where: Path) -> bool:
    """Return whether the file system has no free block or no free inode. An exhausted quota does not show here."""
    try:
        usage = os.statvfs(where)
    except OSError:
        return False
    return usage.f_bavail == 0 or (usage.f_files > 0 and usage.f_favail == 0)


def _io_error_sentence(where: Path, name: str) -> str:
    from weighbridge.linux.folders import filesystem_of  # no other reader needs what this imports

    return (
        f"{where}: {DATABASE} could not be read or written ({name}, file system {filesystem_of(where)}). "
        "Check the disk and your quota, or use another --out on a local disk"
    )


def connect(folder: SafeFolder) -> sqlite3.Connection:
    """Open the database of a run to write, and create it if it is missing: committed data survives a power cut.

    Its files must not be links. The caller has locked the run, and in the folder of another user root has given up
    its rights.
    """
    os.close(folder.open_file(DATABASE, os.O_RDWR | os.O_CREAT))
    for name in SIDE_FILES:
        folder.require_own(name)
    if folder.require_own(JOURNAL):  # it could name any file as its super-journal, which SQLite would delete
        raise RunDirectoryError(f"{folder.path / JOURNAL} is not part of a run: remove it")
    # SQLite opens files by path: it resolves this one to the path that the open folder has now. The database that it
    # opened is compared with the one that was checked. The owner of the folder can still replace the folder or add a
    # journal between these checks and the first statement. At that time root has only the rights of that owner.
    # Without root, a user who writes to another user's run still risks files here.
    uri = f"file:/proc/self/fd/{folder.descriptor}/{DATABASE}?mode=rw"
    with contextlib.ExitStack() as undo:
        connection = undo.enter_context(contextlib.closing(_opened(uri, folder)))
        if not _has_open(folder.require_own(DATABASE)):
            raise RunDirectoryError(f"{folder.path / DATABASE} was replaced while it was opened: try again")
        for setting in SETTINGS:
            connection.execute(f"PRAGMA {setting}")
        undo.pop_all()
    return connection


def _opened(uri: str, folder: SafeFolder) -> sqlite3.Connection:
    try:
        return sqlite3.connect(uri, uri=True, isolation_level=None)
    except sqlite3.OperationalError as error:
        owner = os.fstat(folder.descriptor).st_uid
        if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_CANTOPEN or os.geteuid() != 0 or owner == 0:
            raise
        raise RunDirectoryError(
            f"{folder.path} belongs to user {owner}, who cannot enter a folder above it, and root writes there only "
            "with that user's rights. Move the run to a folder that the user can enter, or change the owner of its "
            "files"
        ) from error


def _has_open(file: os.stat_result | None) -> bool:
    for descriptor in Path("/proc/self/fd").iterdir():
        with contextlib.suppress(OSError):  # the descriptor of this listing itself is closed by now
            if file is not None and os.path.samestat(file, os.fstat(int(descriptor.name))):
                return True
    return False


def read_copy(folder: SafeFolder) -> sqlite3.Connection:
    """Return a copy in memory of a run's database, as of its last commit. Nothing is locked, created or changed.

    Another process can write the run at the same time, also on another host. A process that writes the run itself
    should not call this: when it closes the copied file, SQLite loses its locks on it (fcntl(2), "record locks").
    """
    files = consistent_files(folder)
    if not files[WAL]:
        return in_memory(files[DATABASE])
    connection = sqlite3.connect(":memory:", isolation_level=None)
    _recover(files, connection)
    return connection


def in_memory(content: bytes | bytearray) -> sqlite3.Connection:
    """Return a database in memory with the content of a database file, which can be empty.

    SQLite copies the content. A bytearray can be changed.
    """
    connection = sqlite3.connect(":memory:", isolation_level=None)
    if content[_VERSIONS] == b"\2\2":  # a database in memory has no log
        content = content if isinstance(content, bytearray) else bytearray(content)
        content[_VERSIONS] = b"\1\1"
    if content:
        connection.deserialize(content)
    return connection


def consistent_files(folder: SafeFolder) -> Mapping[str, bytearray]:
    """Return the contents of the database and of its log, both of one state.

    SQLite changes the database only by copying pages of the log to it. A copy of the database and a later copy of the
    log are complete together, unless SQLite restarted the log in between.
    """
    for _ in range(_TRIES):
        before = _state(folder)
        files = {name: folder.read(name) for name in (DATABASE, WAL)}
        if _state(folder) == before:
            return files
        time.sleep(_PAUSE_S)
    raise RunDirectoryError(f"{folder.path} keeps changing, so it cannot be read: try again later")


def _state(folder: SafeFolder) -> tuple[object, ...]:
    """Return values that change when the database changes or SQLite restarts its log."""
    status = os.stat(DATABASE, dir_fd=folder.descriptor, follow_symlinks=False)
    log = bytes(folder.read(WAL, _LOG_HEADER))
    return (status.st_size, status.st_mtime_ns, log)


def _recover(files: Mapping[str, bytearray], connection: sqlite3.Connection) -> None:
    """Fill a database in memory from a database and its log, as SQLite recovers them after a crash."""
    with tempfile.TemporaryDirectory(prefix="weighbridge-") as temporary:
        for name, data in files.items():
            if data:
                (Path(temporary) / name).write_bytes(data)
        with contextlib.closing(sqlite3.connect(Path(temporary) / DATABASE, isolation_level=None)) as copy:
            copy.execute("PRAGMA synchronous=OFF")
            copy.execute("SELECT count(*) FROM sqlite_master").fetchone()
            for path in Path(temporary).iterdir():  # SQLite has them open: if it is killed now, no copy stays
                path.unlink()
            copy.backup(connection)


@contextmanager
def transaction(connection: sqlite3.Connection) -> Iterator[None]:
    """Commit all changes of the block, or none of them."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        with contextlib.suppress(sqlite3.Error):
            connection.execute("ROLLBACK")
        raise
