"""The SQLite file of a run: opened to write or only to read, and its errors in one sentence."""

import contextlib
import errno
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from weighbridge.errors import DiskFull, RunDirectoryError
from weighbridge.store import schema

SETTINGS = ("foreign_keys=ON", "journal_mode=WAL", "synchronous=FULL")
"""Of a connection that writes."""


@contextmanager
def saving(where: Path) -> Iterator[None]:
    """Turn 'no space' of the file system or of SQLite into DiskFull, and a broken file into one sentence."""
    try:
        yield
    except (sqlite3.Error, UnicodeDecodeError) as error:
        code = getattr(error, "sqlite_errorcode", None)
        if code is not None and code & 0xFF in (sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR):
            raise DiskFull.of(where) from error
        if code is None:  # Python's own: text that it cannot decode, which the message would quote
            raise RunDirectoryError(f"{where} is damaged: it holds text that is not UTF-8") from error
        if isinstance(error, sqlite3.OperationalError):
            raise RunDirectoryError(f"{where}: {error}") from error
        raise RunDirectoryError(f"{where} is not a run of Weighbridge: {error}") from error
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise DiskFull.of(where) from error
        raise RunDirectoryError(f"{where}: {error.strerror or error}") from error


def connect(database: Path) -> sqlite3.Connection:
    """Open the database to write: committed data survives a power cut."""
    with contextlib.ExitStack() as undo:
        connection = undo.enter_context(contextlib.closing(sqlite3.connect(database, isolation_level=None)))
        for setting in SETTINGS:
            connection.execute(f"PRAGMA {setting}")
        undo.pop_all()
    return connection


def connect_to_read(database: Path) -> sqlite3.Connection:
    """Never changes the file, and needs no right to write beside it unless a run is writing or was killed."""
    pending = database.with_name(database.name + "-wal")
    mode = "mode=ro" if pending.exists() else "immutable=1"  # immutable takes no note of what is pending
    uri = f"{database.absolute().as_uri()}?{mode}"
    with contextlib.closing(sqlite3.connect(uri, uri=True, isolation_level=None)) as file:
        (version,) = file.execute("PRAGMA user_version").fetchone()
        if 0 < version < schema.VERSION:  # upgraded in memory
            connection = sqlite3.connect(":memory:", isolation_level=None)
            file.backup(connection)
            return connection
    return sqlite3.connect(uri, uri=True, isolation_level=None)


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
