"""The tables of a run, and the upgrades of older files."""

import re
import sqlite3
from contextlib import closing
from functools import cache

from weighbridge.errors import RunDirectoryError

VERSION = 5

SERIES = """
CREATE TABLE series (
    trial INTEGER NOT NULL REFERENCES trial(id), place TEXT NOT NULL, name TEXT NOT NULL,
    at_s TEXT NOT NULL, vals TEXT NOT NULL
) STRICT;
CREATE TABLE histogram (
    trial INTEGER NOT NULL REFERENCES trial(id), metric TEXT NOT NULL, encoded TEXT NOT NULL
) STRICT;
CREATE INDEX series_of_trial ON series(trial);
"""
"""New in version 2. ``at_s`` and ``vals`` are JSON lists of the same length."""

TABLES = """
CREATE TABLE run (key TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT;
CREATE TABLE environment (
    name TEXT PRIMARY KEY, position INTEGER NOT NULL, kind TEXT NOT NULL, options TEXT NOT NULL, aa_of TEXT
) STRICT;
CREATE TABLE cell (
    workload TEXT NOT NULL, level TEXT NOT NULL, position INTEGER NOT NULL, kind TEXT NOT NULL,
    options TEXT NOT NULL, label TEXT NOT NULL, PRIMARY KEY (workload, level)
) STRICT;
CREATE TABLE trial (
    id INTEGER PRIMARY KEY, block INTEGER NOT NULL, attempt INTEGER NOT NULL, workload TEXT NOT NULL,
    level TEXT NOT NULL, environment TEXT NOT NULL, outcome TEXT NOT NULL, message TEXT NOT NULL,
    started_at REAL NOT NULL, duration_s REAL NOT NULL, measured_s REAL NOT NULL, flags TEXT NOT NULL,
    UNIQUE (block, attempt, workload, level, environment)
) STRICT;
CREATE TABLE measurement (
    trial INTEGER NOT NULL REFERENCES trial(id), metric TEXT NOT NULL, unit TEXT NOT NULL,
    better TEXT NOT NULL, value REAL NOT NULL, PRIMARY KEY (trial, metric)
) STRICT;
CREATE TABLE process (
    trial INTEGER NOT NULL REFERENCES trial(id), role TEXT NOT NULL, argv TEXT NOT NULL,
    returncode INTEGER NOT NULL, duration_s REAL NOT NULL, stdout TEXT NOT NULL, stderr TEXT NOT NULL,
    PRIMARY KEY (trial, role)
) STRICT;
CREATE TABLE sample (
    trial INTEGER NOT NULL REFERENCES trial(id), site TEXT NOT NULL, name TEXT NOT NULL, value REAL NOT NULL
) STRICT;
CREATE TABLE fact (
    scope TEXT NOT NULL, key TEXT NOT NULL, value TEXT NOT NULL, at REAL NOT NULL
) STRICT;
CREATE INDEX sample_of_trial ON sample(trial);
"""
"""The tables of version 1."""

WINDOW = """
ALTER TABLE trial ADD COLUMN measured_from_s REAL;
UPDATE trial SET measured_from_s = (
    SELECT value FROM sample WHERE sample.trial = trial.id AND site = 'trial' AND name = 'measured_from_s'
);
DELETE FROM sample WHERE site = 'trial' AND name IN ('measured_from_s', 'measured_to_s');
"""
"""New in version 4: the begin of the measured program, which was a sample. Its end is now ``measured_s`` later."""

STUDY = """
CREATE TABLE IF NOT EXISTS study (
    only_one INTEGER PRIMARY KEY CHECK (only_one = 1), document TEXT NOT NULL
) STRICT;
"""
"""New in version 5: the checked study (`weighbridge.model.stored_study`); empty in older runs until they continue."""

UPGRADES: dict[int, str] = {1: SERIES, 2: "", 3: WINDOW, 4: STUDY}
"""The SQL that upgrades a file from the version in the key to the next one.

New in version 3: flags are objects. Older runs keep their sentences, which `weighbridge.store.flags` reads."""


def bring_up_to_date(connection: sqlite3.Connection, where: str, *, create: bool) -> None:
    """Create the tables in a new file or upgrade an older one; RunDirectoryError for other and newer files.

    A file with a view, a trigger, a virtual table, or an index or a check that is not ours is refused, because these
    are code, which might never end. A file without one of the tables or columns is refused too.
    """
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    if version > VERSION:
        raise RunDirectoryError(
            f"{where} was written by a newer Weighbridge (schema {version}, this one knows up to {VERSION}): "
            "upgrade Weighbridge to read it"
        )
    if version < 0:
        raise RunDirectoryError(f"{where} is not a Weighbridge run: its database has version {version}")
    if version == 0:
        (tables,) = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
        if tables or not create:
            raise RunDirectoryError(
                f"{where} is not a Weighbridge run: its database does not have the tables of a run"
            )
        connection.executescript(f"BEGIN; {TABLES} PRAGMA user_version=1; COMMIT;")
        version = 1
    code = "SELECT name FROM sqlite_master WHERE type IN ('view', 'trigger') OR sql LIKE 'CREATE VIRTUAL%'"
    if connection.execute(code).fetchone():
        raise RunDirectoryError(f"{where} is damaged: its database has a view, a trigger or a virtual table")
    for name, sql in connection.execute("SELECT name, sql FROM sqlite_master WHERE sql IS NOT NULL").fetchall():
        if sql not in ours() and (not _TABLE.match(sql) or _EXPRESSION.search(sql.replace(_OUR_CHECK, ""))):
            raise RunDirectoryError(f"{where} is damaged: its database has an index or a check {name[:40]!r}")
    for old in range(version, VERSION):
        connection.executescript(f"BEGIN; {UPGRADES[old]} PRAGMA user_version={old + 1}; COMMIT;")
    for table, columns in columns_by_table().items():
        present = _columns_of(connection, table)
        if missing := columns.keys() - present.keys():
            fault = f"the table '{table}' has no column '{min(missing)}'" if present else f"it has no table '{table}'"
            raise RunDirectoryError(f"{where} is damaged: {fault}")


_OUR_CHECK = "CHECK (only_one = 1)"
_TABLE = re.compile(r"CREATE TABLE\b", re.IGNORECASE)
_EXPRESSION = re.compile(r"\b(CHECK|AS|DEFAULT\s*\()", re.IGNORECASE)
"""The parts of the definition of a table that SQLite computes."""


@cache
def ours() -> frozenset[str]:
    """Return the definitions of the tables and indexes of all versions."""
    with closing(sqlite3.connect(":memory:")) as empty:
        definitions: set[str] = set()
        for script in (TABLES, *UPGRADES.values()):
            empty.executescript(script)
            definitions |= {sql for (sql,) in empty.execute("SELECT sql FROM sqlite_master WHERE sql IS NOT NULL")}
        return frozenset(definitions)


@cache
def columns_by_table() -> dict[str, dict[str, str]]:
    """Return the tables of the newest version: the SQL type of each column."""
    with closing(sqlite3.connect(":memory:")) as empty:
        empty.executescript("".join((TABLES, *UPGRADES.values())))
        names = empty.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
        return {name: _columns_of(empty, name) for (name,) in names}


def _columns_of(connection: sqlite3.Connection, table: str) -> dict[str, str]:
    return {row[1]: row[2] for row in connection.execute(f"PRAGMA table_info({table})")}
