"""The open sites of a run, and the trials in them."""

from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field, replace

from weighbridge import registry
from weighbridge.errors import EnvironmentLost
from weighbridge.meters.machines import IdleLevels
from weighbridge.meters.opened import meters
from weighbridge.model.decisions import left_out_text
from weighbridge.model.host import HERE, RunContext
from weighbridge.model.study import Study
from weighbridge.model.timing import Phase, Timing
from weighbridge.model.trial import Trial, TrialRecord
from weighbridge.model.userland import Userlands
from weighbridge.runner.estimate import meter_hz
from weighbridge.runner.lengths import Lengths
from weighbridge.runner.notes import note_sites
from weighbridge.runner.planned import left_out_line
from weighbridge.runner.pollers import Pollers
from weighbridge.runner.signals import shield
from weighbridge.runner.sites import Sites
from weighbridge.runner.trial import run_trial
from weighbridge.store.extensions import note_begin
from weighbridge.store.reader import LEFT_OUT
from weighbridge.store.run import METERS_HZ, RunStore


@dataclass(slots=True)
class TrialRunner:
    """Opens the sites of a study before its first trial, runs one trial at a time, and closes the sites."""

    study: Study
    """The study, without the environments that could not be opened."""
    store: RunStore
    run: RunContext
    userlands: Userlands
    say: Callable[[str], None]
    volatile_facts: Callable[[], Mapping[str, str]]
    pollers: Pollers | None
    timing: Timing = field(default_factory=Timing)
    _sites: Sites | None = None
    _idle: IdleLevels = field(default_factory=lambda: IdleLevels({}))
    _stack: ExitStack = field(default_factory=ExitStack)

    def __enter__(self) -> "TrialRunner":
        return self

    def __exit__(self, *ended: object) -> None:
        with shield(), self.timing.phase(Phase.CLEANUP):
            if self.is_open:
                self.say("cleaning up")
            self._stack.close()

    @property
    def is_open(self) -> bool:
        """Whether the sites are open; a finished run opens none."""
        return self._sites is not None

    @property
    def is_here(self) -> bool:
        """Whether programs run on this machine, as far as it is known."""
        return self._sites is not None and HERE in self._sites.readers()

    def open(self, *, may_leave_out: bool = False) -> Sites:
        """Open the sites, unless they are open. Optional environments that cannot be opened can be left out."""
        if self._sites is None:
            with self.timing.phase(Phase.SET_UP):
                self._open_sites(may_leave_out=may_leave_out)
        assert self._sites is not None
        return self._sites

    def _open_sites(self, *, may_leave_out: bool) -> None:
        note_begin(self.store)
        hz = meter_hz(self.study)
        self.store.set_info(METERS_HZ, repr(hz))
        polled = self.pollers is not None
        opened = self._stack.enter_context(meters(self.study.file.meters, hz, polled=polled))
        sites = Sites(
            self.study, self.run, self.userlands, opened, self.pollers, self.timing, may_leave_out=may_leave_out
        )
        self._sites = sites
        sites.open_all(self._stack)
        self._stack.callback(sites.finishing.run, self.store, self.say)  # first of all at the end
        self._leave_out(sites)
        served = any("server" in registry.workloads()[cell.kind].roles(cell.options) for cell in self.study.cells)
        if self.study.file.meters.source != "off" and served:
            self._idle = IdleLevels(sites.readers(), lambda facts: self.store.add_facts("idle", facts))
            self._idle.look()
        note_sites(self.store, self.study, sites)
        self.store.add_facts("during", self.volatile_facts())

    def _leave_out(self, sites: Sites) -> None:
        """Measure without the environments that could not be opened; store and report the reasons."""
        if sites.left_out:
            self.study = sites.study
            self.store.set_info(LEFT_OUT, left_out_text([*self.store.left_out(), *sites.left_out]))
            for each in sites.left_out:
                self.say(left_out_line(each))

    def measure_idle(self) -> None:
        """Measure what the idle sites use, if that is due."""
        if self._sites is not None and self._idle.readers and self._idle.due:
            self._sites.rest()
            self._idle.look()

    def run_one(self, trial: Trial, lengths: Lengths) -> TrialRecord:
        """Run a trial. Raises EnvironmentLost if its environment, or another one, was lost before it."""
        study = self.study
        arm = next(arm for arm in study.arms if arm.name == trial.environment)
        cell = next(cell for cell in study.cells if cell.id == trial.cell)
        try:
            if self.pollers is not None:
                self.pollers.require()
            stage = replace(self.open().stage(arm, cell), idle=self._idle.levels)
        except EnvironmentLost as lost:
            message = f"an environment was lost before {trial.workload} in {trial.environment}: {lost}"
            raise EnvironmentLost(f"{message}. Finished trials are kept") from lost
        return run_trial(trial, registry.workloads()[cell.kind], lengths.options(arm, cell), stage)
