"""A trial: its place in the schedule, its result, and its record."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from weighbridge.model.address import HasArm
from weighbridge.model.flag import Flag
from weighbridge.model.level import Level
from weighbridge.model.measurement import Measurement, Outcome
from weighbridge.model.options import Options

PREPARATION, WARM_UP, CHECK = "preparation", "warm-up", "check"
"""Roles of processes outside of the measurement: one-time preparation, warm-up, check."""


@dataclass(frozen=True, slots=True)
class Trial(HasArm):
    """One fresh run in the schedule. ``attempt`` counts the repetitions of its block from 0."""

    block: int
    attempt: int
    workload: str
    level: Level
    environment: str


@dataclass(frozen=True, slots=True)
class Work:
    """An amount of work: gigabits, or thousands of transactions or objects."""

    amount: float
    unit: Literal["gbit", "1000_transactions", "1000_objects"]

    @property
    def divides(self) -> bool:
        """Whether figures per unit of work are possible: the amount is finite, and more than 0."""
        return math.isfinite(self.amount) and self.amount > 0


@dataclass(frozen=True, slots=True)
class TrialResult:
    """The result of a trial, as ``parse`` reads it from the outputs. Most workloads return measurements alone.

    Times are in seconds. A time that is None gets a default (`times`).
    """

    measurements: tuple[Measurement, ...]
    """The value of each metric, the primary metric first."""
    work: Work | None = None
    """All the work of the measured process, such as ``Work(amount, "gbit")``. Set it if the rate times ``work_s`` is
    not all the work: a slow start, a fixed number of packets, a slow last request. Otherwise CPU time per unit of
    work is wrong. Example: ``datagram_test.py``."""
    work_s: float | None = None
    """How long the measured process worked at its rate, by its own clock. Set it if this time differs from the option
    ``duration``, as with a warm-up. Example: ``iperf3.py``."""
    active_s: float | None = None
    """How long the measured process was active, if it pauses between connections. Without it a load generator that is
    the limit is not flagged. Example: ``redis_benchmark/``."""
    sending_s: float | None = None
    """How long data was on the network, if that differs from ``work_s``, as after a slow start. Without it
    Weighbridge misjudges whether the cable was full. Example: ``coherence_put.py``."""
    histograms: Mapping[str, str] = field(default_factory=dict)
    """HDR histograms of latencies in nanoseconds by metric name, encoded as `weighbridge.statistics` reads them. The
    report then shows percentiles of all requests. Example: ``coherence_put.py``."""
    flags: tuple[Flag, ...] = ()
    """Warnings about a valid trial, such as that the load generator was the limit. A `Flag` has a code and figures;
    its sentence is in ``report/text/trial_flags.py``. Example: ``nginx_vegeta/``."""

    def times(self, options: Options, ran_s: float) -> "Times":
        """Return the seconds; ``work_s`` is the option ``duration`` by default, ``sending_s`` is ``work_s``."""
        duration = getattr(options, "duration", None)
        work = self.work_s or (float(duration) if isinstance(duration, int | float) else None)
        return Times(ran_s, work or ran_s, self.active_s or ran_s, self.sending_s or work or ran_s)


@dataclass(frozen=True, slots=True)
class Times:
    """The seconds for which the measured process ran, did its work, was active, and had data on the network."""

    ran_s: float
    work_s: float
    active_s: float
    sending_s: float


@dataclass(frozen=True, slots=True)
class RoleRecord:
    """The process of one role in a trial: its command line, how it ended, and its raw output."""

    role: str
    argv: tuple[str, ...]
    returncode: int
    duration_s: float
    stdout: bytes
    stderr: bytes


PROMETHEUS = "prometheus"
"""The place of series from the study's Prometheus server; their names are ``NAME{LABELS} UNIT``."""


@dataclass(frozen=True, slots=True)
class Series:
    """Readings of one meter during a trial. ``place`` is "host NAME", or a role (its site).

    ``at_s`` are seconds since the trial's start; ``values`` are in the unit at the end of the name
    (``cpu_user_share``: CPUs busy; ``memory_committed_bytes``; ``eth0_receive_bytes_per_s`` ...). Both have the same
    length.
    """

    place: str
    name: str
    at_s: tuple[float, ...]
    values: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class TrialRecord:
    """One trial that ended. Times are wall-clock seconds; ``started_at`` is seconds since the epoch.

    ``measured_s`` is how long the measured process ran, from ``measured_from_s`` of the trial on (both None if the
    trial was not measured); the rest of ``duration_s`` is the tool's own overhead. ``message`` is the reason if a
    trial has no measurements. ``samples`` are meter readings: (site, name, value). ``flags`` are warnings about the
    figures. ``series`` are the readings over time, ``histograms`` encoded HDR histograms by metric.
    """

    trial: Trial
    outcome: Outcome
    started_at: float
    duration_s: float
    measured_s: float | None
    message: str = ""
    measurements: tuple[Measurement, ...] = ()
    roles: tuple[RoleRecord, ...] = ()
    samples: tuple[tuple[str, str, float], ...] = ()
    flags: tuple[Flag, ...] = field(default=())
    series: tuple[Series, ...] = ()
    histograms: Mapping[str, str] = field(default_factory=dict)
    measured_from_s: float | None = None

    @property
    def preparation_s(self) -> float:
        """Return how long its preparations took, which its environment keeps for all further trials."""
        took_s = sum(each.duration_s for each in self.roles if each.role.partition(" ")[0] == PREPARATION)
        return preparation_s(took_s, self.duration_s, self.measured_s)


def preparation_s(took_s: float, duration_s: float, measured_s: float | None) -> float:
    """Return how long the preparations of a trial took, although their times overlap if several run at once."""
    return min(took_s, max(0.0, duration_s - (measured_s or 0.0)))
