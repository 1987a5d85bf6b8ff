"""SQLite: commits of a database in one file."""

import re
from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import Field

from weighbridge.model.command import Command, Completed
from weighbridge.model.measurement import Measurement, Metric, Unparseable, require_success
from weighbridge.model.options import Options
from weighbridge.model.plugin import Durability
from weighbridge.model.study import Role
from weighbridge.model.trial import TrialResult, Work
from weighbridge.model.workload import Endpoint, Workload

COMMITS = Metric("commits", "1/s", "higher")
_NOW = "SELECT CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER);\n"
"""Milliseconds since 1970. SQLite 3.40 has no function for less than a second."""
_INSERT = "INSERT INTO records (content) VALUES (hex(zeroblob(50)));\n"
_EMPTY = """rm -f "$1" "$1"-journal "$1"-wal "$1"-shm
exec sqlite3 -batch "$1" 'CREATE TABLE records (number INTEGER PRIMARY KEY, content TEXT)'"""
_PRINTED = re.compile(r"([a-z]{1,10})\n([0-9]{13})\n([0-9]{13})\n([0-9]{1,9})\n")
_SLOWEST = 5
"""The commits per second of a slow disk, for the deadline."""
_USUAL = {"full": 100, "off": 10_000}
"""The expected commits per second."""


class SqliteOptions(Options):
    """Options of sqlite."""

    commits: Annotated[int, Field(ge=1, le=10_000_000, description="Transactions of one row each")] = 1000
    journal: Annotated[
        Literal["delete", "wal"],
        Field(description="A journal that is made and deleted for each commit, or a write-ahead log"),
    ] = "delete"
    sync: Annotated[Literal["full", "off"], Field(description="Whether each commit is synced")] = "full"


class Sqlite(Workload):
    """Commits single rows from one writer: files are created, written, synced and deleted.

    With ``sync: off`` it is CPU-bound, in system calls of its file system.
    """

    kind = "sqlite"
    summary = "commits of SQLite, a database in one file"
    options = SqliteOptions
    packages = ("sqlite3",)

    def metrics(self, options: SqliteOptions) -> tuple[Metric, ...]:
        """Return ``commits`` per second."""
        return (COMMITS,)

    def room(self, options: SqliteOptions) -> int:
        """Count rows of about 110 bytes, and a journal."""
        return 2**20 + options.commits * 256

    def durability(self, options: SqliteOptions) -> Durability:
        return "synchronous" if options.sync == "full" else "none"

    def restore(self, options: SqliteOptions, at: Endpoint) -> Command:
        """Create an empty table in a new file."""
        return Command(("sh", "-c", _EMPTY, "restore", _file(at)), deadline_s=120)

    def command(self, role: Role, options: SqliteOptions, at: Endpoint) -> Command:
        """Start SQLite's shell, which reads the transactions."""
        settings = f"PRAGMA journal_mode={options.journal};\nPRAGMA synchronous={options.sync};\n"
        inserts = _INSERT * options.commits
        asked = f"{settings}{_NOW}{inserts}{_NOW}SELECT count(*) FROM records;\n"  # noqa: S608 - numbers and literals
        deadline_s = 60 + options.commits / _SLOWEST
        return Command(("sqlite3", "-batch", "-bail", _file(at)), deadline_s, stdin=asked.encode())

    def expected_s(self, options: SqliteOptions) -> float:
        return 0.1 + options.commits / _USUAL[options.sync]

    def parse(self, options: SqliteOptions, completed: Mapping[str, Completed]) -> TrialResult:
        """Divide the commits by the time between the first and the last, in whole milliseconds of SQLite's own clock.

        Raises ProgramFailed or Unparseable.
        """
        match = _PRINTED.fullmatch(require_success(completed["solo"], "sqlite3").text)
        if match is None:
            raise Unparseable("sqlite3 printed something else than its journal mode, two times and the rows")
        journal, began, ended, rows = match[1], int(match[2]), int(match[3]), int(match[4])
        if journal != options.journal or rows != options.commits:
            raise Unparseable(f"sqlite3 has {rows} rows by journal mode {journal}, not {options.commits}")
        if ended <= began:
            raise Unparseable("sqlite3's commits took less than a millisecond: ask for more of them")
        seconds = (ended - began) / 1000
        return TrialResult(
            (Measurement(COMMITS, rows / seconds),), Work(rows / 1000, "1000_transactions"), work_s=seconds
        )


def _file(at: Endpoint) -> str:
    return f"{at.data}/sqlite.db"


PLUGIN = Sqlite()
