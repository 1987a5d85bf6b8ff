"""One change of a valid run directory or fleet folder: where, and which hostile value."""

import json
import os
import re
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .values import JSON, LIVE_RUN, STORED, VICTIM, BadText

TABLES = (
    "run", "study", "environment", "cell", "trial", "measurement", "process", "sample", "series", "histogram", "fact",
)  # fmt: skip
_FACTS = 25
"""How many facts of a run are changed one by one: all are read by the same functions."""


@dataclass(frozen=True)
class Mutation:
    """A change. ``place`` is what is changed and ``value`` the name of what is put there."""

    place: str
    value: str
    apply: Callable[[Path], None]

    @property
    def name(self) -> str:
        """How a case names it."""
        return f"{self.place}={self.value}"


def places_of_run(run: Path) -> dict[str, list[Mutation]]:
    """Return the mutations of a run directory by their place: rows, JSON in rows, the schema, and its files."""
    places: dict[str, list[Mutation]] = {}
    for mutation in (*_of_rows(run), *_of_schema(), *_of_files(run, run)):
        places.setdefault(mutation.place, []).append(mutation)
    return places


def places_of_fleet(folder: Path) -> dict[str, list[Mutation]]:
    """Return the mutations of a fleet's folder by their place: its files, and places in its JSON documents."""
    places: dict[str, list[Mutation]] = {}
    for file in sorted(folder.rglob("*.json")):
        name = str(file.relative_to(folder))
        for path in _leaves(json.loads(file.read_text())):
            for value in JSON:
                place = f"{name}:{_dotted(path)}"
                places.setdefault(place, []).append(Mutation(place, value, _json_file(name, path, value)))
    for mutation in _of_files(folder, folder):
        places.setdefault(mutation.place, []).append(mutation)
    unit = min((folder / "runs").iterdir()).name
    for mutation in _of_rows(folder / "runs" / unit, within=f"runs/{unit}"):
        places.setdefault(mutation.place, []).append(mutation)
    for name in ("...", "alone--x", "again--../../srv/data", "-oProxyCommand=x", "a\nb", "\x1b[2J", "b" * 250):
        shown = name.replace("/", "%")
        places.setdefault("unit-name", []).append(
            Mutation("unit-name", repr(shown)[1:-1][:30], _unit_named(unit, shown))
        )
    return places


# -- rows ---------------------------------------------------------------------------------------------


def _of_rows(run: Path, within: str = ".") -> Iterator[Mutation]:
    with closing(sqlite3.connect(run / "run.sqlite")) as database:
        where = "" if within == "." else f"{within}/"
        there = {name for (name,) in database.execute("SELECT name FROM sqlite_master")}
        for table in (each for each in TABLES if each in there):
            columns = [row[1] for row in database.execute(f"PRAGMA table_info({table})")]
            for rows, condition, row in _rows(database, table):
                for column, stored in zip(columns, row, strict=True):
                    if table in ("run", "fact") and rows != "all" and column != "value":
                        continue
                    place = f"{where}{table}.{column}[{rows}]"
                    for value in STORED:
                        yield Mutation(place, value, _cell(within, table, column, condition, STORED[value]))
                    for path in _json_leaves(stored):
                        for value in JSON:
                            inside = f"{place}:{_dotted(path)}"
                            yield Mutation(inside, value, _json_cell(within, table, column, condition, path, value))


def _rows(database: sqlite3.Connection, table: str) -> Iterator[tuple[str, str, Sequence[Any]]]:
    """Yield which rows are changed: a name, an SQL condition, and one of them."""
    first = database.execute(f"SELECT * FROM {table} ORDER BY rowid LIMIT 1").fetchone()
    if first is None:
        return
    if table == "run":
        for key, value in database.execute("SELECT key, value FROM run ORDER BY key").fetchall():
            yield key, f"key = '{key}'", (key, value)
    elif table == "fact":
        facts = database.execute("SELECT scope, key, value, at, rowid FROM fact GROUP BY scope ORDER BY scope")
        for scope, key, value, at, rowid in facts.fetchmany(_FACTS):
            yield f"{scope} {key}", f"rowid = {rowid}", (scope, key, value, at)
    else:
        yield "first", f"rowid = (SELECT min(rowid) FROM {table})", first
    yield "all", "1", first


def _cell(within: str, table: str, column: str, condition: str, value: Any) -> Callable[[Path], None]:
    def apply(run: Path) -> None:
        with _opened(run / within) as database:
            # a BLOB cast to TEXT keeps its bytes
            given = "CAST(? AS TEXT)" if isinstance(value, BadText) else "?"
            value_given = bytes(value) if isinstance(value, BadText) else value
            with suppress(sqlite3.IntegrityError):  # of an INTEGER PRIMARY KEY: nothing but integers, and each once
                database.execute(f"UPDATE {table} SET {column} = {given} WHERE {condition}", (value_given,))

    return apply


def _json_cell(
    within: str, table: str, column: str, condition: str, path: Sequence[str | int], value: str
) -> Callable[[Path], None]:
    def apply(run: Path) -> None:
        with _opened(run / within) as database:
            query = f"SELECT {column} FROM {table} WHERE {condition} LIMIT 1"
            (text,) = database.execute(query).fetchone()
            changed = json.dumps(_with(json.loads(text), path, JSON[value]))
            database.execute(f"UPDATE {table} SET {column} = ? WHERE {condition}", (changed,))

    return apply


def _opened(run: Path) -> "closing[sqlite3.Connection]":
    return closing(sqlite3.connect(run / "run.sqlite", isolation_level=None))


def make_loose(database: Path) -> None:
    """Rebuild the tables of a run without types and constraints: they then take every value."""
    with closing(sqlite3.connect(database, isolation_level=None)) as file:
        file.execute("PRAGMA foreign_keys=OFF")
        for name, sql in file.execute("SELECT name, sql FROM sqlite_master WHERE type = 'table'").fetchall():
            words = re.sub(r"\) STRICT\s*$", ")", sql)
            words = re.sub(
                r"\b(TEXT|REAL|NOT NULL|REFERENCES trial\(id\)|CHECK \(only_one = 1\))(?=[\s,)])", "", words
            )
            words = re.sub(r"\bINTEGER\b(?! PRIMARY KEY)", "", words)
            file.execute(re.sub(rf"^CREATE TABLE \W?{name}\W?", "CREATE TABLE loose ", words))
            file.execute(f"INSERT INTO loose SELECT * FROM {name}")
            file.execute(f"DROP TABLE {name}")
            file.execute(f"ALTER TABLE loose RENAME TO {name}")
        file.execute("VACUUM")


# -- JSON ---------------------------------------------------------------------------------------------


def _json_leaves(stored: Any) -> Iterator[Sequence[str | int]]:
    if isinstance(stored, str) and stored[:1] in ("{", "["):
        with suppress(ValueError):
            yield from _leaves(json.loads(stored))


def _leaves(document: Any, path: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    """Yield the path of each value in a document, of lists the first two items only."""
    if path:
        yield path
    if isinstance(document, dict):
        for key, value in document.items():
            yield from _leaves(value, (*path, key))
    elif isinstance(document, list):
        for number, value in enumerate(document[:2]):
            yield from _leaves(value, (*path, number))


def _with(document: Any, path: Sequence[str | int], value: Any) -> Any:
    node = document
    for key in path[:-1]:
        node = node[key]
    node[path[-1]] = value
    return document


def _dotted(path: Sequence[str | int]) -> str:
    return ".".join(map(str, path))


def _json_file(name: str, path: Sequence[str | int], value: str) -> Callable[[Path], None]:
    def apply(folder: Path) -> None:
        file = folder / name
        file.write_text(json.dumps(_with(json.loads(file.read_text()), path, JSON[value])))

    return apply


# -- the schema ---------------------------------------------------------------------------------------

ENDLESS = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n)"


def _of_schema() -> Iterator[Mutation]:
    for version in (-1, 0, 1, 2, 3, 4, 6, 99, 2**31 - 1):
        yield Mutation("user_version", str(version), _sql(f"PRAGMA user_version={version}"))
    for table in TABLES:
        yield Mutation(f"{table}-table", "missing", _sql(f"DROP TABLE {table}"))
        yield Mutation(f"{table}-table", "no-rows", _sql(f"DELETE FROM {table}"))
        yield Mutation(f"{table}-table", "twice", _twice(table))
        yield Mutation(f"{table}-table", "further-column", _sql(f"ALTER TABLE {table} ADD COLUMN further"))
        yield Mutation(f"{table}-table", "no-last-column", _without_column(table))
        view = f"CREATE VIEW {table} AS {ENDLESS} SELECT i, i, i, i, i, i, i, i, i, i, i, i, i FROM n"
        yield Mutation(f"{table}-table", "endless-view", _sql(f"DROP TABLE {table}", view))
        trigger = (
            f"CREATE TRIGGER t BEFORE INSERT ON {table} BEGIN INSERT INTO fact {ENDLESS} SELECT i,i,i,i FROM n; END"
        )
        yield Mutation(f"{table}-table", "endless-trigger", _sql(trigger))
        yield Mutation(
            f"{table}-table", "virtual", _sql(f"DROP TABLE {table}", f"CREATE VIRTUAL TABLE {table} USING fts5(a)")
        )
    yield Mutation("schema", "further-table", _sql("CREATE TABLE further (a)"))
    yield Mutation(
        "schema", "not-sql", _sql("PRAGMA writable_schema=ON", "UPDATE sqlite_master SET sql = 'CREATE TABLE ('")
    )
    yield Mutation("schema", "wal", _sql("PRAGMA journal_mode=WAL"))
    yield Mutation("schema", "utf-16", _utf_16)
    yield Mutation("schema", "many-keys", _sql(f"INSERT INTO run {ENDLESS} SELECT 'key' || i, i FROM n LIMIT 50000"))
    yield Mutation(
        "schema", "many-facts", _sql(f"INSERT INTO fact {ENDLESS} SELECT 'host', i, i, 1.0 FROM n LIMIT 100000")
    )


def _sql(*statements: str) -> Callable[[Path], None]:
    def apply(run: Path) -> None:
        with _opened(run) as database:
            for statement in statements:
                with suppress(sqlite3.IntegrityError, sqlite3.OperationalError):  # a base need not have every table
                    database.execute(statement)

    return apply


def _twice(table: str) -> Callable[[Path], None]:
    copy = f"CREATE TABLE copy AS SELECT * FROM {table}"
    return _sql(
        copy, f"INSERT INTO copy SELECT * FROM {table}", f"DROP TABLE {table}", f"ALTER TABLE copy RENAME TO {table}"
    )


def _without_column(table: str) -> Callable[[Path], None]:
    def apply(run: Path) -> None:
        with _opened(run) as database:
            columns = [row[1] for row in database.execute(f"PRAGMA table_info({table})")]
            database.execute(f"CREATE TABLE copy AS SELECT {', '.join(columns[:-1])} FROM {table}")
            database.execute(f"DROP TABLE {table}")
            database.execute(f"ALTER TABLE copy RENAME TO {table}")

    return apply


def _utf_16(run: Path) -> None:
    with _opened(run) as old, closing(sqlite3.connect(run / "new", isolation_level=None)) as new:
        version = old.execute("PRAGMA user_version").fetchone()[0]
        new.execute("PRAGMA encoding='UTF-16le'")
        new.executescript("\n".join(old.iterdump()))
        new.execute(f"PRAGMA user_version={version}")
    (run / "new").replace(run / "run.sqlite")


# -- files --------------------------------------------------------------------------------------------

_FURTHER_OF_RUN = (
    "report.html",
    "replication.html",
    "lock",
    "run.sqlite-wal",
    "run.sqlite-shm",
    "run.sqlite-journal",
    "traces",
    "durability.html",
)
_FURTHER_OF_FLEET = (
    "fleet.html",
    "drive.log",
    "drive.lock",
    "job.sh",
    "machines.json",
    "machines-x.json",
    "set-aside",
)
_NEXT = 3
"""Raw outputs of so many trials that are still to come."""


def _of_files(folder: Path, top: Path) -> Iterator[Mutation]:
    names = [str(path.relative_to(top)) for path in sorted(folder.rglob("*"))]
    raw = [name for name in names if name.startswith("raw/")]
    is_run = "run.sqlite" in names
    last = _last_trial(folder) if is_run else 0
    coming = [
        f"raw/{last + 1 + number:06d}.solo.{stream}" for number in range(_NEXT) for stream in ("stdout", "stderr")
    ]
    listed = [name for name in names if name not in raw[2:] and "/raw/" not in name]
    further = (*_FURTHER_OF_RUN, *coming[:2]) if is_run else _FURTHER_OF_FLEET
    for name in dict.fromkeys((*listed, *further)):
        for value, change in CHANGES.items():
            yield Mutation(f"file {name}", value, _changed(name, change))
    if is_run:
        yield Mutation("file raw/*", "link", lambda run: [_link(run / name) for name in coming] and None)
        yield Mutation("file raw/*", "hard-link", lambda run: [_hard_link(run / name) for name in coming] and None)


def _last_trial(run: Path) -> int:
    with _opened(run) as database:
        return int(database.execute("SELECT max(id) FROM trial").fetchone()[0])


def _changed(name: str, change: Callable[[Path], None]) -> Callable[[Path], None]:
    def apply(run: Path) -> None:
        path = run / name
        path.parent.mkdir(parents=True, exist_ok=True)
        change(path)

    return apply


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        for each in sorted(path.rglob("*"), reverse=True):
            each.rmdir() if each.is_dir() and not each.is_symlink() else each.unlink()
        path.rmdir()
    else:
        path.unlink(missing_ok=True)


def _replaced(make: Callable[[Path], Any]) -> Callable[[Path], None]:
    def change(path: Path) -> None:
        _remove(path)
        make(path)

    return change


@_replaced
def _link(path: Path) -> None:
    path.symlink_to(f"{VICTIM}/file")


@_replaced
def _hard_link(path: Path) -> None:
    os.link(f"{VICTIM}/file", path)


def _cut(path: Path) -> None:
    if path.is_file():
        os.truncate(path, path.stat().st_size // 2)


def _sparse(path: Path) -> None:
    if not path.is_dir():
        path.touch()
        os.truncate(path, 2**40)


def _flipped(path: Path) -> None:
    """Change bytes in the middle."""
    if path.is_file() and (data := bytearray(path.read_bytes())):
        for place in range(len(data) // 3, len(data), max(1, len(data) // 40)):
            data[place] ^= 0xFF
        path.write_bytes(data)


CHANGES: dict[str, Callable[[Path], None]] = {
    "missing": _remove,
    "empty": _replaced(lambda path: path.touch()),
    "link": _link,
    "hard-link": _hard_link,
    "link-to-nothing": _replaced(lambda path: path.symlink_to(f"{VICTIM}/made")),
    "link-to-folder": _replaced(lambda path: path.symlink_to(VICTIM)),
    "link-to-itself": _replaced(lambda path: path.symlink_to(path.name)),
    "link-to-live-run": _replaced(lambda path: path.symlink_to(f"/run/weighbridge/{LIVE_RUN}/owner.json")),
    "fifo": _replaced(os.mkfifo),
    "folder": _replaced(lambda path: path.mkdir()),
    "full-folder": _replaced(lambda path: (path / "further").mkdir(parents=True)),
    "zeroes": _replaced(lambda path: os.mknod(path, 0o20644, os.makedev(1, 5))),
    "cut": _cut,
    "flipped": _flipped,
    "sparse": _sparse,
    "text": _replaced(lambda path: path.write_text("a\n" * 2**15)),
    "not-utf-8": _replaced(lambda path: path.write_bytes(b"\xff\xfe\0\x80" * 100)),
    "json-deep": _replaced(lambda path: path.write_text("[" * 100_000)),
    "json-object": _replaced(lambda path: path.write_text("{}")),
    "unreadable": lambda path: path.chmod(0) if path.exists() else None,
}


def _unit_named(unit: str, name: str) -> Callable[[Path], None]:
    def apply(folder: Path) -> None:
        (folder / "runs" / unit).rename(folder / "runs" / name)
        (folder / "runs" / f"{name[:200]}.json").write_text('{"round": 1, "began": 1.0}')

    return apply
