"""A run directory: open it, add to it trial by trial, read it back."""

import contextlib
import errno
import fcntl
import json
import os
import sqlite3
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from weighbridge.errors import DiskFull, RunDirectoryError
from weighbridge.model.measurement import Outcome
from weighbridge.model.study import Arm, Cell, Level, Study
from weighbridge.model.trial import RoleRecord, Trial, TrialRecord
from weighbridge.store.schema import VERSION, bring_up_to_date

DATABASE = "run.sqlite"


def level_text(level: Level) -> str:
    """A level as the store's key: JSON of its factors, empty object where nothing is swept."""
    return json.dumps(dict(level), sort_keys=True)


@contextmanager
def _saving(where: Path) -> Iterator[None]:
    """Turn 'no space' of the file system or of SQLite into DiskFull, and a broken file into one sentence."""
    try:
        yield
    except sqlite3.OperationalError as error:
        if "full" in str(error) or "disk I/O" in str(error):
            raise DiskFull.of(where) from error
        raise RunDirectoryError(f"{where}: {error}") from error
    except sqlite3.DatabaseError as error:
        raise RunDirectoryError(f"{where} is not a run of Weighbridge: {error}") from error
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise DiskFull.of(where) from error
        raise RunDirectoryError(f"{where}: {error.strerror or error}") from error


def _connect(database: Path) -> sqlite3.Connection:
    with contextlib.ExitStack() as undo:
        connection = undo.enter_context(contextlib.closing(sqlite3.connect(database, isolation_level=None)))
        for setting in ("foreign_keys=ON", "journal_mode=WAL", "synchronous=FULL"):
            connection.execute(f"PRAGMA {setting}")
        undo.pop_all()
    return connection


def _connect_to_read(database: Path) -> sqlite3.Connection:
    """Never changes the file, and needs no right to write beside it unless a run is writing or was killed."""
    pending = database.with_name(database.name + "-wal")
    mode = "mode=ro" if pending.exists() else "immutable=1"  # immutable takes no note of what is pending
    uri = f"{database.absolute().as_uri()}?{mode}"
    with contextlib.closing(sqlite3.connect(uri, uri=True, isolation_level=None)) as file:
        (version,) = file.execute("PRAGMA user_version").fetchone()
        if 0 < version < VERSION:  # upgraded in memory
            connection = sqlite3.connect(":memory:", isolation_level=None)
            file.backup(connection)
            return connection
    return sqlite3.connect(uri, uri=True, isolation_level=None)


@dataclass(frozen=True, slots=True)
class Value:
    """One measurement as it is read back, with what locates it."""

    trial_id: int
    block: int
    attempt: int
    environment: str
    workload: str
    level: str
    metric: str
    unit: str
    better: str
    value: float
    started_at: float
    flags: tuple[str, ...]


class RunStore:
    """One run directory. Writing needs ``writable=True``, which locks it against a second run."""

    def __init__(self, directory: Path, *, writable: bool = False) -> None:
        self.directory = directory
        self._lock: int | None = None
        database = directory / DATABASE
        if not writable and not database.is_file():
            raise RunDirectoryError(f"{directory} is not a run directory: it has no {DATABASE}")
        with contextlib.ExitStack() as undo, _saving(directory):
            undo.callback(self._let_go)
            if writable:
                (directory / "raw").mkdir(parents=True, exist_ok=True)
                self._take_lock()
            self._db = _connect(database) if writable else _connect_to_read(database)
            undo.callback(self._db.close)
            bring_up_to_date(self._db, str(directory), create=writable)
            if not writable and not self.info():
                raise RunDirectoryError(f"{directory} holds no run yet: it ended before its first trial")
            undo.pop_all()

    def _take_lock(self) -> None:
        self._lock = os.open(self.directory / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self._let_go()
            raise RunDirectoryError(
                f"another 'weighbridge run' is writing to {self.directory}: wait for it or choose another --out"
            ) from None

    def close(self) -> None:
        """Write what is pending into the one file, and let go of the lock."""
        with contextlib.suppress(sqlite3.Error):
            self._db.execute("PRAGMA wal_checkpoint(TRUNCATE)")  # refused where it is open for reading
        self._db.close()
        self._let_go()

    def _let_go(self) -> None:
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def __enter__(self) -> "RunStore":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # -- the run as a whole ------------------------------------------------------------------------

    def begin(self, study: Study, info: Mapping[str, str]) -> None:
        """Freeze the study into a new run. ``info`` is further keys of the run (run_id, version, ...)."""
        keys = {
            "study": study.file.study,
            "question": study.file.question,
            "study_text": study.text,
            "baseline": study.file.baseline,
            "equivalence": repr(study.file.equivalence),
            "seed": str(study.file.seed),
            "repetitions": study.file.repetitions.model_dump_json(),
            "created": repr(time.time()),
            **info,
        }
        with _saving(self.directory), self._transaction():
            self._db.executemany("INSERT INTO run VALUES (?, ?)", keys.items())
            self._db.executemany(
                "INSERT INTO environment VALUES (?, ?, ?, ?, ?)",
                [_arm_row(i, arm) for i, arm in enumerate(study.arms)],
            )
            self._db.executemany(
                "INSERT INTO cell VALUES (?, ?, ?, ?, ?, ?)",
                [_cell_row(i, cell) for i, cell in enumerate(study.cells)],
            )

    def info(self) -> dict[str, str]:
        """The run's keys: study, question, study_text, baseline, seed, run_id, created (epoch seconds), ..."""
        return dict(self._read("SELECT key, value FROM run"))

    def set_info(self, key: str, value: str) -> None:
        """Set one key of the run."""
        with _saving(self.directory):
            self._db.execute("INSERT OR REPLACE INTO run VALUES (?, ?)", (key, value))

    def environments(self) -> list[tuple[str, str, dict[str, object], str | None]]:
        """Each arm in the study's order: name, kind, options, the name of the baseline where it is the A/A arm."""
        rows = self._read("SELECT name, kind, options, aa_of FROM environment ORDER BY position")
        return [(name, kind, json.loads(options), aa_of) for name, kind, options, aa_of in rows]

    def cells(self) -> list[tuple[str, str, str, str, dict[str, object]]]:
        """Each workload and level in the study's order: workload, level (JSON), kind, label, options."""
        rows = self._read("SELECT workload, level, kind, label, options FROM cell ORDER BY position")
        return [(workload, level, kind, label, json.loads(options)) for workload, level, kind, label, options in rows]

    # -- facts -------------------------------------------------------------------------------------

    def add_facts(self, scope: str, facts: Mapping[str, str]) -> None:
        """Add what was found out about ``scope`` ("host", "userland", "before", "after" or an environment)."""
        now = time.time()
        with _saving(self.directory), self._transaction():
            self._db.executemany(
                "INSERT INTO fact VALUES (?, ?, ?, ?)", [(scope, k, v, now) for k, v in facts.items()]
            )

    def facts(self) -> list[tuple[str, str, str, float]]:
        """Every fact: scope, key, value, when (epoch seconds)."""
        return self._read("SELECT scope, key, value, at FROM fact ORDER BY rowid")

    # -- trials ------------------------------------------------------------------------------------

    def save(self, record: TrialRecord) -> int:
        """Commit one ended trial (its row outlives a power cut) and write its raw outputs. Gives its id."""
        trial = record.trial
        with _saving(self.directory), self._transaction():
            row = self._db.execute(
                "INSERT INTO trial (block, attempt, workload, level, environment, outcome, message, started_at,"
                " duration_s, measured_s, flags) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                (trial.block, trial.attempt, trial.workload, level_text(trial.level), trial.environment,
                 str(record.outcome), record.message, record.started_at, record.duration_s, record.measured_s,
                 json.dumps(record.flags)),
            )  # fmt: skip
            number = row.lastrowid or 0
            self._db.executemany(
                "INSERT INTO process VALUES (?, ?, ?, ?, ?, ?, ?)",
                [(number, *self._keep_raw(number, role)) for role in record.roles],
            )
            self._db.executemany(
                "INSERT INTO measurement VALUES (?, ?, ?, ?, ?)",
                [(number, m.metric.name, m.metric.unit, m.metric.better, m.value) for m in record.measurements],
            )
            self._db.executemany("INSERT INTO sample VALUES (?, ?, ?, ?)", [(number, *s) for s in record.samples])
        return number

    def _keep_raw(self, number: int, role: RoleRecord) -> tuple[str, str, int, float, str, str]:
        names = []
        for stream, data in (("stdout", role.stdout), ("stderr", role.stderr)):
            name = f"raw/{number:06d}.{role.role}.{stream}"
            (self.directory / name).write_bytes(data)
            names.append(name)
        return role.role, json.dumps(role.argv), role.returncode, role.duration_s, names[0], names[1]

    def spent_s(self) -> float:
        """Seconds that all trials took so far."""
        return float(self._read("SELECT coalesce(sum(duration_s), 0) FROM trial")[0][0])

    def finished(self) -> dict[Trial, Outcome]:
        """Every trial that ended, with its outcome."""
        rows = self._read("SELECT block, attempt, workload, level, environment, outcome FROM trial")
        return {
            Trial(block, attempt, workload, tuple(sorted(json.loads(level).items())), environment): Outcome(outcome)
            for block, attempt, workload, level, environment, outcome in rows
        }

    def values(self) -> list[Value]:
        """Every measurement of every trial that ended well, in the order in which the trials ran."""
        rows = self._read(
            "SELECT t.id, t.block, t.attempt, t.environment, t.workload, t.level, m.metric, m.unit, m.better,"
            " m.value, t.started_at, t.flags FROM measurement m JOIN trial t ON t.id = m.trial WHERE t.outcome = 'ok'"
            " ORDER BY t.started_at, t.id, m.rowid"
        )
        return [Value(*[*row[:-1], tuple(json.loads(row[-1]))]) for row in rows]

    def trials(self) -> list[dict[str, object]]:
        """Every trial as a row of its columns (flags as a list), in the order in which they ran."""
        return [
            {**row, "flags": json.loads(str(row["flags"]))} for row in self._rows("SELECT * FROM trial ORDER BY id")
        ]

    def processes(self) -> list[dict[str, object]]:
        """Every process: trial, role, argv (list), returncode, duration_s, stdout and stderr (paths in the run)."""
        return [{**row, "argv": json.loads(str(row["argv"]))} for row in self._rows("SELECT * FROM process")]

    def samples(self) -> list[dict[str, object]]:
        """Every meter reading: trial, site, name, value."""
        return self._rows("SELECT * FROM sample")

    def _rows(self, query: str) -> list[dict[str, object]]:
        with _saving(self.directory):
            cursor = self._db.execute(query)
            names = [column[0] for column in cursor.description]
            return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]

    def _read(self, query: str) -> list[Any]:
        with _saving(self.directory):
            return self._db.execute(query).fetchall()

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        self._db.execute("BEGIN IMMEDIATE")
        try:
            yield
            self._db.execute("COMMIT")
        except BaseException:
            with contextlib.suppress(sqlite3.Error):
                self._db.execute("ROLLBACK")
            raise


def _arm_row(position: int, arm: Arm) -> Sequence[object]:
    return arm.name, position, arm.kind, arm.options.model_dump_json(), arm.aa_of


def _cell_row(position: int, cell: Cell) -> Sequence[object]:
    return cell.workload, level_text(cell.level), position, cell.kind, cell.options.model_dump_json(), cell.label
