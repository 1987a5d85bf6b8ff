"""A damaged run is told in one sentence, by every command that reads runs: no traceback, no number of garbage."""

import json
import shutil
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

from report.made_up_runs import P99, REQUESTS, TCP, Recipe, Workload, make_run
from sentences import raises_sentence
from weighbridge.analysis.metered import hosts_of
from weighbridge.analysis.plan import meters_hz
from weighbridge.analysis.remarks.confounders import confounders
from weighbridge.cli.app import app
from weighbridge.errors import LimitExceeded, LimitUndecided, RunDirectoryError, Untrusted
from weighbridge.features.replication import command as replicate
from weighbridge.store import schema
from weighbridge.store.run import DATABASE, RunStore

WEB = [Workload("web", [(REQUESTS, 1000, 0.02), (P99, 3, 0.05)], (("connections", str(n)),)) for n in (50, 200, 500)]
RECIPE = Recipe(
    costs={"host": 1.02, "bridge": 1.25}, workloads=[TCP, *WEB], loads={"web": "connections"}, blocks=2,
    ladder=["native", "host", "bridge"], histograms={"latency": 0.001}, series=True, study="docker-networks",
    facts={"packet sizes": {"native/tcp": "1472 B", "bridge/tcp": "1418 B (probed)"}}, outputs=True,
)  # fmt: skip
COMMANDS = {
    "report": ["report"],
    "json": ["report", "--json"],
    "export": ["export", "--csv", "tables"],
    "replicate": ["replicate", "--report"],
}
TEXTS = [None, "", "x", "null", "[1]", "[NaN]", "9" * 5000, "[" * 100_000, b"\xff\xfe"]
NUMBERS = [None, "x", -1, 1e308, -1e308, 5e-324, float("inf"), 2**63 - 1, b"\xff"]
REPETITIONS = [
    "{'blocks': 'x'}",
    '{"target": 0.1, "min": 9, "max": 9999999999}',
    '{"target": "x"}',
    '{"target": 0.1, "min": 9, "max": 5}',
]
DOCUMENTS = [
    "{}",
    '{"version": 2, "file": {}, "arms": [], "cells": []}',
    '{"version": 1, "file": {"hosts": 1}, "arms": [], "cells": []}',
    '{"version": 1, "file": {"meters": {"hz": "x"}}, "arms": [], "cells": []}',
    '{"version": 1, "file": {"environments": {"bridge": {"workloads": 1}}}, "arms": [], "cells": []}',
    '{"version": 1, "file": {}, "arms": [{"name": "native"}], "cells": []}',
]
DAMAGE = [
    *(("run", f"value WHERE key = '{key}'", text) for key in ("loads", "ladder") for text in TEXTS),
    *(("run", "value WHERE key = 'repetitions'", text) for text in (*TEXTS, *REPETITIONS)),
    *(("run", "value WHERE key = 'equivalence'", text) for text in ("x", "nan", "inf")),
    *(("run", "value WHERE key = 'created'", text) for text in ("x", "nan", "1e300")),
    *(("environment", column, text) for column in ("options", "name", "aa_of") for text in ("[1]", "{", b"\xff\xfe")),
    *(("cell", column, text) for column in ("options", "level") for text in TEXTS),
    *(("trial", column, text) for column in ("flags", "level") for text in TEXTS),
    *(("trial", column, "nobody") for column in ("outcome", "environment", "workload")),
    *(("trial", column, number) for column in ("block", "started_at", "measured_s") for number in NUMBERS),
    *(("trial", "measured_from_s", number) for number in NUMBERS if number is not None),
    *(("measurement", "value", number) for number in NUMBERS if number not in (-1, 2**63 - 1)),
    *(("measurement", "better", text) for text in ("", "x", None)),
    *(("histogram", "encoded", text) for text in TEXTS),
    *(("study", "document", text) for text in (*TEXTS, *DOCUMENTS)),
]
"""Table, column (with a condition), and what is written there: a report cannot be made of any of it."""
ODD = [
    ("trial", "flags", '["steal 1e999%", "load \\u001b[31m"]'),
    ("trial", "message", "\x1b[31m"),
    ("measurement", "value", 1e100),
    ("fact", "value", "x" * 100_000),
]
"""What a report can be made of all the same."""
KEY = "INSERT OR REPLACE INTO run VALUES"
MET = {
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
"""Damage that made a command that reads several runs fall, or print what steers a terminal."""
OF_SEVERAL = (
    "compare BEFORE AFTER --all", "compare AFTER BEFORE --json", "compare BEFORE AFTER --markdown --html page.html",
    "history .", "history . --json --html h.html",
    "gate AFTER --budget *<=35% --against BEFORE --margin 3% --json",
    "gate BEFORE --against AFTER --margin 3% --annotations github",
)  # fmt: skip
STUDIES = [
    "", "&a [*a]", "meters: {hz: x}", "meters: {hz: .nan}", "meters: {hz: 1e300}", "meters: [2]", "hosts: 1",
    "environments: {bridge: 1}", "- x\n  - y: [", "\x01", "!!python/object:os.system {}", "a: " + "[" * 300,
]  # fmt: skip


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run whose tables take anything."""
    directory = tmp_path_factory.mktemp("whole") / "run"
    make_run(directory, RECIPE).close()
    database = sqlite3.connect(directory / DATABASE)
    database.execute("PRAGMA journal_mode=DELETE")
    database.execute("PRAGMA writable_schema=ON")
    database.execute("UPDATE sqlite_master SET sql = replace(replace(sql, 'STRICT', ''), 'NOT NULL', '')")
    database.commit()
    database.close()
    return directory


@pytest.fixture
def run(whole: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A copy of it, to be damaged."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(replicate, "_offers", lambda study: [])
    run = tmp_path / "run"
    run.mkdir()
    for path in whole.iterdir():  # the folders of raw outputs, which nothing here changes, are not copied
        (run / path.name).symlink_to(path) if path.is_dir() else shutil.copyfile(path, run / path.name)
    yield run


def _execute(run: Path, *statements: str, value: object = None) -> None:
    database = sqlite3.connect(run / DATABASE)
    database.execute("PRAGMA synchronous=OFF")
    for statement in statements:
        database.execute(statement, (value,) if "?" in statement else ())
    database.commit()
    database.close()


def _write(run: Path, table: str, column: str, value: object) -> None:
    name, _, condition = column.partition(" ")
    new = "CAST(? AS TEXT)" if isinstance(value, bytes) else "?"
    where = condition or f"WHERE rowid = (SELECT max(rowid) FROM {table})"
    _execute(run, "PRAGMA foreign_keys=OFF", f"UPDATE {table} SET {name} = {new} {where}", value=value)


def _ended(run: Path, command: str) -> BaseException | None:
    return CliRunner().invoke(app, [*COMMANDS[command], str(run)]).exception


def _is_told(ended: BaseException | None) -> None:
    assert isinstance(ended, RunDirectoryError), repr(ended)
    assert len(str(ended).splitlines()) == 1


@pytest.mark.parametrize(("table", "column", "value"), DAMAGE)
def test_a_damaged_cell_is_told(run: Path, table: str, column: str, value: object):
    _write(run, table, column, value)
    _is_told(_ended(run, "json"))


def test_what_is_only_odd_is_reported(run: Path):
    for table, column, value in ODD:
        _write(run, table, column, value)
    assert _ended(run, "json") is None
    assert _ended(run, "export") is None


@pytest.mark.parametrize("text", STUDIES)
def test_whatever_the_study_of_an_older_run_says_it_is_read(run: Path, text: str):
    _execute(run, "DELETE FROM study")
    _write(run, "run", "value WHERE key = 'study_text'", text)
    with RunStore(run) as store:
        assert meters_hz(store) == 1.0
        assert hosts_of(store) == ()
        assert confounders(store.facts(), dict.fromkeys(("native", "host", "bridge"), "native"), store.study_file())


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize(
    "damage",
    [
        "PRAGMA user_version=-5",
        "PRAGMA user_version=0",
        f"PRAGMA user_version={schema.VERSION + 1}",
        "DROP TABLE cell",
        "DELETE FROM environment",
        "DELETE FROM cell",
        "UPDATE measurement SET value = 1e308",
        "ALTER TABLE trial RENAME COLUMN flags TO other",
    ],
)
def test_every_command_tells_of_damage(run: Path, command: str, damage: str):
    _execute(run, "PRAGMA foreign_keys=OFF", damage)
    _is_told(_ended(run, command))


@pytest.mark.parametrize("damage", MET)
def test_commands_that_read_several_runs_use_a_damaged_one_or_tell(whole: Path, run: Path, damage: str):
    (run.parent / "before").mkdir()
    shutil.copyfile(whole / DATABASE, run.parent / "before" / DATABASE)
    _execute(run, "PRAGMA foreign_keys=OFF", "UPDATE run SET value = 'x' WHERE key = 'run_id'", *MET[damage])
    for line in OF_SEVERAL:
        words = line.replace("BEFORE", str(run.parent / "before")).replace("AFTER", str(run)).split()
        ended = CliRunner().invoke(app, words)
        error = ended.exception
        if isinstance(error, SystemExit):
            assert error.code in (0, 2), (line, ended.output)
        elif error is not None:
            assert isinstance(error, RunDirectoryError | LimitExceeded | LimitUndecided | Untrusted), (line, error)
            assert len(str(error).splitlines()) == 1
        assert not {"\x1b", "\r"} & {*ended.output}, line
        if "--json" in words and ended.exit_code == 0:
            json.loads(
                ended.stdout, parse_constant=lambda name, line=line: pytest.fail(f"{line}: {name} is not JSON")
            )


@pytest.mark.parametrize("column", ["argv", "returncode", "stdout", "role"])
def test_processes_that_are_garbage_are_told(run: Path, column: str):
    _write(run, "process", column, b"\xff\xfe{")
    with RunStore(run) as store, pytest.raises(RunDirectoryError):
        store.processes()


@pytest.mark.parametrize("column", ["at_s", "vals"])
@pytest.mark.parametrize("value", ["x", "[1]", "[null]", "[NaN]", "{}"])
def test_readings_that_are_garbage_are_told(run: Path, column: str, value: str):
    _write(run, "series", column, value)
    with RunStore(run) as store, pytest.raises(RunDirectoryError):
        store.series()


def test_readings_just_beside_a_trial_are_reported(run: Path):
    _execute(run, "UPDATE series SET at_s = '[-5, -5, 80]', vals = '[1, 1, 1]'")
    assert _ended(run, "report") is None


@pytest.mark.parametrize("times", [[], [-100.0], [2.0, 1.0], [4e9], [1e100]])
def test_readings_at_times_that_no_trial_has_are_told(run: Path, times: list[float]):
    _execute(run, f"UPDATE series SET at_s = '{times}', vals = '{[1.0] * len(times)}'")
    _is_told(_ended(run, "report"))
    with RunStore(run) as store, raises_sentence(RunDirectoryError):
        store.series()
