"""A run directory: opens it, adds trials, and reads it back. A kept file is only read."""

import contextlib
import json
import os
import shlex
import sqlite3
import time
from collections.abc import Iterator, Mapping
from dataclasses import replace
from fnmatch import fnmatch
from pathlib import Path
from typing import TYPE_CHECKING

from weighbridge.errors import RunDirectoryError
from weighbridge.linux import file_lock
from weighbridge.linux.file_rights import rights_of_owner
from weighbridge.model.secret import SecretName
from weighbridge.model.stored_study import study_json
from weighbridge.model.trial import RoleRecord, TrialRecord
from weighbridge.secret_values import redacted, redacted_fact
from weighbridge.store.database import (
    DATABASE,
    SIDE_FILES,
    WAL,
    connect,
    consistent_files,
    in_memory,
    read_copy,
    saving,
    transaction,
)
from weighbridge.store.reader import SECRETS, SESSION_STARTS, RunReader
from weighbridge.store.rows import (
    Value,
    arm_row,
    cell_row,
    ladder_text,
    series_rows,
    trial_row,
)
from weighbridge.store.safe_folder import SafeFolder
from weighbridge.store.schema import bring_up_to_date
from weighbridge.store.unpacking import is_kept_file, read_kept_file
from weighbridge.store.versions import measures_two_versions

if TYPE_CHECKING:
    from weighbridge.model.study import Study


__all__ = ["DATABASE", "METERS_HZ", "RunStore", "Value", "trials_of_live_run"]

STATUS = "run.status.json"
"""The file with the number of finished trials. It exists only while a process writes the run, or after a crash."""
_STATUS_WIDTH = 12
_LOCK, _RAW = "lock", "raw"
METERS_HZ = "meters_hz"
"""The key of a run for the number of readings per second of its meters."""


class RunStore(RunReader):
    """One run: a directory, or a kept file. Writing needs a directory and ``writable=True``, which locks it.

    ``content`` is the database of a kept file that was already unpacked; ``directory`` then only names it.
    """

    def __init__(self, directory: Path, *, writable: bool = False, content: bytes | None = None) -> None:
        self.directory = directory
        self.is_kept_file = content is not None or is_kept_file(directory)
        self._content = content
        self._closing = contextlib.ExitStack()
        if self.is_kept_file:
            self._open_kept_file(writable=writable)
            return
        if not writable and not os.path.lexists(directory):
            raise RunDirectoryError(f"there is no directory {directory}")
        if not writable and not os.path.lexists(directory / DATABASE):
            raise RunDirectoryError(
                f"{directory} is not a run directory (it has no {DATABASE}): name one, or a kept file"
            )
        with contextlib.ExitStack() as undo, saving(directory):
            undo.push(self._closing)
            self._own = self._names_to_discard() if writable else ()
            if writable:
                directory.mkdir(parents=True, exist_ok=True)
            self._folder = self._closing.enter_context(SafeFolder.open(directory, writable=writable))
            self._folder_status = os.fstat(self._folder.descriptor)
            if writable:
                with self._rights():
                    self._open_to_write()
            else:
                self._open_to_read()
            undo.pop_all()

    @contextlib.contextmanager
    def _rights(self) -> Iterator[None]:
        """Write files with the rights of the directory's owner if root would have more."""
        try:
            with rights_of_owner(self._folder_status):
                yield
        except PermissionError as error:
            if os.geteuid() != 0:
                raise
            raise RunDirectoryError(
                f"{self.directory} belongs to user {self._folder_status.st_uid} and some of its files do not. Root "
                "has only that user's rights there: change the owner of these files, or choose another --out"
            ) from error

    def _open_to_write(self) -> None:
        self._lock_run()
        with contextlib.suppress(FileExistsError):
            os.mkdir(_RAW, dir_fd=self._folder.descriptor)
        self._raw = self._closing.enter_context(self._folder.subfolder(_RAW))
        super().__init__(self.directory, self._closing.enter_context(contextlib.closing(connect(self._folder))))
        bring_up_to_date(self._db, str(self.directory), create=True)
        self._closing.callback(self._remove_status)
        self._write_status(self._db.execute("SELECT count(*) FROM trial").fetchone()[0], replace_file=True)

    def _open_kept_file(self, *, writable: bool) -> None:
        with contextlib.ExitStack() as undo, saving(self.directory):
            undo.push(self._closing)
            if self._content is None:
                self._content = read_kept_file(self.directory)
            self._open_to_read()
            if writable:
                self.require_changeable()
            undo.pop_all()

    def _open_to_read(self) -> None:
        super().__init__(self.directory, self._closing.enter_context(contextlib.closing(self._copy())))
        bring_up_to_date(self._db, str(self.directory), create=False)
        if not self.info():
            raise RunDirectoryError(
                f"{self.directory} has no data because its run ended before the first trial: start a new run"
            )
        self._db.execute("PRAGMA query_only=ON")

    def _copy(self) -> sqlite3.Connection:
        return read_copy(self._folder) if self._content is None else in_memory(self._content)

    def _names_to_discard(self) -> tuple[str, ...]:
        names = (DATABASE, *SIDE_FILES, _LOCK, STATUS, _RAW, "")
        was_a_run = (self.directory / DATABASE).is_file()
        return tuple(name for name in names if was_a_run or not os.path.lexists(self.directory / name))

    def _lock_run(self) -> None:
        """Lock the run against a second writer. Readers take no lock, so none of them can stop or delay a run."""
        lock = self._folder.open_file(_LOCK, os.O_RDWR | os.O_CREAT)
        self._closing.callback(os.close, lock)
        if not file_lock.take(lock):
            raise RunDirectoryError(
                f"another 'weighbridge run' is writing to {self.directory}: wait until it ends, or choose "
                "another --out"
            )

    def close(self) -> None:
        """Write pending changes into the database file, and release the lock."""
        if self.is_kept_file:
            self._closing.close()
            return
        with contextlib.suppress(RunDirectoryError), self._rights():
            self._db.close()  # the last connection copies its log into the database, and removes it
        self._closing.close()

    def discard(self) -> None:
        """Remove the run's files, and its folders if they are empty. The store cannot be used afterwards.

        In a folder that was not a run before, existing files stay.
        """
        outputs = self._raw.names() if _RAW in self._own else []
        for name in outputs:
            if fnmatch(name, "[0-9]*.*"):
                with contextlib.suppress(OSError):
                    self._raw.remove(name)
        for name in self._own:
            with contextlib.suppress(OSError):
                if name == "":
                    self.directory.rmdir()
                elif name == _RAW:
                    os.rmdir(name, dir_fd=self._folder.descriptor)
                else:
                    self._folder.remove(name)

    def _write_status(self, trials: int, *, replace_file: bool = False) -> None:
        """Write the number of finished trials, so that other hosts do not read the database of a live run for it.

        The text always has the same length. Each trial therefore writes over it in place: if a trial replaced the
        file, some file systems would write it to the disk at once. A file that is not safe to write over is replaced.
        """
        text = f'{{"trials": {trials:{_STATUS_WIDTH}}}}\n'
        with contextlib.suppress(OSError, RunDirectoryError), self._rights():  # the run needs no status
            if not replace_file:
                with contextlib.suppress(RunDirectoryError):
                    self._folder.overwrite(STATUS, text)
                    return
            self._folder.replace(STATUS, text)

    def _remove_status(self) -> None:
        with contextlib.suppress(OSError):
            self._folder.remove(STATUS)

    def __enter__(self) -> "RunStore":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # -- the run -----------------------------------------------------------------------------------

    def begin(self, study: "Study", info: Mapping[str, str], secrets: Mapping[SecretName, str] | None = None) -> None:
        """Store the study in a new run. ``info`` has further keys of the run (run_id, version, ...).

        ``secrets`` are the digests of the values that it needs and does not store.
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

    def keep_study(self, study: "Study") -> None:
        """Store the checked study of a run that an older version began."""
        with saving(self.directory):
            self._db.execute("INSERT OR REPLACE INTO study VALUES (1, ?)", (study_json(study),))

    def set_info(self, key: str, value: str) -> None:
        """Set one key of the run."""
        with saving(self.directory):
            self._db.execute("INSERT OR REPLACE INTO run VALUES (?, ?)", (key, value))

    def require_changeable(self) -> None:
        """Raise RunDirectoryError if the run is a kept file, which no command continues or changes."""
        if self.is_kept_file:
            kit = f"weighbridge kit --run {shlex.quote(str(self.directory))}"
            repeat = f"{kit} writes a folder that measures it again"
            if (study := self.study()) is not None and measures_two_versions(study):
                repeat = "to measure both versions again, run 'weighbridge weigh --base' in their repository"
            raise RunDirectoryError(f"{self.directory} is a kept run, which cannot be continued or changed: {repeat}")

    def copy(self) -> sqlite3.Connection:
        """Return a copy of the run's database in memory, with the tables of this version, which can be changed."""
        with saving(self.directory), contextlib.ExitStack() as undo:
            copy = undo.enter_context(contextlib.closing(self._copy()))
            bring_up_to_date(copy, str(self.directory), create=False)
            undo.pop_all()
        return copy

    def file(self) -> bytes:
        """Return the content of the run's file. Raises RunDirectoryError if a log next to it has later changes."""
        if self._content is not None:
            return self._content
        with saving(self.directory):
            files = consistent_files(self._folder)
        if files[WAL]:
            raise RunDirectoryError(
                f"{self.directory} is still being written, or its process was killed: finish it first with "
                f"'weighbridge run --out {self.directory}'"
            )
        return bytes(files[DATABASE])

    # -- facts -------------------------------------------------------------------------------------

    def begin_session(self, facts: Mapping[str, str]) -> None:
        """Begin a session with the facts of this machine; the following trials belong to it."""
        now = time.time()
        with saving(self.directory), transaction(self._db):
            (last,) = self._db.execute("SELECT coalesce(max(id), 0) FROM trial").fetchone()
            starts = [*self.session_starts().items(), (now, last)]
            self._db.execute("INSERT OR REPLACE INTO run VALUES (?, ?)", (SESSION_STARTS, json.dumps(starts)))
            self._add_facts("host", facts, now)

    def add_facts(self, scope: str, facts: Mapping[str, str]) -> None:
        """Add facts about ``scope`` ("host", "userland", "before", "after" or an environment)."""
        with saving(self.directory), transaction(self._db):
            self._add_facts(scope, facts, time.time())

    def _add_facts(self, scope: str, facts: Mapping[str, str], now: float) -> None:
        rows = [(scope, key, redacted_fact(value), now) for key, value in facts.items()]
        self._db.executemany("INSERT INTO fact VALUES (?, ?, ?, ?)", rows)

    # -- trials ------------------------------------------------------------------------------------

    def save(self, record: TrialRecord) -> int:
        """Commit one ended trial (its row survives a power cut), write its raw outputs, and return its id.

        An empty output has no file.
        """
        flags = tuple(replace(flag, text=redacted(flag.text)) for flag in record.flags)
        record = replace(record, message=redacted(record.message), flags=flags)
        with saving(self.directory), self._rights(), transaction(self._db):
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
        self._write_status(number)  # trials are numbered from 1, and none is ever deleted
        return number

    def _keep_raw(self, number: int, role: RoleRecord) -> tuple[str, str, int, float, str, str]:
        names = []
        for stream, data in (("stdout", role.stdout), ("stderr", role.stderr)):
            name = f"{number:06d}.{role.role}.{stream}"
            if data:
                self._raw.write_new(name, data)
            else:
                self._raw.remove(name)  # a file of a trial that was not committed
            names.append(f"{_RAW}/{name}")
        return role.role, json.dumps(role.argv), role.returncode, role.duration_s, names[0], names[1]


def trials_of_live_run(directory: Path) -> int | None:
    """Return the number of finished trials of a run that a process is writing; None if no process is.

    A run whose process was killed still has this number.
    """
    try:
        with SafeFolder.open(directory) as folder:
            trials = json.loads(folder.read(STATUS, 2**10))["trials"]
    except (OSError, RunDirectoryError, ValueError, TypeError, KeyError):
        return None
    return trials if isinstance(trials, int) and trials >= 0 else None
