"""A trial: what is to be run, and what was."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from weighbridge.model.flag import Flag
from weighbridge.model.measurement import Measurement, Outcome
from weighbridge.model.study import Level


@dataclass(frozen=True, slots=True)
class Trial:
    """One fresh run that is to be made. ``attempt`` counts the repetitions of its block from 0."""

    block: int
    attempt: int
    workload: str
    level: Level
    environment: str


@dataclass(frozen=True, slots=True)
class RoleRecord:
    """What one role's process did in a trial: its command line, how it ended and its output as it came."""

    role: str
    argv: tuple[str, ...]
    returncode: int
    duration_s: float
    stdout: bytes
    stderr: bytes


PROMETHEUS = "prometheus"
"""The place of series that the study's Prometheus server had; their names are ``NAME{LABELS} UNIT``."""


@dataclass(frozen=True, slots=True)
class Series:
    """Readings of one meter during a trial. ``place`` is what was read: "host NAME", or a role (its site).

    ``at_s`` are seconds since the trial's start, ``values`` in the unit that ends the name (``cpu_user_share``: CPUs
    busy; ``memory_committed_bytes``; ``eth0_receive_bytes_per_s`` ...). Both have the same length.
    """

    place: str
    name: str
    at_s: tuple[float, ...]
    values: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class TrialRecord:
    """One trial that ended. Times are wall-clock seconds; ``started_at`` is seconds since the epoch.

    ``measured_s`` is the time that the measuring process itself ran, from ``measured_from_s`` of the trial on (None:
    it never did); the rest of ``duration_s`` is the tool's own cost. ``message`` says why a trial has no
    measurements. ``samples`` are meter readings: (site, name, value). ``flags`` are things that a reader has to know
    beside the number. ``series`` are the readings over time, ``histograms`` encoded HDR histograms by metric.
    """

    trial: Trial
    outcome: Outcome
    started_at: float
    duration_s: float
    measured_s: float
    message: str = ""
    measurements: tuple[Measurement, ...] = ()
    roles: tuple[RoleRecord, ...] = ()
    samples: tuple[tuple[str, str, float], ...] = ()
    flags: tuple[Flag, ...] = field(default=())
    series: tuple[Series, ...] = ()
    histograms: Mapping[str, str] = field(default_factory=dict)
    measured_from_s: float | None = None
