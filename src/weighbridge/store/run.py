"""A run directory: open it, add to it trial by trial, read it back."""

import contextlib
import fcntl
import json
import os
import sqlite3
import time
from collections.abc import Mapping
from pathlib import Path

from weighbridge.errors import RunDirectoryError
from weighbridge.model.secret import SecretName
from weighbridge.model.stored_study import study_json
from weighbridge.model.study import Study
from weighbridge.model.trial import RoleRecord, TrialRecord
from weighbridge.store.database import connect, connect_to_read, saving, transaction
from weighbridge.store.reader import SECRETS, SESSION_STARTS, RunReader
from weighbridge.store.rows import (
    Value,
    arm_row,
    cell_row,
    ladder_text,
    series_rows,
    trial_row,
)
from weighbridge.store.schema import bring_up_to_date

__all__ = ["DATABASE", "METERS_HZ", "RunStore", "Value"]

DATABASE = "run.sqlite"
_RAW = "raw"
METERS_HZ = "meters_hz"
"""The key of a run under which it keeps how many readings a second its meters took."""


class RunStore(RunReader):
    """One run directory. Writing needs ``writable=True``, which locks it against a second run."""

    def __init__(self, directory: Path, *, writable: bool = False) -> None:
        self.directory = directory
        self._lock: int | None = None
        database = directory / DATABASE
        if not writable and not database.is_file():
            raise RunDirectoryError(f"{directory} is not a run directory (it has no {DATABASE}): name one")
        with contextlib.ExitStack() as undo, saving(directory):
            undo.callback(self._let_go)
            files = (DATABASE, f"{DATABASE}-wal", f"{DATABASE}-shm", "lock")
            own = (*(directory / each for each in files), directory / _RAW, directory)
            was_a_run = database.is_file()
            self._own = tuple(each for each in own if writable and (was_a_run or not os.path.lexists(each)))
            if writable:
                (directory / _RAW).mkdir(parents=True, exist_ok=True)
                self._take_lock()
            file = connect(database) if writable else connect_to_read(database)
            undo.callback(file.close)
            super().__init__(directory, file)
            bring_up_to_date(self._db, str(directory), create=writable)
            if not writable and not self.info():
                raise RunDirectoryError(
                    f"{directory} has no data: its run ended before the first trial; start a new one"
                )
            undo.pop_all()

    def _take_lock(self) -> None:
        self._lock = os.open(self.directory / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self._let_go()
            raise RunDirectoryError(
                f"another 'weighbridge run' writes to {self.directory}: wait for it, or choose another --out"
            ) from None

    def close(self) -> None:
        """Write what is pending into the one file, and let go of the lock."""
        with contextlib.suppress(sqlite3.Error):
            self._db.execute("PRAGMA wal_checkpoint(TRUNCATE)")  # refused where it is open for reading
        self._db.close()
        self._let_go()

    def discard(self) -> None:
        """Remove the run's files, and its folders where nothing else is in them. It is not used afterwards.

        Of a folder that was no run before, nothing that was there when it was opened.
        """
        raw = self.directory / _RAW
        outputs = [*raw.glob("[0-9]*.*")] if raw in self._own else []
        for path in (*outputs, *self._own):
            with contextlib.suppress(OSError):
                if path in (raw, self.directory):
                    path.rmdir()
                else:
                    path.unlink(missing_ok=True)

    def _let_go(self) -> None:
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def __enter__(self) -> "RunStore":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # -- the run as a whole ------------------------------------------------------------------------

    def begin(self, study: Study, info: Mapping[str, str], secrets: Mapping[SecretName, str] | None = None) -> None:
        """Freeze the study into a new run. ``info`` is further keys of the run (run_id, version, ...).

        ``secrets``: the digests of the values that it needs and does not store.
        """
        keys = {
            "study": study.file.study,
            "question": study.file.question,
            "study_text": study.text,
            "baseline": study.file.baseline,
            "equivalence": repr(study.file.equivalence),
            "seed": str(study.file.seed),
            "repetitions": study.file.repetitions.model_dump_json(),
            **({"ladder": ladder_text(study.file.ladder)} if study.file.ladder else {}),
            "created": repr(time.time()),
            SECRETS: json.dumps(dict(secrets or {})),
            **info,
        }
        with saving(self.directory), transaction(self._db):
            self._db.executemany("INSERT INTO run VALUES (?, ?)", keys.items())
            self._db.execute("INSERT INTO study VALUES (1, ?)", (study_json(study),))
            self._db.executemany(
                "INSERT INTO environment VALUES (?, ?, ?, ?, ?)",
                [arm_row(i, arm) for i, arm in enumerate(study.arms)],
            )
            self._db.executemany(
                "INSERT INTO cell VALUES (?, ?, ?, ?, ?, ?)",
                [cell_row(i, cell) for i, cell in enumerate(study.cells)],
            )

    def keep_study(self, study: Study) -> None:
        """Keep the checked study of a run that was begun before runs had it."""
        with saving(self.directory):
            self._db.execute("INSERT OR REPLACE INTO study VALUES (1, ?)", (study_json(study),))

    def set_info(self, key: str, value: str) -> None:
        """Set one key of the run."""
        with saving(self.directory):
            self._db.execute("INSERT OR REPLACE INTO run VALUES (?, ?)", (key, value))

    # -- facts -------------------------------------------------------------------------------------

    def begin_session(self, facts: Mapping[str, str]) -> None:
        """Begin a session, with the facts of this machine: the trials from here on are of it."""
        now = time.time()
        with saving(self.directory), transaction(self._db):
            (last,) = self._db.execute("SELECT coalesce(max(id), 0) FROM trial").fetchone()
            starts = [*self.session_starts().items(), (now, last)]
            self._db.execute("INSERT OR REPLACE INTO run VALUES (?, ?)", (SESSION_STARTS, json.dumps(starts)))
            self._db.executemany(
                "INSERT INTO fact VALUES (?, ?, ?, ?)", [("host", k, v, now) for k, v in facts.items()]
            )

    def add_facts(self, scope: str, facts: Mapping[str, str]) -> None:
        """Add facts about ``scope`` ("host", "userland", "before", "after" or an environment)."""
        now = time.time()
        with saving(self.directory), transaction(self._db):
            self._db.executemany(
                "INSERT INTO fact VALUES (?, ?, ?, ?)", [(scope, k, v, now) for k, v in facts.items()]
            )

    # -- trials ------------------------------------------------------------------------------------

    def save(self, record: TrialRecord) -> int:
        """Commit one ended trial (its row outlives a power cut) and write its raw outputs. Gives its id."""
        with saving(self.directory), transaction(self._db):
            row = self._db.execute(
                "INSERT INTO trial (block, attempt, workload, level, environment, outcome, message, started_at,"
                " duration_s, measured_s, flags, measured_from_s) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                trial_row(record),
            )
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
            self._db.executemany("INSERT INTO series VALUES (?, ?, ?, ?, ?)", series_rows(number, record))
            self._db.executemany(
                "INSERT INTO histogram VALUES (?, ?, ?)", [(number, *each) for each in record.histograms.items()]
            )
        return number

    def _keep_raw(self, number: int, role: RoleRecord) -> tuple[str, str, int, float, str, str]:
        names = []
        for stream, data in (("stdout", role.stdout), ("stderr", role.stderr)):
            name = f"{_RAW}/{number:06d}.{role.role}.{stream}"
            (self.directory / name).write_bytes(data)
            names.append(name)
        return role.role, json.dumps(role.argv), role.returncode, role.duration_s, names[0], names[1]
