"""A fleet's folder: its definition (``fleet.json``), and a run directory for each unit with records of its state.

Only the run directories determine which units are finished, so a lost driver or queue loses no results.
"""

import contextlib
import errno
import json
import os
import re
import stat
import time
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from weighbridge.errors import DiskFull, RunDirectoryError, Unavailable
from weighbridge.features.fleets.machine_provider import MACHINE_NAME
from weighbridge.features.fleets.rounds import FleetUnit, unit_named
from weighbridge.linux import file_lock
from weighbridge.model.names import RunId
from weighbridge.model.secret import SecretName
from weighbridge.model.validation import NAME_PATTERN, first_problem, problem_of
from weighbridge.store.extensions import came_to_its_end
from weighbridge.store.run import DATABASE, RunStore, trials_of_live_run
from weighbridge.store.safe_folder import LINK, SafeFolder
from weighbridge.study.source import plain

VERSION = 1
FILE = "fleet.json"
LOG = "drive.log"
"""The file with the driver's output."""
SCRIPT = "job.sh"
"""The batch script of a Slurm job."""
_RUNS, _ASIDE = "runs", "set-aside"
_LINES = 64 * 2**10
"""The bytes at the end of a log that contain its last line."""
_TELLS_NOTHING = re.compile(r"(?:weighbridge: )?to continue: |srun: error: \S+: task \d+: Exited with exit code")
_PATIENCE_S, _PAUSE_S = 120.0, 0.1


def _complete(pattern: str) -> str:
    """Return a pattern that does not accept a line feed at the end of a name, as ``$`` does in Python."""
    return pattern.replace("$", r"\Z")


class Fleet(BaseModel):
    """The definition of a fleet, as in ``fleet.json``. Only ``jobs`` changes."""

    model_config = ConfigDict(frozen=True, extra="forbid", regex_engine="python-re")
    version: Literal[1] = 1
    name: Annotated[str, Field(pattern=_complete(NAME_PATTERN))]
    """The name of the study."""
    study: str
    """The text of the study, checked before, with its own hosts."""
    pairs: bool
    on: dict[str, Any]
    """The provider of the machines: ``kind`` and checked options."""
    machines: tuple[Annotated[str, Field(pattern=_complete(MACHINE_NAME))], ...] | None
    """The names of the machines, if they are known in advance."""
    partners: Annotated[int, Field(ge=1)] | None = None
    controls: Annotated[int, Field(ge=0)] | None = None
    again: bool = True
    """Whether suspects are measured a second time."""
    rehearsal: bool = False
    beside_others: bool = False
    seed: int
    cwd: str
    """The base of relative paths in the study and in ``on``."""
    created: float
    """The time of creation, in seconds since the epoch."""
    secrets: dict[SecretName, str] = {}
    """The digests of the values that its study needs and nothing stores, by name."""
    jobs: tuple[str, ...] = ()
    """The submitted drivers, in order."""

    @property
    def id(self) -> RunId:
        """Return an id that no other fleet has."""
        return RunId(sha256(f"{self.name} {self.seed} {self.created}".encode()).hexdigest()[:12])

    @property
    def identity(self) -> str:
        """Return the id, the study and the machines, so that another fleet cannot use the digests of its secrets."""
        return json.dumps([self.id, self.study, self.on, self.machines, self.cwd])


class UnitRecord(BaseModel):
    """The driver's record of a unit: its start and end (seconds since the epoch), and its exit code."""

    model_config = ConfigDict(frozen=True, extra="ignore")
    round: int
    began: float
    ended: float | None = None
    code: int | None = None


UnitState = Literal["finished", "running", "stopped", "waiting"]
"""The state of a unit; ``stopped`` means that it was started, has not finished, and is not running."""


@dataclass(frozen=True, slots=True)
class UnitStatus:
    """The state of a unit, its number of finished trials, and the last line of its log (``reason``)."""

    unit: FleetUnit
    state: UnitState
    trials: int = 0
    code: int | None = None
    reason: str = ""


@dataclass(frozen=True, slots=True)
class FleetFolder:
    """The folder of one fleet."""

    path: Path

    @property
    def runs(self) -> Path:
        """Return the folder of the run directories."""
        return self.path / _RUNS

    def run(self, unit: FleetUnit) -> Path:
        """Return the run directory of a unit."""
        return self.runs / unit.name

    def log(self, unit: FleetUnit) -> Path:
        """Return the log of the unit's ``weighbridge run``."""
        return self.runs / f"{unit.name}.log"

    def study(self, unit: FleetUnit) -> Path:
        """Return the study file of a unit."""
        return self.runs / f"{unit.name}.yaml"

    def write_study(self, unit: FleetUnit, text: str) -> None:
        """Replace the study file of a unit; a link of that name is replaced, not followed."""
        with self._saving():
            _replace(self.study(unit), text)

    def write_script(self, text: str) -> Path:
        """Replace the batch script of a job, and return its path."""
        path = self.path / SCRIPT
        with self._saving():
            _replace(path, text)
        return path

    def refuse_links(self) -> None:
        """Raise RunDirectoryError if a file of the fleet is a link, through which another file would be written.

        A link to a folder, on other storage for example, is allowed if it belongs to this user or to root.
        """
        with self._saving():
            files = (path for folder in (self.path, self.runs) if folder.is_dir() for path in folder.iterdir())
            for path in sorted(files):
                status = path.lstat()
                is_trusted = path.is_dir() and status.st_uid in (0, os.geteuid())
                if stat.S_ISLNK(status.st_mode) and not is_trusted:
                    raise RunDirectoryError(f"{path} {LINK.format('folder' if path.is_dir() else 'file')}")
                if stat.S_ISREG(status.st_mode) and status.st_nlink > 1:
                    raise RunDirectoryError(f"{path} has a second name (a hard link): use a copy of {self.path}")

    def begun_by(self, unit: FleetUnit) -> str:
        """Return the version of the Weighbridge that began a unit's run; "" if there is none, or if unknown."""
        if not (self.run(unit) / DATABASE).is_file():
            return ""
        with contextlib.suppress(RunDirectoryError), RunStore(self.run(unit)) as store:
            return store.info().get("version", "")
        return ""

    def set_aside(self, unit: FleetUnit) -> Path:
        """Move a unit's run directory out of the fleet's runs, and return its new path."""
        aside = self.path / _ASIDE / f"{unit.name}-{time.strftime('%Y%m%d-%H%M%S')}"
        with self._saving():
            aside.parent.mkdir(exist_ok=True)
            self.run(unit).rename(aside)
        return aside

    def record_file(self, unit: FleetUnit) -> Path:
        """Return the file with the driver's record of a unit."""
        return self.runs / f"{unit.name}.json"

    def read(self) -> Fleet:
        """Return the fleet's definition. Raises RunDirectoryError if it is missing, or from a newer Weighbridge."""
        try:
            (self.path / FILE).lstat()
            text = _read(self.path / FILE)
        except FileNotFoundError:
            raise RunDirectoryError(
                f"{self.path} contains no fleet (it has no {FILE}): name the folder that 'weighbridge fleet submit' "
                "created"
            ) from None
        except OSError as error:
            raise RunDirectoryError(f"{self.path / FILE} cannot be read: {error.strerror}") from None
        try:
            return Fleet.model_validate_json(text)
        except ValidationError as error:
            if first_problem(error)[0] == ("version",):
                raise RunDirectoryError(
                    f"{self.path / FILE} was written by a newer Weighbridge: upgrade this one"
                ) from None
            raise RunDirectoryError(f"{self.path / FILE} is damaged: {plain(problem_of(error))}") from None

    @property
    def driver_log(self) -> Path:
        """Return the file with the driver's output."""
        return self.path / LOG

    def require_new(self) -> None:
        """Raise RunDirectoryError if the folder contains anything, or cannot be written."""
        if (self.path / FILE).exists():
            raise RunDirectoryError(
                f"{self.path} already contains a fleet: continue it ('weighbridge fleet continue {self.path}'), or "
                "choose another --out"
            )
        if self.path.exists() and not self.path.is_dir():
            raise RunDirectoryError(f"{self.path} is a file: choose another --out")
        with self._saving():
            if self.path.is_dir() and any(self.path.iterdir()):
                raise RunDirectoryError(f"{self.path} is not empty: choose another --out")
        above = next(folder for folder in (self.path, *self.path.parents) if folder.exists())
        if not os.access(above, os.W_OK | os.X_OK):
            raise RunDirectoryError(f"{self.path} cannot be written: choose another --out")

    def create(self, fleet: Fleet) -> None:
        """Create a fleet here. Raises RunDirectoryError if the folder contains anything."""
        self.require_new()
        with self._saving():
            self.runs.mkdir(parents=True, exist_ok=True)
        self.write(fleet)

    def discard(self) -> None:
        """Remove a fleet that has not started."""
        for path in (self.path / FILE, self.driver_log):
            with contextlib.suppress(OSError):
                path.unlink(missing_ok=True)
        for path in (self.runs, self.path):
            with contextlib.suppress(OSError):
                path.rmdir()

    def write(self, fleet: Fleet) -> None:
        """Replace ``fleet.json`` atomically."""
        with self._saving():
            _replace(self.path / FILE, fleet.model_dump_json(indent=2) + "\n")

    def note(self, unit: FleetUnit, record: UnitRecord) -> None:
        """Store the driver's record of a unit."""
        with self._saving():
            _replace(self.record_file(unit), record.model_dump_json() + "\n")

    def record(self, unit: FleetUnit) -> UnitRecord | None:
        """Return a driver's record of a unit; None if it has not started, or is unreadable."""
        try:
            return UnitRecord.model_validate_json(_read(self.record_file(unit)))
        except (OSError, RunDirectoryError, ValidationError):
            return None

    def note_machines(self, machines: Sequence[str], part: str = "") -> None:
        """Store the machines of a driver (or the machine of a ``part``)."""
        with self._saving():
            _replace(self.path / f"machines{part and '-'}{part}.json", json.dumps([*machines]) + "\n")

    def machines(self) -> tuple[str, ...]:
        """Return the machines of all drivers so far, sorted; () before the first, or if unknown."""
        names: set[str] = set()
        for path in self.path.glob("machines*.json"):
            with contextlib.suppress(OSError, RunDirectoryError, ValueError, TypeError):
                names |= {str(name) for name in json.loads(_read(path))}
        return tuple(sorted(name for name in names if re.fullmatch(MACHINE_NAME, name)))

    def is_finished(self, unit: FleetUnit) -> bool:
        """Return whether a unit's run came to its end, by its blocks, its precision or its time."""
        return _looked_at(self.run(unit))[0]

    def status(self, unit: FleetUnit, *, driven: bool) -> UnitStatus:
        """Return the state of a unit; ``driven`` means that the fleet's driver lives, or might."""
        record = self.record(unit)
        if record is not None and record.ended is None and driven:
            live_trials = trials_of_live_run(self.run(unit))
            if live_trials is not None:
                return UnitStatus(unit, "running", live_trials)
        finished, trials = _looked_at(self.run(unit))
        if record is None:
            return UnitStatus(unit, "finished" if finished else "waiting", trials)
        reason = last_line(self.log(unit)) if record.code else ""
        if finished:
            return UnitStatus(unit, "finished", trials, record.code, reason)
        if record.ended is None and driven:
            return UnitStatus(unit, "running", trials)
        return UnitStatus(unit, "stopped", trials, record.code, reason)

    def units(self) -> tuple[FleetUnit, ...]:
        """Return the units that have started, by name."""
        names = {path.stem for path in self.runs.glob("*.json")} | {path.name for path in self.runs.glob("*/")}
        return tuple(unit for name in sorted(names) if (unit := unit_named(name)) is not None)

    def await_units(self, machines: Collection[str], patience_s: float = _PATIENCE_S) -> None:
        """Wait for the end of runs on these machines that a killed driver left. Raises Unavailable after a timeout.

        Another driver can have runs on other machines.
        """
        deadline = time.monotonic() + patience_s
        for lock in sorted(self.runs.glob("*/lock")):
            unit = unit_named(lock.parent.name)
            if unit is not None and not {*unit.machines} & {*machines}:
                continue
            while not _is_free(lock):
                if time.monotonic() > deadline:
                    raise Unavailable(f"another process is still writing to {lock.parent}: stop it, then continue")
                time.sleep(_PAUSE_S)

    @contextmanager
    def driving(self, part: str = "") -> Iterator[None]:
        """Be the driver of the fleet or of its ``part`` in this context. Raises RunDirectoryError if there is one."""
        with self._saving(), SafeFolder.open(self.path, writable=True) as folder:
            lock = folder.open_file(f"drive{part and '-'}{part}.lock", os.O_RDWR | os.O_CREAT)
        if not file_lock.take(lock):
            os.close(lock)
            raise RunDirectoryError(f"another process is driving the fleet in {self.path}: wait until it ends")
        try:
            yield
        finally:
            os.close(lock)

    @contextmanager
    def _saving(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            if error.errno in (errno.ENOSPC, errno.EDQUOT):
                raise DiskFull(f"no space left in {self.path}: make room (finished runs are kept)") from error
            raise RunDirectoryError(f"{self.path} cannot be written: {error.strerror}") from error


def last_line(log: Path) -> str:
    """Return the last informative line of a log, without exit codes and instructions to continue; "" without one."""
    try:
        with SafeFolder.open(log.parent) as folder, os.fdopen(folder.open_file(log.name), "rb") as file:
            file.seek(0, os.SEEK_END)
            file.seek(max(0, file.tell() - _LINES))
            lines = file.read().decode(errors="replace").splitlines()
    except (OSError, RunDirectoryError):
        return ""
    stripped = (line.strip() for line in reversed(lines))
    return next(
        (line.removeprefix("weighbridge: ") for line in stripped if line and not _TELLS_NOTHING.match(line)), ""
    )


def _looked_at(directory: Path) -> tuple[bool, int]:
    if not (directory / DATABASE).is_file():
        return False, 0
    with contextlib.suppress(RunDirectoryError), RunStore(directory) as store:
        return came_to_its_end(store.info()), len(store.finished())
    return False, 0


def _is_free(lock: Path) -> bool:
    try:
        with SafeFolder.open(lock.parent) as folder:
            descriptor = folder.open_file(lock.name, os.O_RDWR)
    except (OSError, RunDirectoryError):
        return True
    try:
        return file_lock.take(descriptor)
    finally:
        os.close(descriptor)


def _read(path: Path) -> bytearray:
    with SafeFolder.open(path.parent) as folder:
        return folder.read(path.name)


def _replace(path: Path, text: str) -> None:
    with SafeFolder.open(path.parent, writable=True) as folder:
        folder.replace(path.name, text, durable=True)
