"""Finds what limited a trial, and returns it as one flag with figures.

The first limit that applies is returned, in this order: the cable, the requested rate, the generator, the CPU quota,
the CPUs, the disk. A full cable limits a trial however busy the CPUs are. A program that reached its requested rate
was not limited by any CPU, because programs that pace themselves can spin.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from weighbridge.meters.host import FULL, SATURATED, THROTTLED
from weighbridge.model.flag import Flag, FlagCode
from weighbridge.model.measurement import Measurement
from weighbridge.model.study import Role

CABLE = 0.9
"""The share of a cable's rate, in one direction, above which the cable counts as full."""
MET = 0.95
"""The share of a requested rate above which the rate counts as reached."""
WAITING = 0.5
"""If programs wait for disks for more than this share of the time, the disk is the limit."""


@dataclass(frozen=True, slots=True)
class TrialUsage:
    """The resource use while the measured process ran."""

    use: Mapping[str, Mapping[str, float]]
    seconds: float
    """How long the measured process worked; more than 0."""
    cables: Sequence[Flag] = ()
    waited_s: float = 0.0
    """The seconds for which programs waited for disks."""


@dataclass(frozen=True, slots=True)
class RoleCpus:
    """The roles that are in the environment, and their CPUs."""

    inside: frozenset[Role]
    cpus: Mapping[str, int]
    shared_cpus: int | None = None
    """The number of CPUs that client and server share, if they do."""
    threads: int = 1
    """The number of threads of the measured process that can be busy at once."""
    separate_machines: bool = True
    """Whether client and server are on two machines. On one machine, the sender does part of the receiver's work."""


def bottleneck(
    usage: TrialUsage, cpus: RoleCpus, asked_rate: Measurement | None, measured: Sequence[Measurement]
) -> Flag:
    """Return the limit of a trial, or `FlagCode.NO_BOTTLENECK` if it is unknown."""
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
    """Return a flag if a client on another machine, outside of the environment, ran out of CPU before the server."""
    if "client" not in usage.use or "client" in cpus.inside or not cpus.separate_machines:
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
    """Return a flag if a role's CPU quota, its CPUs, or all shared CPUs were used up."""
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
    return usage.use.get(role, {}).get("cpu_s", 0.0) / usage.seconds


def _throttled(usage: TrialUsage, role: str) -> float:
    return usage.use.get(role, {}).get("throttled_s", 0.0) / usage.seconds


def _full(usage: TrialUsage, cpus: RoleCpus, role: str, limit: int | None = None) -> bool:
    most = limit or cpus.cpus.get(role, 0)
    return most > 0 and _used(usage, role) > SATURATED * most
