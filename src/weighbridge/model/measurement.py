"""Metrics, their values, which of them tell resource use, and how a trial can end."""

import enum
from dataclasses import dataclass
from typing import Literal

from weighbridge.model.command import Completed

Better = Literal["higher", "lower"]


@dataclass(frozen=True, slots=True)
class Metric:
    """Something that a workload measures: its name, its unit and which direction is better."""

    name: str
    unit: str
    better: Better

    @property
    def adds_up(self) -> bool:
        """Whether values of several sites at work at a time have a sum: those of rates and counts, not of times."""
        return self.unit == "count" or self.unit.endswith("/s")


LARGEST, SMALLEST = 1e100, 1e-100
"""Beyond what any unit makes of anything; their ratios, squares and sums are finite."""


def is_plausible(value: float) -> bool:
    """Whether something can have been measured: a number that is not too large, nor too near to zero."""
    return value == 0 or SMALLEST <= abs(value) <= LARGEST


@dataclass(frozen=True, slots=True)
class Measurement:
    """One metric's value from one trial. The value is finite: what is missing is not a measurement."""

    metric: Metric
    value: float

    def __post_init__(self) -> None:
        if not is_plausible(self.value):
            raise ValueError(f"{self.metric.name} is {self.value}: a measurement must be a finite number")


class Outcome(enum.StrEnum):
    """How a trial ended. OK and BROKE are results; every other outcome makes its block be run again."""

    OK = "ok"
    BROKE = "broke"
    PROGRAM_FAILED = "program failed"
    UNPARSEABLE = "unparseable"
    SERVER_NOT_READY = "server not ready"
    SERVER_DIED = "server died"
    DEADLINE = "deadline"
    ENVIRONMENT_LOST = "environment lost"


class TrialFailure(Exception):
    """A trial that gave no measurements, with its outcome and one sentence that says why."""

    outcome: Outcome = Outcome.PROGRAM_FAILED


class Broke(TrialFailure):
    """The load was more than the server bears: it refused, died or exceeded its limits. That is a result."""

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
    """The program's output is not what its parser understands: empty, cut short or garbage."""

    outcome = Outcome.UNPARSEABLE


class ServerNotReady(TrialFailure):
    """The server did not listen in time."""

    outcome = Outcome.SERVER_NOT_READY


class ServerDied(TrialFailure):
    """The server ended while its client was still at work; ``killed``: by a signal of somebody else."""

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
"""What the measured process used by itself, as its site's launcher tells it (getrusage(2))."""
SITES_CPU = ("cpu_client_per_", "cpu_server_per_")
"""How the names of metrics begin that tell the CPU time of a site alone."""
ALL_CPU, SWITCHES, RETRANSMITS = "cpu_all_per_", "context_switches_per_", "tcp_retransmits_per_"
SEGMENTS = "tcp_segments_per_"
"""How the names of metrics begin that tell what all machines used, sent, or sent again, for a unit of work."""
THROTTLED_TIME, THROTTLED_PERIODS = "throttled_time", "throttled_periods"
"""How long, and in how many periods, CPU limits held programs back, where environments differ in these limits."""


@dataclass(frozen=True, slots=True)
class EventCounter:
    """A counter of the kernel that is read before and after the measured process (`weighbridge.meters.events`)."""

    name: str
    """The name of the counter. The metric's name begins with it: ``disk_flushes_per_gbit``."""
    about: str
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
"""Share of time in which the busiest disk was busy."""
_RARE = tuple(each.prefix for each in EVENT_COUNTERS if each.rare)
_EVENTS = (*(each.prefix for each in EVENT_COUNTERS), PACKET_SIZE, DISK_TIME)
SOFTIRQ_SHARE, CPU_USAGE, MEMORY_USAGE = "softirq_share", "cpu_usage", "memory_usage"
PREFIXES = (
    ALL_CPU, "cpu_client_", "cpu_server_", "cpu_solo_", "memory_client_", "memory_server_", "memory_solo_",
    CPU_USAGE, MEMORY_USAGE, SWITCHES, RETRANSMITS, SEGMENTS, SOFTIRQ_SHARE, THROTTLED_TIME, THROTTLED_PERIODS,
    *_EVENTS,
)  # fmt: skip
"""How the names of metrics begin that the meters add to what a workload measures."""


def is_resource_use(metric: str) -> bool:
    """Whether a metric is resource use (CPU per Gbit, memory beyond the baseline), not what the workload measures."""
    return metric.startswith(PREFIXES) or any(metric == each.name for each in OF_PROGRAM)


def is_event(metric: str) -> bool:
    """Whether a metric tells what the kernel counted beside CPU time and memory: drops, packets, flushes, exits."""
    return metric.startswith(_EVENTS)


def is_rare_event(metric: str) -> bool:
    """Whether a metric of the meters counts what seldom happens: where it never did in a run, it is not shown."""
    return metric.startswith(_RARE)


# -- the scale of a cost -----------------------------------------------------------------------------

_BEYOND = "_beyond_baseline"
"""How the names of metrics end that are themselves differences."""
_COUNTS_AND_SHARES = ("count", "%")
"""Units whose values have no telling ratio: 5 000 retransmits against 1 are not 500 000 %."""


def is_difference_itself(metric: str) -> bool:
    """Whether a metric of the meters is compared by difference in any unit: a ratio of two noises is no cost.

    What a whole host used can be next to nothing, and retransmits and drops are rare: 40 against 1 are not 4 000 %.
    """
    return metric.endswith(_BEYOND) or metric in (CPU_USAGE, MEMORY_USAGE) or metric.startswith((RETRANSMITS, *_RARE))


def scale_of(metric: str, unit: str) -> Literal["difference"] | None:
    """Return the scale on which the costs of a metric have to be computed, for `weighbridge.statistics.compare`.

    None: a ratio where its values allow one. This is the one place that decides it: for the looks of a run, its
    report, gates and comparisons of runs.
    """
    return "difference" if is_difference_itself(metric) or unit in _COUNTS_AND_SHARES else None
