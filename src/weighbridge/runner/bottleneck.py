"""What limited a trial: one flag with figures for each trial that gave measurements.

The first that applies is named, in this order: the cable, a rate that was asked for, the generator, the CPU quota,
the CPUs, the disk. A full cable decides what everything is, whoever was busy beside it; a rate that was met was not
limited by anybody's CPU (a program that paces itself may spin).
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from weighbridge.meters import host
from weighbridge.meters.host import FULL, SATURATED, THROTTLED
from weighbridge.model.flag import Flag, FlagCode
from weighbridge.model.host import Link
from weighbridge.model.measurement import Measurement
from weighbridge.model.study import Role

CABLE = 0.9
"""Share of a cable's rate, in one direction, from which it counts as full."""
MET = 0.95
"""Share of a rate that was asked for from which it was met."""
WAITING = 0.5
"""Share of the time in which programs waited for disks from which these are the limit."""

Counted = Sequence[tuple[Link, Mapping[str, float]]]
"""Links with the bits that they had carried."""


@dataclass(frozen=True, slots=True)
class Seen:
    """What was seen while the measured process ran."""

    use: Mapping[str, Mapping[str, float]]
    """What each role's site used."""
    seconds: float
    """How long the measured process was at work."""
    cables: Sequence[Flag] = ()
    """The share of its rate that each cable carried, as flags."""
    waited_s: float = 0.0
    """Seconds in which programs waited for disks."""


@dataclass(frozen=True, slots=True)
class Setting:
    """Where the roles are: which are in the environment, on how many CPUs, and how many they share."""

    inside: frozenset[Role]
    cpus: Mapping[str, int]
    shared_cpus: int | None = None
    """How many CPUs client and server share, where they do."""
    threads: int = 1
    """Threads of the measured process that can be busy at once."""
    apart: bool = True
    """Whether client and server are on two machines. On one, the receiver's work is partly done on the sender's."""


@dataclass(slots=True)
class Watch:
    """The cables of a trial, and how long programs waited for disks: read before and after its measured process."""

    links: Sequence[Link] = ()
    readers: Sequence[Callable[[str], bytes]] = ()
    """Who reads the files of each machine."""
    waited_s: float = 0.0
    """Seconds in which programs waited for disks, on the machine where that was most."""
    _links: Counted = field(default_factory=tuple)
    _waits: Sequence[float] = ()
    _carried: Sequence[tuple[Link, float]] = ()

    def begin(self) -> None:
        """Read for the first time."""
        self._waits = self._read()
        self._links = [(link, link.carried()) for link in self.links]

    def end(self) -> None:
        """Read for the last time. Of a cable its busier direction counts."""
        ways = [(link, before, link.carried()) for link, before in self._links]
        self._carried = [
            (link, max(bits - before[way] for way, bits in after.items() if way in before))
            for link, before, after in ways
            if before.keys() & after.keys()
        ]
        self.waited_s = max((now - then for then, now in zip(self._waits, self._read(), strict=True)), default=0.0)

    def _read(self) -> list[float]:
        return [host.waited_s("io", file=reader) or 0.0 for reader in self.readers]

    def cables(self, seconds: float) -> list[Flag]:
        """Each cable's share of its rate over the seconds in which data were on it."""
        return [
            Flag(FlagCode.CABLE, link.where, {"share": min(1.0, bits / (link.rate * seconds)), "rate": link.rate})
            for link, bits in self._carried
            if seconds > 0
        ]


def bottleneck(seen: Seen, setting: Setting, asked: Measurement | None, measured: Sequence[Measurement]) -> Flag:
    """Give what limited a trial, or `FlagCode.NO_BOTTLENECK` where that is not known."""
    for found in (_cable(seen), _asked(asked, measured), _generator(seen, setting), _cpu(seen, setting)):
        if found is not None:
            return found
    if seen.waited_s > WAITING * seen.seconds > 0:
        return Flag(FlagCode.DISK, figures={"share": min(1.0, seen.waited_s / seen.seconds)})
    return Flag(FlagCode.NO_BOTTLENECK)


def _cable(seen: Seen) -> Flag | None:
    fullest = max(seen.cables, key=lambda flag: flag.figures["share"], default=None)
    return fullest if fullest is not None and fullest.figures["share"] >= CABLE else None


def _asked(asked: Measurement | None, measured: Sequence[Measurement]) -> Flag | None:
    reached = next((each.value for each in measured if asked is not None and each.metric == asked.metric), 0.0)
    if asked is None or asked.value <= 0 or reached < MET * asked.value:
        return None
    figures = {"share": reached / asked.value, "rate": asked.value}
    return Flag(FlagCode.ASKED_RATE, figures=figures, text=asked.metric.unit)


def _generator(seen: Seen, setting: Setting) -> Flag | None:
    """A client on another machine, outside of the environment, that ran out of CPU while the server had some left.

    On the server's machine its CPU carries part of what the environment costs: that shows the cost.
    """
    if "client" not in seen.use or "client" in setting.inside or not setting.apart:
        return None
    client = _used(seen, "client")
    limit = min(setting.threads, setting.cpus.get("client", setting.threads))
    throttled = _throttled(seen, "client")
    if throttled <= THROTTLED and client <= SATURATED * limit:
        return None
    server = _used(seen, "server")
    full = setting.shared_cpus is not None and client + server > FULL * setting.shared_cpus
    if full or _full(seen, setting, "server") or _throttled(seen, "server") > THROTTLED:
        return None
    return Flag(FlagCode.GENERATOR, "client", {"share": max(throttled, min(1.0, client / limit))})


def _cpu(seen: Seen, setting: Setting) -> Flag | None:
    """The CPU quota of a role, all CPUs that the roles share, or those of one role."""
    roles = sorted(seen.use, reverse=True)  # the server before the client
    for role in roles:
        if (throttled := _throttled(seen, role)) > THROTTLED:
            return Flag(FlagCode.CPU_QUOTA, role, {"share": min(1.0, throttled)})
    together = sum(_used(seen, role) for role in roles)
    if setting.shared_cpus is not None and together > FULL * setting.shared_cpus:
        return Flag(FlagCode.CPUS, figures={"share": min(1.0, together / setting.shared_cpus)})
    for role in roles:
        limit = min(setting.threads, setting.cpus.get(role, setting.threads)) if role != "server" else None
        if _full(seen, setting, role, limit):
            return Flag(FlagCode.CPUS, role, {"share": min(1.0, _used(seen, role) / (limit or setting.cpus[role]))})
    return None


def _used(seen: Seen, role: str) -> float:
    """CPUs that a role kept busy."""
    return seen.use.get(role, {}).get("cpu_s", 0.0) / max(seen.seconds, 1e-9)


def _throttled(seen: Seen, role: str) -> float:
    return seen.use.get(role, {}).get("throttled_s", 0.0) / max(seen.seconds, 1e-9)


def _full(seen: Seen, setting: Setting, role: str, limit: int | None = None) -> bool:
    cpus = limit or setting.cpus.get(role, 0)
    return cpus > 0 and _used(seen, role) > SATURATED * cpus
