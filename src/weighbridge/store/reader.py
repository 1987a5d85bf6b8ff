"""The rows of a run with types: checked when they are read, and cached until the run is written."""

import json
import math
import sqlite3
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar, cast

from pydantic import TypeAdapter

from weighbridge.errors import RunDirectoryError
from weighbridge.model.decisions import (
    BlockSchedule,
    GateLook,
    LeftOut,
    TrialLength,
    block_schedules_of,
    gate_looks_of,
    left_out_of,
    lengths_of,
)
from weighbridge.model.ladder import Rung
from weighbridge.model.measurement import Outcome
from weighbridge.model.names import RunId
from weighbridge.model.secret import SecretName, hidden_text
from weighbridge.model.stored_study import StoredFile, StoredStudy
from weighbridge.model.trial import PREPARATION, WARM_UP, Series, Trial
from weighbridge.store import reading
from weighbridge.store.database import saving
from weighbridge.store.rows import (
    CellRow,
    PilotTrial,
    StoredProcess,
    StoredSample,
    StoredTrial,
    Value,
    rungs_of,
)
from weighbridge.store.study_text import file_of_text

LEFT_OUT = "left_out"
"""The key of a run for the environments that it does not measure."""
TIME_IS_OVER = "time_is_over"
"""The key of a run that ended because its time was over; a further call does not continue it."""
LENGTHS = "trial_lengths"
"""The key of a run for the chosen lengths of trials."""
ALLOTMENTS = "allotments"
"""The key of a run for the numbers of blocks that workloads took part in, if time was short."""
SESSION_STARTS = "session_starts"
"""The key of a run for the last trial before each of its sessions."""
GATE_LOOKS = "gate_looks"
"""The key of a run for the looks of gates."""
SECRETS = "secrets"
"""The key of a run for the digests of values that it does not store."""
_COUNTED = "trial NOT IN (SELECT id FROM trial WHERE block IS 0)"
"""The rows of trials that count; trials of the pilot block (0) only choose lengths."""

Row = TypeVar("Row", bound=tuple[object, ...])
Stored = TypeVar("Stored")


def run_identity(run_id: RunId, *study: str) -> str:
    """Return the text that distinguishes a run from every other one: its id and its study in all stored forms."""
    return json.dumps([run_id, *study])


class RunReader:
    """The rows of a run. Every method raises RunDirectoryError if the file is damaged."""

    is_kept_file: bool = False
    """Whether the run is a file that can only be read, without the directory in which it was measured."""

    def __init__(self, directory: Path, file: sqlite3.Connection) -> None:
        self.directory = directory
        self._db = file
        self._cache: dict[str, tuple[int, list[Any]]] = {}

    # -- the run -----------------------------------------------------------------------------------

    def info(self) -> dict[str, str]:
        """Return the run's keys: study, question, study_text, baseline, seed, run_id, created (epoch seconds), ..."""
        return dict(self._read_once("info", self._info))

    def _info(self) -> list[tuple[str, str]]:
        keys = dict(self._read(reading.KEYS, "the run's keys", "SELECT key, value FROM run"))
        for key, kind in reading.KEY_TYPES.items():
            with reading.checked(self.directory, f"the run's {key}"):
                if key in keys:
                    kind.validate_python(keys[key])
        return list(keys.items())

    @property
    def run_id(self) -> RunId:
        """Return the id of the run. Raises RunDirectoryError if it has none."""
        try:
            return RunId(self.info().get(reading.RUN_ID, ""))
        except ValueError as error:
            raise RunDirectoryError(f"{self.directory} is damaged: the run has no id") from error

    def secrets(self) -> dict[SecretName, str] | None:
        """Return the digests of the unstored values, by name; None if an older version began the run."""
        text = self.info().get(SECRETS)
        return None if text is None else dict(json.loads(text))

    @property
    def identity(self) -> str:
        """Return the id and the study of the run, so that another run cannot use the digests of its secrets."""
        documents = self._read(reading.TEXTS, "the run's study", "SELECT document FROM study")
        return run_identity(self.run_id, self.info().get("study_text", ""), *(text for (text,) in documents))

    def shown_study_text(self) -> str:
        """Return the study's text for users, without the values that an older version stored."""
        text = self.info().get("study_text", "")
        return hidden_text(text) if self.secrets() is None else text

    def study(self) -> StoredStudy | None:
        """Return the study as it was checked when the run began; None for runs from before version 5."""
        return next(iter(self._read_once("study", self._study)), None)

    def _study(self) -> list[StoredStudy]:
        rows = self._read(reading.TEXTS, "the run's study", "SELECT document FROM study")
        with reading.checked(self.directory, "the run's study"):
            return [StoredStudy.model_validate_json(text) for (text,) in rows]

    def study_file(self) -> StoredFile:
        """Return the content of the study file; for runs from before version 5, the readable part of its text."""
        stored = self.study()
        if stored is not None:
            return stored.file
        return self._read_once("study text", lambda: [file_of_text(self.info().get("study_text", ""))])[0]

    def ladder(self) -> tuple[Rung, ...]:
        """Return the ladder with which the run began; empty if the study has none."""
        return rungs_of(self.info().get("ladder", "[]"))

    def environments(self) -> list[tuple[str, str, dict[str, object], str | None]]:
        """Return each arm in the study's order: name, kind, options, and for the A/A arm the baseline's name."""
        query = "SELECT name, kind, options, aa_of FROM environment ORDER BY position"
        return self._read(reading.ENVIRONMENTS, "environments", query)

    def left_out(self) -> tuple[LeftOut, ...]:
        """Return the environments that could not be opened and are not measured, with the reasons."""
        return left_out_of(self.info().get(LEFT_OUT, "[]"))

    def cells(self) -> list[CellRow]:
        """Return each workload and level in the study's order: workload, level, kind, label, options."""
        return self._rows(reading.CELLS, CellRow, "workloads", "cell ORDER BY position")

    def facts(self) -> list[tuple[str, str, str, float]]:
        """Return every fact: scope, key, value, time (epoch seconds)."""
        return self._read(reading.FACTS, "facts", "SELECT scope, key, value, at FROM fact ORDER BY rowid")

    def session_starts(self) -> dict[float, int]:
        """Return the id of the last trial before each session (0: none), by the time of its facts of this machine.

        Sessions of older versions are missing.
        """
        return {float(started): last for started, last in json.loads(self.info().get(SESSION_STARTS, "[]"))}

    # -- trials ------------------------------------------------------------------------------------

    def spent_s(self) -> float:
        """Return the total seconds of all trials so far."""
        query = "SELECT coalesce(sum(duration_s), 0.0) FROM trial"
        return self._read(reading.SPENT, "trials", query)[0][0]

    def finished(self) -> dict[Trial, Outcome]:
        """Return every trial that ended, with its outcome."""
        return {trial: outcome for trial, (outcome, _) in self.endings().items()}

    def endings(self) -> dict[Trial, tuple[Outcome, str]]:
        """Return every trial that ended, with its outcome and message."""
        query = "SELECT block, attempt, workload, level, environment, outcome, message FROM trial"
        rows = self._read(reading.FINISHED, "trials", query)
        return {
            Trial(block, attempt, workload, level, environment): (outcome, message)
            for block, attempt, workload, level, environment, outcome, message in rows
        }

    def values(self) -> list[Value]:
        """Return every measurement of every successful trial, in the order of the trials."""
        return self._read_once("values", self._values)

    def measured(self) -> Mapping[int, Sequence[tuple[str, str, str, float]]]:
        """Return for each trial that counts, by id, the metric, unit, better and value of each measurement."""
        return self._measured(_COUNTED)

    def _values(self) -> list[Value]:
        measured = self.measured()
        return [
            Value(t.id, t.block, t.attempt, t.environment, t.workload, t.level, *each, t.started_at, t.flags)
            for t in self.trials()  # in the order of their ids, because the clock might have been set meanwhile
            if t.outcome is Outcome.OK
            for each in measured.get(t.id, ())
        ]

    def _measured(self, which: str) -> dict[int, list[tuple[str, str, str, float]]]:
        """Return for each trial, by id, the metric, unit, better and value of each measurement."""
        query = f"SELECT trial, metric, unit, better, value FROM measurement WHERE {which} ORDER BY rowid"  # noqa: S608
        measured: dict[int, list[tuple[str, str, str, float]]] = {}
        for number, metric, unit, better, value in self._read(reading.VALUES, "measurements", query):
            measured.setdefault(number, []).append((metric, unit, better, value))
        return measured

    def trials(self) -> list[StoredTrial]:
        """Return every trial that counts, in the order of their ids."""
        return self._read_once("trials", lambda: self._trials("block IS NOT 0"))

    def _trials(self, which: str) -> list[StoredTrial]:
        rows = self._rows(reading.TRIALS, StoredTrial, "trials", f"trial WHERE {which} ORDER BY id")
        return [each if each.measured_s else each.not_measured() for each in rows]

    def preparations_s(self) -> dict[int, float]:
        """Return the total seconds of the preparations of each trial that had any, by the trial's id."""
        rows = self._rows(
            reading.PROCESSES, StoredProcess, "processes", f"process WHERE {_COUNTED} AND role LIKE '{PREPARATION}%'"
        )
        took_s: dict[int, float] = defaultdict(float)
        for each in rows:
            took_s[each.trial] += each.duration_s
        return took_s

    def pilot(self) -> list[PilotTrial]:
        """Return the measurements of the successful trials of the pilot block."""
        measured = self._measured(f"NOT ({_COUNTED})")
        rows = self._rows(reading.PROCESSES, StoredProcess, "processes", f"process WHERE NOT ({_COUNTED})")
        spent_s: dict[tuple[int, str], float] = defaultdict(float)
        for process in rows:
            spent_s[process.trial, process.role.partition(" ")[0]] += process.duration_s
        throttled: dict[int, float] = {}
        for sample in self._samples(f"NOT ({_COUNTED}) AND name IS 'throttled_s'"):
            throttled[sample.trial] = max(sample.value, throttled.get(sample.trial, 0.0))
        return [
            PilotTrial(
                each.workload, each.level, each.environment,
                max(0.0, each.duration_s - spent_s[each.id, PREPARATION]), spent_s[each.id, WARM_UP],
                throttled.get(each.id),
                {metric: value for metric, _, _, value in measured.get(each.id, ())},
            )
            for each in self._trials("block IS 0")
            if each.outcome is Outcome.OK
        ]  # fmt: skip

    def lengths(self) -> tuple[TrialLength, ...]:
        """Return the lengths of trials that were chosen for workloads."""
        return lengths_of(self.info().get(LENGTHS, "[]"))

    def block_schedules(self) -> tuple[BlockSchedule, ...]:
        """Return in how many blocks of each round workloads took part, if a limited time was shared among them."""
        return block_schedules_of(self.info().get(ALLOTMENTS, "[]"))

    def gate_looks(self) -> tuple[GateLook, ...]:
        """Return the looks at which gates judged the run, in order."""
        return gate_looks_of(self.info().get(GATE_LOOKS, "[]"))

    def processes(self) -> list[StoredProcess]:
        """Return every process of every trial that counts."""
        return self._rows(reading.PROCESSES, StoredProcess, "processes", f"process WHERE {_COUNTED}")

    def samples(self, *names: str) -> list[StoredSample]:
        """Return all numbers that meters measured for complete trials, or those with the given names."""
        which = f" AND name IN ({', '.join('?' * len(names))})" if names else ""
        return self._samples(f"{_COUNTED}{which}", names)

    def _samples(self, which: str, names: tuple[str, ...] = ()) -> list[StoredSample]:
        query = f"SELECT trial, site, name, value FROM sample WHERE {which}"  # noqa: S608 - fixed words
        return [StoredSample(*row) for row in self._read(reading.SAMPLES, "readings of meters", query, names)]

    def series(self, trial: int | None = None) -> list[tuple[int, Series]]:
        """Return every series of readings with its trial's id, or only the series of one trial."""
        if trial is None:
            return [(number, each) for number, of_trial in self.series_by_trial().items() for each in of_trial]
        return [(trial, each) for each in self._series("WHERE trial = ? ORDER BY rowid", trial).get(trial, ())]

    def series_by_trial(self) -> Mapping[int, Sequence[Series]]:
        """Return the series of readings of each trial that has any, all read at once."""
        return self._read_once("series", lambda: [self._series(f"WHERE {_COUNTED} ORDER BY trial, rowid")])[0]

    def _series(self, which: str, *values: object) -> dict[int, list[Series]]:
        query = f"SELECT trial, place, name, at_s, vals FROM series {which}"  # noqa: S608 - fixed words
        lasted = {trial.id: trial.duration_s for trial in self.trials()}
        by_trial: dict[int, list[Series]] = {}
        for number, place, name, at_s, read in self._read(reading.SERIES, "series", query, values):
            if len(at_s) != len(read):
                problem = f"{self.directory} is damaged: trial {number}: {place} {name} has no value for each time"
                raise RunDirectoryError(problem)
            if not reading.are_times(at_s, lasted.get(number, -math.inf)):
                problem = (
                    f"{self.directory} is damaged: trial {number}: the times of {place} {name} are not within it"
                )
                raise RunDirectoryError(problem)
            by_trial.setdefault(number, []).append(Series(place, name, at_s, read))
        return by_trial

    def histograms(self) -> list[tuple[int, str, str]]:
        """Return every latency histogram of a successful trial: trial, metric, encoded."""
        query = (
            "SELECT h.trial, h.metric, h.encoded FROM histogram h JOIN trial t ON t.id = h.trial"
            " WHERE t.outcome = 'ok' AND t.block IS NOT 0 ORDER BY h.trial, h.rowid"
        )
        return self._read(reading.HISTOGRAMS, "histograms", query)

    def _rows(
        self,
        kind: TypeAdapter[list[Row]],
        row_type: Callable[..., Stored],
        content: str,
        of: str,
    ) -> list[Stored]:
        columns = ", ".join(row_type._fields)  # type: ignore[attr-defined]  # of a NamedTuple
        rows = self._read(kind, content, f"SELECT {columns} FROM {of}")  # noqa: S608 - fixed names
        return [row_type(*row) for row in rows]

    def _read_once(self, name: str, read: Callable[[], list[Stored]]) -> list[Stored]:
        """Return cached rows, or read them again if the database was written since."""
        changes = self._db.total_changes
        cached = self._cache.get(name)
        if cached is None or cached[0] != changes:
            cached = self._cache[name] = changes, read()
        return cast(list[Stored], cached[1])

    def _read(
        self, kind: TypeAdapter[list[Row]], content: str, query: str, values: tuple[object, ...] = ()
    ) -> list[Row]:
        """Return rows after validation. Raises RunDirectoryError."""
        with saving(self.directory):
            rows = self._db.execute(query, values).fetchall()
        with reading.checked(self.directory, content):
            return kind.validate_python(rows, strict=True)
