"""Runs with anything in any of their values: `compare`, `history` and `gate` use them, or say why not."""

import json
import lzma
import shutil
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner, Result

from report.made_up_runs import P99, REQUESTS, TCP, Recipe, Workload, make_run
from weighbridge.cli.app import app
from weighbridge.errors import LimitExceeded, LimitUndecided, RunDirectoryError, Untrusted
from weighbridge.store.run import DATABASE

WEB = [Workload("web", [(REQUESTS, 1000, 0.02), (P99, 3, 0.05)], (("connections", str(n)),)) for n in (50, 200)]
RECIPE = Recipe(
    costs={"host": 1.02, "bridge": 1.25}, workloads=[TCP, *WEB], loads={"web": "connections"}, blocks=6,
    facts={"host": {"kernel": "Linux 6.1", "CPU": "Imaginary"}},
)  # fmt: skip
FINISHED = Path(__file__).parents[1] / "report" / "finished_runs" / "first-look.sqlite.xz"
SOURCES = ("made up", "finished")
STEERING = "\x1b[31m|\r\n::error::`<b>"
TEXTS = [
    "",
    "x",
    "null",
    "[]",
    "{}",
    "[1]",
    "[NaN]",
    "nan",
    "inf",
    "-1",
    "1e400",
    "9" * 5000,
    "[" * 5000,
    STEERING,
    "é",
]
NUMBERS = [None, -1, 0, 1, 10**6, 2**63 - 1, 1e308, -1e308, 5e-324, 1e-300, float("inf"), float("-inf"), b"\xff\xfe"]
VALUES = st.one_of(
    st.sampled_from([*TEXTS, *NUMBERS]), st.floats(), st.text(max_size=5), st.integers(-(2**63), 2**63 - 1)
)
LEAVES = st.one_of(st.sampled_from([*TEXTS, None, True, -1, 0, 2**70, 1e308, 5e-324, [], {}]), st.floats())
TOLD = (RunDirectoryError, LimitExceeded, LimitUndecided, Untrusted)
"""How a command may end beside 0; with 2 where a run lacks what the command line names."""


@pytest.fixture(scope="module")
def sources(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Runs whose tables take anything."""
    found = {}
    for name in SOURCES:
        directory = found[name] = tmp_path_factory.mktemp(name.replace(" ", "-")) / "run"
        if name == "made up":
            make_run(directory, RECIPE).close()
        else:
            directory.mkdir()
            (directory / DATABASE).write_bytes(lzma.decompress(FINISHED.read_bytes()))
        file = sqlite3.connect(directory / DATABASE)
        file.execute("PRAGMA journal_mode=DELETE")
        file.execute("PRAGMA writable_schema=ON")
        file.execute("UPDATE sqlite_master SET sql = replace(replace(sql, 'STRICT', ''), 'NOT NULL', '')")
        file.commit()
        file.close()
    return found


class Mutated:
    """A folder of two runs of one question, of which the second is changed by a hypothesis."""

    def __init__(self, folder: Path, source: Path) -> None:
        self.folder, self.runs = folder, (folder / "before", folder / "after")
        for each in self.runs:
            each.mkdir()
            for path in source.iterdir():  # the folders of raw outputs, which nothing here changes, are not copied
                (each / path.name).symlink_to(path) if path.is_dir() else shutil.copyfile(path, each / path.name)
        self.file = sqlite3.connect(self.runs[1] / DATABASE, isolation_level=None)
        self.file.execute("PRAGMA foreign_keys=OFF")
        self.file.execute("PRAGMA synchronous=OFF")
        self.file.execute("UPDATE run SET value = 'another' WHERE key = 'run_id'")

    def mutate(self, data: st.DataObject) -> None:
        """Change a value, a part of a document, or leave out a row."""
        tables = [name for (name,) in self.file.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        table = data.draw(st.sampled_from([each for each in tables if not each.startswith("sqlite_")]), "table")
        columns = [row[1] for row in self.file.execute(f"PRAGMA table_info({table})")]
        (count,) = self.file.execute(f"SELECT count(*) FROM {table}").fetchone()
        assume(count)
        row = data.draw(st.integers(0, count - 1), "row")
        column = data.draw(st.sampled_from(columns), "column")
        number, old = self.file.execute(f"SELECT rowid, {column} FROM {table} LIMIT 1 OFFSET {row}").fetchone()
        how = data.draw(st.sampled_from(["value", "part", "row"]), "how")
        if how == "row":
            self.file.execute(f"DELETE FROM {table} WHERE rowid = {number}")
            return
        new = data.draw(VALUES, "new") if how == "value" else self._part(data, old)
        held = "CAST(? AS TEXT)" if isinstance(new, bytes) else "?"
        whole = data.draw(st.booleans(), "of every row")
        self.execute(f"UPDATE {table} SET {column} = {held}" + ("" if whole else f" WHERE rowid = {number}"), new)

    def _part(self, data: st.DataObject, old: object) -> str:
        try:
            document = json.loads(str(old))
        except ValueError:
            document = None
        places = list(_places(document))
        assume(places)
        inside, key = data.draw(st.sampled_from(places), "place")
        if data.draw(st.booleans(), "left out"):
            del inside[key]
        else:
            inside[key] = data.draw(LEAVES, "leaf")
        return json.dumps(document)

    def execute(self, statement: str, *values: object) -> None:
        """Raises UnsatisfiedAssumption where SQLite itself keeps it out."""
        try:
            self.file.execute(statement, values)
        except (sqlite3.IntegrityError, UnicodeEncodeError):
            assume(False)

    def each_command(self) -> Iterator[tuple[str, Result]]:
        """Every command that reads several runs, in both orders."""
        self.file.close()
        before, after = map(str, self.runs)
        for words in (
            ["compare", before, after, "--all"], ["compare", after, before, "--json"],
            ["compare", before, after, "--markdown", "--html", str(self.folder / "page.html")],
            ["history", str(self.folder)],
            ["history", str(self.folder), "--json", "--html", str(self.folder / "h.html")],
            ["gate", after, "--budget", "*<=35%", "--against", before, "--margin", "3%", "--json"],
            ["gate", before, "--against", after, "--margin", "3%", "--annotations", "github"],
        ):  # fmt: skip
            yield " ".join(words[:1] + words[-1:]), CliRunner().invoke(app, words)


def _places(document: Any) -> Iterator[tuple[Any, Any]]:
    """Every container and key in a JSON document."""
    for key, value in (
        document.items() if isinstance(document, dict) else enumerate(document) if isinstance(document, list) else ()
    ):
        yield document, key
        yield from _places(value)


def _is_used_or_told(command: str, ended: Result) -> None:
    error = ended.exception
    if isinstance(error, SystemExit):
        assert error.code in (0, 2), f"{command}: {ended.output}"
    elif error is not None:
        assert isinstance(error, TOLD), f"{command}: {error!r}"
        assert len(str(error).splitlines()) == 1
    assert "\x1b" not in ended.output and "\r" not in ended.output, command
    if command.endswith("--json") and ended.exit_code == 0:
        json.loads(ended.stdout, parse_constant=lambda name: pytest.fail(f"{command}: {name} is not JSON"))


def _tried(examples: int) -> settings:
    """A clean checkout tries the same each time."""
    return settings(
        max_examples=examples, deadline=None, derandomize=True,
        suppress_health_check=[HealthCheck.filter_too_much, HealthCheck.too_slow, HealthCheck.data_too_large],
    )  # fmt: skip


@_tried(3)
@given(data=st.data(), count=st.integers(1, 3))
def test_whatever_a_small_run_has_in_it_no_command_falls(sources, tmp_path_factory, data, count):
    _no_command_falls(sources, tmp_path_factory, data, "made up", count)


@pytest.mark.long
@pytest.mark.promise("whatever a run has in it, compare, history and gate use it or say in one sentence why not")
@_tried(100)
@given(data=st.data(), source=st.sampled_from(SOURCES), count=st.integers(1, 3))
def test_whatever_a_run_has_in_it_no_command_falls(sources, tmp_path_factory, data, source, count):
    _no_command_falls(sources, tmp_path_factory, data, source, count)


def _no_command_falls(sources, tmp_path_factory, data, source, count):
    mutated = Mutated(tmp_path_factory.mktemp("mutated"), sources[source])
    for _ in range(count):
        mutated.mutate(data)
    for command, ended in mutated.each_command():
        _is_used_or_told(command, ended)


KEY = "INSERT OR REPLACE INTO run VALUES"
DAMAGE = {
    "numbers that are none, among options": ["UPDATE environment SET options = '{\"x\": NaN, \"y\": Infinity}'"],
    "a number of 5,000 digits": ["UPDATE cell SET options = '{\"x\": " + "9" * 5000 + "}'"],
    "names that steer": [
        f"UPDATE {table} SET {column} = {column} || char(27) || '[31m' || char(10) || '::error::' {which}"
        for table, column, which in (
            ("environment", "name", ""), ("trial", "environment", ""), ("run", "value", "WHERE key = 'baseline'"),
            ("fact", "value", ""), ("measurement", "metric", ""),
        )
    ],
    "a key that is missing": ["DELETE FROM run WHERE key IN ('created', 'baseline', 'seed')"],
    "no baseline": ["DELETE FROM environment WHERE name = 'native'"],
    "the smallest numbers": ["UPDATE measurement SET value = 5e-324 WHERE rowid % 2"],
    "numbers worlds apart": ["UPDATE measurement SET value = 1e100 WHERE rowid % 3"],
    "a block that no run has": ["UPDATE trial SET block = 9007199254740992 WHERE rowid = 1"],
    "looks that are none": [f"{KEY} ('gate_looks', '[{{\"blocks\": 6, \"share\": NaN, \"open\": []}}]')"],
    "looks that have spent too much": [
        f"{KEY} ('gate_looks', '[" + ", ".join(['{"blocks": 1, "share": 1, "open": [], "until": 0}'] * 9) + "]')",
    ],
    "a change of blocks that is none": [f"{KEY} ('extensions', 'x')"],
    "a study that is no data": [
        "UPDATE study SET document = '{\"version\": 1, \"file\": {\"x\": NaN}, \"arms\": [], \"cells\": []}'",
    ],
}  # fmt: skip


@pytest.mark.parametrize("damage", DAMAGE)
def test_damage_that_was_met(sources, tmp_path, damage):
    mutated = Mutated(tmp_path, sources["made up"])
    for statement in DAMAGE[damage]:
        mutated.execute(statement)
    for command, ended in mutated.each_command():
        _is_used_or_told(command, ended)
