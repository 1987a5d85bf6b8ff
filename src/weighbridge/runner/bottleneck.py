"""What limited a trial: one flag with figures for each trial that gave measurements.

The first that applies is named, in this order: the cable, a rate that was asked for, the generator, the CPU quota,
the CPUs, the disk. A full cable decides what everything is, whoever was busy beside it; a rate that was met was not
limited by anybody's CPU (a program that paces itself may spin).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from weighbridge.meters.host import FULL, SATURATED, THROTTLED
from weighbridge.model.flag import Flag, FlagCode
from weighbridge.model.measurement import Measurement
from weighbridge.model.study import Role

CABLE = 0.9
"""Share of a cable's rate, in one direction, from which it counts as full."""
MET = 0.95
"""Share of a rate that was asked for from which it was met."""
WAITING = 0.5
"""Share of the time in which programs waited for disks from which these are the limit."""


@dataclass(frozen=True, slots=True)
class TrialUsage:
    """What was seen while the measured process ran."""

    use: Mapping[str, Mapping[str, float]]
    """What each role's site used."""
    seconds: float
    """How long the measured process was at work, which is more than 0."""
    cables: Sequence[Flag] = ()
    """The share of its rate that each cable carried, as flags."""
    waited_s: float = 0.0
    """Seconds in which programs waited for disks."""


@dataclass(frozen=True, slots=True)
class RoleCpus:
    """Where the roles are: which are in the environment, on how many CPUs, and how many they share."""

    inside: frozenset[Role]
    cpus: Mapping[str, int]
    shared_cpus: int | None = None
    """How many CPUs client and server share, where they do."""
    threads: int = 1
    """Threads of the measured process that can be busy at once."""
    apart: bool = True
    """Whether client and server are on two machines. On one, the receiver's work is partly done on the sender's."""


def bottleneck(
    usage: TrialUsage, cpus: RoleCpus, asked_rate: Measurement | None, measured: Sequence[Measurement]
) -> Flag:
    """Give what limited a trial, or `FlagCode.NO_BOTTLENECK` where that is not known."""
    for flag in (_cable(usage), _met_rate(asked_rate, measured), _generator(usage, cpus), _cpu(usage, cpus)):
        if flag is not None:
            return flag
    if usage.waited_s > WAITING * usage.seconds:
        return Flag(FlagCode.DISK, figures={"share": min(1.0, usage.waited_s / usage.seconds)})
    return Flag(FlagCode.NO_BOTTLENECK)


def _cable(usage: TrialUsage) -> Flag | None:
    fullest = max(usage.cables, key=lambda flag: flag.figures["share"], default=None)
    return fullest if fullest is not None and fullest.figures["share"] >= CABLE else None


def _met_rate(asked_rate: Measurement | None, measured: Sequence[Measurement]) -> Flag | None:
    reached = next(
        (each.value for each in measured if asked_rate is not None and each.metric == asked_rate.metric), 0.0
    )
    if asked_rate is None or asked_rate.value <= 0 or reached < MET * asked_rate.value:
        return None
    figures = {"share": reached / asked_rate.value, "rate": asked_rate.value}
    return Flag(FlagCode.ASKED_RATE, figures=figures, text=asked_rate.metric.unit)


def _generator(usage: TrialUsage, cpus: RoleCpus) -> Flag | None:
    """A client on another machine, outside of the environment, that ran out of CPU while the server had some left.

    On the server's machine its CPU carries part of what the environment costs: that shows the cost.
    """
    if "client" not in usage.use or "client" in cpus.inside or not cpus.apart:
        return None
    client = _used(usage, "client")
    limit = min(cpus.threads, cpus.cpus.get("client", cpus.threads))
    throttled = _throttled(usage, "client")
    if throttled <= THROTTLED and client <= SATURATED * limit:
        return None
    server = _used(usage, "server")
    full = cpus.shared_cpus is not None and client + server > FULL * cpus.shared_cpus
    if full or _full(usage, cpus, "server") or _throttled(usage, "server") > THROTTLED:
        return None
    return Flag(FlagCode.GENERATOR, "client", {"share": max(throttled, min(1.0, client / limit))})


def _cpu(usage: TrialUsage, cpus: RoleCpus) -> Flag | None:
    """The CPU quota of a role, all CPUs that the roles share, or those of one role."""
    roles = sorted(usage.use, reverse=True)  # the server before the client
    for role in roles:
        if (throttled := _throttled(usage, role)) > THROTTLED:
            return Flag(FlagCode.CPU_QUOTA, role, {"share": min(1.0, throttled)})
    together = sum(_used(usage, role) for role in roles)
    if cpus.shared_cpus is not None and together > FULL * cpus.shared_cpus:
        return Flag(FlagCode.CPUS, figures={"share": min(1.0, together / cpus.shared_cpus)})
    for role in roles:
        limit = min(cpus.threads, cpus.cpus.get(role, cpus.threads)) if role != "server" else None
        if _full(usage, cpus, role, limit):
            return Flag(FlagCode.CPUS, role, {"share": min(1.0, _used(usage, role) / (limit or cpus.cpus[role]))})
    return None


def _used(usage: TrialUsage, role: str) -> float:
    """CPUs that a role kept busy."""
    return usage.use.get(role, {}).get("cpu_s", 0.0) / usage.seconds


def _throttled(usage: TrialUsage, role: str) -> float:
    return usage.use.get(role, {}).get("throttled_s", 0.0) / usage.seconds


def _full(usage: TrialUsage, cpus: RoleCpus, role: str, limit: int | None = None) -> bool:
    most = limit or cpus.cpus.get(role, 0)
    return most > 0 and _used(usage, role) > SATURATED * most
