"""How long each phase of a run took, by the monotonic clock."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import StrEnum
from threading import Lock


class Phase(StrEnum):
    """A part of a run. Phases do not overlap."""

    START = "start"
    PREPARATION = "preparation"
    SET_UP = "set-up"
    PILOT = "pilot"
    TRIALS = "trials"
    EVALUATION = "evaluation"
    CLEANUP = "cleanup"
    REPORT = "report"


@dataclass(slots=True)
class Timing:
    """The seconds of each phase of a run, and of the set-up of each environment."""

    before_s: float = 0.0
    """Seconds from the start of the process until this object was created."""
    clock: Callable[[], float] = time.monotonic
    environments: dict[str, float] = field(default_factory=dict)
    """Seconds of each environment's set-up. Set-ups can overlap."""
    first_estimate_s: float | None = None
    """Seconds from the start of the process to the first estimate of a cost; None before it."""
    _lock: Lock = field(default_factory=Lock)
    _phases: dict[Phase, float] = field(default_factory=dict)
    _phase: Phase = Phase.PREPARATION
    _since: float = field(init=False)

    def __post_init__(self) -> None:
        self._since = self.clock()

    @property
    def phases(self) -> dict[Phase, float]:
        """Return the seconds of each phase so far, in the order of a run."""
        self.begin(self._phase)
        seconds = {Phase.START: self.before_s, **self._phases}
        return {phase: seconds[phase] for phase in Phase if phase in seconds}

    def begin(self, phase: Phase) -> None:
        """End the present phase, and begin another one."""
        now = self.clock()
        self._phases[self._phase] = self._phases.get(self._phase, 0.0) + now - self._since
        self._phase, self._since = phase, now

    @contextmanager
    def phase(self, phase: Phase) -> Iterator[None]:
        """Count the time of the body toward a phase, and not toward the phase around it."""
        around = self._phase
        self.begin(phase)
        try:
            yield
        finally:
            self.begin(around)

    @contextmanager
    def environment(self, name: str) -> Iterator[None]:
        """Count the time of the body toward the set-up of an environment. Any thread can call this."""
        began = self.clock()
        try:
            yield
        finally:
            with self._lock:
                self.environments[name] = self.environments.get(name, 0.0) + self.clock() - began

    def note_estimate(self) -> None:
        """Note that the first estimate of a cost is known now."""
        if self.first_estimate_s is None:
            self.first_estimate_s = sum(self.phases.values())
