"""Metrics, their values, the metrics of resource use, and the outcomes of a trial."""

import enum
from dataclasses import dataclass
from typing import Literal

from weighbridge.model.command import Completed

Better = Literal["higher", "lower"]


@dataclass(frozen=True, slots=True)
class Metric:
    """A quantity that a workload measures: its name, its unit and the direction that is better."""

    name: str
    unit: str
    better: Better

    @property
    def adds_up(self) -> bool:
        """Whether values of several concurrent sites can be added: true for rates and counts, false for times."""
        return self.unit == "count" or self.unit.endswith("/s")


LARGEST, SMALLEST = 1e100, 1e-100
"""Larger or smaller values are not plausible; ratios, squares and sums of plausible values are finite."""


def is_plausible(value: float) -> bool:
    """Return whether a value can be a measurement: a number that is not too large, nor too close to zero."""
    return value == 0 or SMALLEST <= abs(value) <= LARGEST


@dataclass(frozen=True, slots=True)
class Measurement:
    """One metric's value from one trial. The value is finite: a missing value is not a measurement."""

    metric: Metric
    value: float

    def __post_init__(self) -> None:
        if not is_plausible(self.value):
            raise ValueError(f"{self.metric.name} is {self.value}: a measurement must be a finite number")


class Outcome(enum.StrEnum):
    """How a trial ended. OK and BROKE are results; every other outcome causes a repetition of its block."""

    OK = "ok"
    BROKE = "broke"
    PROGRAM_FAILED = "program failed"
    UNPARSEABLE = "unparseable"
    SERVER_NOT_READY = "server not ready"
    SERVER_DIED = "server died"
    DEADLINE = "deadline"
    ENVIRONMENT_LOST = "environment lost"


class TrialFailure(Exception):
    """A trial that gave no measurements, with its outcome and the reason in one sentence."""

    outcome: Outcome = Outcome.PROGRAM_FAILED


class Broke(TrialFailure):
    """The load exceeded the server's capacity: it refused, died or exceeded its limits. That is a result."""

    outcome = Outcome.BROKE


class ProgramFailed(TrialFailure):
    """The program ran and reported an error (even when it did so with exit code 0)."""


def require_success(completed: Completed, program: str = "", complaint: str = "") -> Completed:
    """Return a process that exited with code 0. Raises ProgramFailed with its complaint, or else its last words."""
    if completed.returncode != 0:
        reason = complaint or completed.last_words
        raise ProgramFailed(f"{program or completed.argv[0]} exited with code {completed.returncode}: {reason}")
    return completed


class Unparseable(TrialFailure):
    """The program's output cannot be parsed: empty, cut short or garbage."""

    outcome = Outcome.UNPARSEABLE


class ServerNotReady(TrialFailure):
    """The server did not listen in time."""

    outcome = Outcome.SERVER_NOT_READY


class ServerDied(TrialFailure):
    """The server ended while its client was still running; ``killed``: by another process's signal."""

    outcome = Outcome.SERVER_DIED

    def __init__(self, message: str, *, killed: bool = False) -> None:
        super().__init__(message)
        self.killed = killed


class DeadlineExceeded(TrialFailure):
    """The client was still running at its deadline and was killed."""

    outcome = Outcome.DEADLINE


CPU_USER = Metric("cpu_user", "s", "lower")
CPU_SYSTEM = Metric("cpu_system", "s", "lower")
PEAK_MEMORY = Metric("peak_memory", "MiB", "lower")
CONTEXT_SWITCHES = Metric("context_switches", "count", "lower")
PAGE_FAULTS = Metric("page_faults", "count", "lower")
OF_PROGRAM = (CPU_USER, CPU_SYSTEM, PEAK_MEMORY, CONTEXT_SWITCHES, PAGE_FAULTS)
"""The resource use of the measured process itself, from its site's launcher (getrusage(2))."""
SITES_CPU = ("cpu_client_per_", "cpu_server_per_")
"""The beginnings of metrics about the CPU time of one site."""
ALL_CPU, SWITCHES, RETRANSMITS = "cpu_all_per_", "context_switches_per_", "tcp_retransmits_per_"
SEGMENTS = "tcp_segments_per_"
"""The beginnings of metrics about all machines together, per unit of work."""
THROTTLED_TIME, THROTTLED_PERIODS = "throttled_time", "throttled_periods"
"""How long, and in how many periods, CPU limits throttled programs, if environments differ in these limits."""


@dataclass(frozen=True, slots=True)
class EventCounter:
    """A counter of the kernel that is read before and after the measured process (`weighbridge.meters.events`)."""

    name: str
    """The name of the counter. The metric's name begins with it: ``disk_flushes_per_gbit``."""
    description: str
    """A description of the metric for the reference."""
    rare: bool = False
    """Whether it is usually 0. It is then compared by difference, and left out of a report if it is always 0."""
    per_trial: bool = False
    """Whether it is a metric of the whole trial if the amount of work is not known."""

    @property
    def prefix(self) -> str:
        """The beginning of the names of its metrics."""
        return self.name if self.per_trial else f"{self.name}_per_"


EVENT_COUNTERS = (
    EventCounter("softnet_drops", "packets that the kernel dropped before its network stack", rare=True),
    EventCounter("softnet_squeezes", "polls of network interfaces that left packets for later", rare=True),
    EventCounter("conntrack_drops", "packets and connections that conntrack rejected", rare=True),
    EventCounter("disk_flushes", "flushes of the disk that flushed most; for workloads with data", per_trial=True),
    EventCounter("vm_exits", "exits of all guests to their hypervisor; if debugfs is readable", per_trial=True),
)
"""The counters of the kernel that make metrics. To add one, add a row here, and read it in `meters.events`."""
_PREFIX_OF = {each.name: each.prefix for each in EVENT_COUNTERS}
SOFTNET_DROPS, SOFTNET_SQUEEZES = _PREFIX_OF["softnet_drops"], _PREFIX_OF["softnet_squeezes"]
CONNECTION_DROPS, DISK_FLUSHES = _PREFIX_OF["conntrack_drops"], _PREFIX_OF["disk_flushes"]
VM_EXITS = _PREFIX_OF["vm_exits"]
PACKET_SIZE = "bytes_per_packet"
"""Mean size of the received IPv4 packets. It is above the MTU if the kernel combines segments (TSO, GRO)."""
DISK_TIME = "disk_time"
"""The share of time for which the busiest disk was busy."""
_RARE = tuple(each.prefix for each in EVENT_COUNTERS if each.rare)
_EVENTS = (*(each.prefix for each in EVENT_COUNTERS), PACKET_SIZE, DISK_TIME)
SOFTIRQ_SHARE, CPU_USAGE, MEMORY_USAGE = "softirq_share", "cpu_usage", "memory_usage"
PREFIXES = (
    ALL_CPU, "cpu_client_", "cpu_server_", "cpu_solo_", "memory_client_", "memory_server_", "memory_solo_",
    CPU_USAGE, MEMORY_USAGE, SWITCHES, RETRANSMITS, SEGMENTS, SOFTIRQ_SHARE, THROTTLED_TIME, THROTTLED_PERIODS,
    *_EVENTS,
)  # fmt: skip
"""The beginnings of all metrics that the meters add to a workload's own."""


def is_resource_use(metric: str) -> bool:
    """Return whether a metric is resource use (CPU per Gbit, memory beyond the baseline), not a workload's own."""
    return metric.startswith(PREFIXES) or any(metric == each.name for each in OF_PROGRAM)


def is_event(metric: str) -> bool:
    """Return whether a metric counts kernel events other than CPU time and memory: drops, packets, flushes, exits."""
    return metric.startswith(_EVENTS)


def is_rare_event(metric: str) -> bool:
    """Return whether a metric counts rare events: it is not shown if none happened in a run."""
    return metric.startswith(_RARE)


# -- the scale of a cost -----------------------------------------------------------------------------

_BEYOND = "_beyond_baseline"
_COUNTS_AND_SHARES = ("count", "%")
"""Units whose values have no meaningful ratio: 5,000 retransmits instead of 1 are not a cost of 500,000%."""


def is_difference_itself(metric: str) -> bool:
    """Return whether a metric is compared by difference in any unit, because its values are noise, or rare counts."""
    return metric.endswith(_BEYOND) or metric in (CPU_USAGE, MEMORY_USAGE) or metric.startswith((RETRANSMITS, *_RARE))


def scale_of(metric: str, unit: str) -> Literal["difference"] | None:
    """Return the scale on which the costs of a metric must be computed, for `weighbridge.statistics.compare`.

    None means a ratio, if the values allow one. All code uses this function: looks of a run, reports, gates and
    comparisons of runs.
    """
    return "difference" if is_difference_itself(metric) or unit in _COUNTS_AND_SHARES else None
