"""Drives the waves of a fleet: an ordinary ``weighbridge run`` for each unit, in parallel within a wave."""

import contextlib
import os
import signal
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from importlib import metadata
from pathlib import Path

from weighbridge.errors import Unavailable, WeighbridgeError
from weighbridge.features.fleets.folder import Fleet, FleetFolder, UnitRecord, last_line
from weighbridge.features.fleets.machine_provider import Wanted
from weighbridge.features.fleets.providers import Provided, host_options, provider_of
from weighbridge.features.fleets.rounds import FleetUnit, Round, again, rounds_of
from weighbridge.features.fleets.study import own_host, text_on
from weighbridge.features.fleets.survey import (
    SurveyedMachine,
    notes_of,
    refusals,
    require_machines,
    survey,
    with_weighbridge,
)
from weighbridge.features.fleets.suspects import Suspects
from weighbridge.linux.process import LoggedProcess
from weighbridge.model.stored_study import secrets_of
from weighbridge.model.study import Study
from weighbridge.runner.run_lock import FLEET_VARIABLE
from weighbridge.runner.signals import shield
from weighbridge.secret_values import handed_on
from weighbridge.study.loader import check
from weighbridge.study.source import parse

PROGRAM = (sys.executable, "-m", "weighbridge")
_LOOK_S = 0.2
_END_S = 150.0
"""The seconds that a run has to shut down, including the cleanup of its machines."""


class UnitsUnfinished(WeighbridgeError):
    """Some runs of a fleet did not finish; ``weighbridge fleet continue`` measures the missing part."""


def own_version() -> str:
    """Return the version of this Weighbridge, which does not continue runs of another version."""
    return metadata.version("weighbridge")


def study_of(fleet: Fleet, folder: Path) -> Study:
    """Return the study of a fleet. Raises StudyError if this Weighbridge no longer accepts it."""
    return check(parse(fleet.study, f"{folder} (the study of this fleet)"))


def drive(folder: FleetFolder, say: Callable[[str], None]) -> None:
    """Drive a fleet from its current state to its end. Raises UnitsUnfinished if runs are missing at the end.

    Raises RunDirectoryError if it is already driven, Unavailable if its machines are missing or unsuitable.
    """
    fleet = folder.read()
    provided = provider_of(fleet)
    with contextlib.suppress(OSError):
        os.chdir(fleet.cwd)
    provider, options = provided
    folder.refuse_links()
    with folder.driving(provider.part(options)):
        study = study_of(fleet, folder.path)
        wanted = Wanted(fleet.id, own_host(study), folder.machines(), say)
        known = nullcontext(fleet.machines) if fleet.machines else provider.allotment(options, wanted)
        with known as machines:
            folder.await_units(machines)
            folder.note_machines(machines, provider.part(options))
            if fleet.machines is None:  # they were unknown when the fleet was submitted
                say(f"checking {len(machines)} machines: {', '.join(machines)}")
                hosts = host_options(study, provided, machines)
                surveyed = survey(study, hosts, lambda _: None, str(folder.path))
                for note in notes_of(surveyed):
                    say(f"note: {note}")
                asking = (*PROGRAM, "--version")
                if provider.command(options, machines[:1], asking) != asking:  # a run is started on its machine
                    surveyed = with_weighbridge(surveyed, lambda name: provider.command(options, (name,), asking))
                _require_machines(folder, surveyed, say)
            Drive(folder, fleet, study, provided, say).go(machines)


def _require_machines(folder: FleetFolder, surveyed: Sequence[SurveyedMachine], say: Callable[[str], None]) -> None:
    """Raise Unavailable for unsuitable machines; in a continued fleet only if all are, otherwise report them."""
    if not folder.units() or all(each.lacks for each in surveyed):
        require_machines(surveyed)
    for reason in refusals(surveyed):
        say(f"note: {reason}")


def planned_rounds(fleet: Fleet, machines: Sequence[str]) -> tuple[Round, ...]:
    """Return the waves of a fleet with these machines, without repeated measurements of suspects."""
    return rounds_of(machines, pairs=fleet.pairs, partners=fleet.partners, controls=fleet.controls, seed=fleet.seed)


@dataclass(slots=True)
class Drive:
    """One driver's progress through the waves."""

    folder: FleetFolder
    fleet: Fleet
    study: Study
    provided: Provided
    say: Callable[[str], None]
    _going: dict[FleetUnit, LoggedProcess] = field(default_factory=dict)
    _records: dict[FleetUnit, UnitRecord] = field(default_factory=dict)

    def go(self, machines: Sequence[str]) -> None:
        """Run every wave, and then the waves of suspects. Raises UnitsUnfinished."""
        rounds = planned_rounds(self.fleet, machines)
        for number, units in enumerate(rounds, 1):
            self._round(number, units, f"wave {number} of {len(rounds)}")
        if self.fleet.again:
            further = self._again(machines)
            for number, units in enumerate(further, len(rounds) + 1):
                self._round(number, units, f"repeated, wave {number - len(rounds)} of {len(further)}")
            rounds = (*rounds, *further)
        missing = [unit for units in rounds for unit in units if not self.folder.is_finished(unit)]
        if missing:
            raise UnitsUnfinished(
                f"{len(missing)} of {sum(map(len, rounds))} runs did not finish "
                f"({', '.join(unit.name for unit in missing[:5])}{', ...' * (len(missing) > 5)}): 'weighbridge "
                f"fleet status {self.folder.path}' shows why, and 'weighbridge fleet continue {self.folder.path}' "
                "measures them"
            )
        self.say("every run finished")

    def _again(self, machines: Sequence[str]) -> tuple[Round, ...]:
        """Return the waves that measure suspects again: unfinished ones, and new ones."""
        suspects = Suspects.of(self.folder, machines)
        measured = [unit.machines for unit in self.folder.units() if not unit.reason]
        before = [unit for unit in self.folder.units() if unit.reason == "again"]
        repeated = {machine for unit in before for machine in unit.machines}
        waiting = [machine for machine in suspects.outliers if machine not in repeated]
        if waiting:
            self.say(f"measuring again with other machines: {', '.join(waiting)}")
        unfinished = tuple((unit,) for unit in before if not self.folder.is_finished(unit))
        return (*unfinished, *again(waiting, suspects.good, measured, pairs=self.fleet.pairs, seed=self.fleet.seed))

    def _round(self, number: int, units: Round, title: str) -> None:
        """Start all missing units, up to the parallel limit, and wait for them. No run outlives this method."""
        missing = [unit for unit in units if not self.folder.is_finished(unit)]
        if not missing:
            return
        self.say(f"{title}: {', '.join(unit.name for unit in missing)}")
        provider, options = self.provided
        most, waiting = provider.at_once(options) or len(missing), [*missing]
        try:
            while waiting or self._going:
                while waiting and len(self._going) < most:
                    self._start(number, waiting.pop(0))
                self._look()
                time.sleep(_LOOK_S)
        finally:
            with shield():
                self._stop()

    def _start(self, number: int, unit: FleetUnit) -> None:
        provider, options = self.provided
        if (began := self.folder.begun_by(unit)) not in ("", own_version()):
            aside = self.folder.set_aside(unit)
            self.say(
                f"{unit.name}: started by Weighbridge {began}, so it is measured again; its old trials are kept in "
                f"{aside}"
            )
        hosts = provider.hosts(options, unit.machines)
        self.folder.write_study(unit, text_on(self.study, hosts, unit.name))
        argv = provider.command(options, unit.machines, self._command(unit))
        self._records[unit] = UnitRecord(round=number, began=time.time())
        self.folder.note(unit, self._records[unit])
        environment = {FLEET_VARIABLE: str(self.folder.path), **handed_on(secrets_of(self.study))}
        try:
            self._going[unit] = LoggedProcess(argv, self.folder.log(unit), environment)
        except Unavailable as error:
            self.say(f"{unit.name}: {error}")
            self._note_end(unit, error.exit_code)

    def _command(self, unit: FleetUnit) -> tuple[str, ...]:
        """Return the words that begin or continue a unit's run; finished trials are not repeated.

        The study is always named: the user confirmed the fleet's, and a run directory of another study is refused.
        """
        flags = (
            *(("--rehearsal",) if self.fleet.rehearsal else ()),
            *(("--beside-others",) if self.fleet.beside_others else ()),
        )
        study, directory = str(self.folder.study(unit)), str(self.folder.run(unit))
        return (*PROGRAM, "run", study, "--out", directory, "--yes", *flags)

    def _look(self) -> None:
        for unit, process in [*self._going.items()]:
            if (code := process.poll()) is not None:
                del self._going[unit]
                self._note_end(unit, code if code >= 0 else 128 - code)

    def _note_end(self, unit: FleetUnit, code: int) -> None:
        self._records[unit] = self._records[unit].model_copy(update={"ended": time.time(), "code": code})
        self.folder.note(unit, self._records[unit])
        if code == 0:
            self.say(f"{unit.name}: finished")
        else:
            self.say(f"{unit.name} ended with exit code {code}: {last_line(self.folder.log(unit))}")

    def _stop(self) -> None:
        """Shut down running units; kill those that do not end."""
        for process in self._going.values():
            process.signal(signal.SIGTERM)
        deadline = time.monotonic() + _END_S
        while self._going and time.monotonic() < deadline:
            self._look()
            time.sleep(_LOOK_S)
        for process in self._going.values():
            process.signal(signal.SIGKILL)
        while self._going:
            self._look()
            time.sleep(_LOOK_S)
