"""What all who worked for a trial cost: its whole machines beyond their idle level, while the measured process ran.

The sites' own CPU time (`weighbridge.runner.costs`) leaves out whoever works for them elsewhere: docker-proxy, the
engine, threads of the kernel, interrupts that met an idle CPU, and all of the network stack's interrupts where the
kernel accounts these apart (`weighbridge.facts.interrupts`).
"""

import math
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median

from weighbridge.meters import machines
from weighbridge.meters.machines import RESOLUTION_S, Idle, Read, Snapshot, Tcp, Use, read_here
from weighbridge.model.host import HERE, Host
from weighbridge.model.measurement import Measurement, Metric
from weighbridge.model.site import Site
from weighbridge.model.study import Role
from weighbridge.model.trial import Work

PER = {"gbit": "Gbit", "1000_transactions": "1000", "1000_objects": "1000"}
"""What stands below the line of a unit."""
FIRST_S, AGAIN_S = 1.0, 0.5
"""How long the first look at idle machines takes, and each later one."""
BETWEEN_S = 100 * AGAIN_S
"""At least so long after a look is the next: looking costs no more than one percent of a run."""
_SHARE_TOLD = 0.05
"""How far the counters' steps may put a share off, at most, for it to be told."""
STOLEN = 0.01
"""Share of the CPU time that a hypervisor may take before that of all who worked cannot be told."""
CLOCKS_DIFFER = 0.06
"""Share of its own CPU time by which the sites' can exceed that of all.

The scheduler charges a task from the moment at which it is woken, while the idle clock runs until the CPU has left
its idle state: both count the way out of it. Seen to be 4 % where a server is woken 14 000 times a second.
"""
LOOKS = 5
"""How many of the last looks make the idle level."""
Networks = Mapping[tuple[str, str], tuple[Read, str]]


def reader_of(host: Host, here: Read = read_here) -> Read:
    """Who reads the files of a host's machine; ``here`` reads those of this one."""
    return here if host.machine == HERE else host.read


def networks_of(sites: Mapping[Role, Site]) -> Networks:
    """TCP's counters of each network namespace on the way: the sites' own, and their hosts' (docker-proxy's, say)."""
    found: dict[tuple[str, str], tuple[Read, str]] = {}
    for site in sites.values():
        owner, counters = site.host.network
        for path in (counters, site.scope().get("net")):
            if path is not None:
                found[owner, path] = site.host.read, str(Path(path).with_name("snmp"))
    return found


@dataclass(slots=True)
class IdleLevels:
    """What each machine does while every site is frozen: looked at before the first trial, and again now and then."""

    readers: Mapping[str, Read]
    keep: Callable[[Mapping[str, str]], None] = lambda _: None
    """Is given each look as facts: "MACHINE: CPUs busy" and "MACHINE: context switches per second"."""
    _looks: dict[str, deque[Idle]] = field(default_factory=dict)
    _looked_at: float = -math.inf

    @property
    def levels(self) -> dict[str, Idle]:
        """The median of the last looks at each machine: one look is to a hundredth of a second only."""
        return {
            name: Idle(median(each.busy_cpus for each in looks), median(each.switches_per_s for each in looks))
            for name, looks in self._looks.items()
        }

    @property
    def due(self) -> bool:
        """Whether it is time for another look."""
        return time.monotonic() - self._looked_at >= BETWEEN_S

    def look(self) -> None:
        """Look at all of them at once. No site may run meanwhile."""
        before = {name: machines.snapshot(read) for name, read in self.readers.items()}
        time.sleep(AGAIN_S if self._looks else FIRST_S)
        for name, read in self.readers.items():
            if (used := machines.use(before[name], machines.snapshot(read))) is not None:
                if used.busy_s < -RESOLUTION_S:  # the hypervisor took part of it: this look tells nothing
                    continue
                level = machines.idle(used)
                self._looks.setdefault(name, deque(maxlen=LOOKS)).append(level)
                self.keep(
                    {
                        f"{name}: CPUs busy": f"{level.busy_cpus:.4f}",
                        f"{name}: context switches per second": f"{level.switches_per_s:.0f}",
                    }
                )
        self._looked_at = time.monotonic()


@dataclass(slots=True)
class MachineUse:
    """What machines did between `begin` and `end`, and how often TCP sent again."""

    readers: Mapping[str, Read]
    networks: Networks
    uses: dict[str, Use] = field(default_factory=dict)
    tcp: Tcp | None = None
    tool_s: float = 0.0
    """CPU seconds of this process meanwhile: of the machine HERE."""
    _before: dict[str, Snapshot | None] = field(default_factory=dict)
    _tcp_before: Tcp | None = None

    def begin(self) -> None:
        """Read the counters for the first time."""
        self._tcp_before, self.tool_s = machines.tcp_total(self.networks.values()), time.process_time()
        self._before = {name: machines.snapshot(read) for name, read in self.readers.items()}

    def end(self) -> None:
        """Read them for the last time."""
        for name, read in self.readers.items():
            if (used := machines.use(self._before[name], machines.snapshot(read))) is not None:
                self.uses[name] = used
        self.tool_s = time.process_time() - self.tool_s
        after, before = machines.tcp_total(self.networks.values()), self._tcp_before
        if before is not None and after is not None:
            self.tcp = Tcp(after.sent - before.sent, after.retransmitted - before.retransmitted)

    @property
    def stolen(self) -> float:
        """The share of CPU time that a hypervisor took, on the machine where that was most."""
        return max((used.stolen for used in self.uses.values()), default=0.0)

    @property
    def complete(self) -> bool:
        """Whether every machine could be read."""
        return bool(self.uses) and self.uses.keys() == self.readers.keys()

    def beyond_s(self, idle: Mapping[str, Idle]) -> float | None:
        """CPU seconds of all machines beyond idle, without this process's; None where one is not known."""
        if not self.complete or not self.uses.keys() <= idle.keys():
            return None
        own_s = self.tool_s if HERE in self.uses else 0.0
        return sum(use.busy_s - idle[name].busy_cpus * use.seconds for name, use in self.uses.items()) - own_s

    def switches(self, idle: Mapping[str, Idle]) -> float | None:
        """Context switches of all machines beyond idle; None where they are not known."""
        if not self.complete or not self.uses.keys() <= idle.keys():
            return None
        return sum(use.context_switches - idle[name].switches_per_s * use.seconds for name, use in self.uses.items())


def all_who_worked(
    use: MachineUse | None, idle: Mapping[str, Idle], not_work_s: float, work: Work | None, sites_s: float = 0.0
) -> tuple[Measurement, ...]:
    """Give CPU seconds and context switches beyond idle per unit of work, retransmits, softirq's share.

    ``not_work_s``: CPU seconds of meters. A figure is absent, and never zero,
    where a machine has no reading or no idle level, or where the CPU time is below what the counters can tell. So is
    the CPU time of all where a hypervisor took more than `STOLEN` (its time and idle time overlap), or where it is
    less than ``sites_s``, what the sites used alone, by more than `CLOCKS_DIFFER`: then others gave way to the trial.
    """
    if use is None:
        return ()
    return (*_per_work(use, idle, not_work_s, work, sites_s), *(_softirq(use.uses) if use.complete else ()))


def _per_work(
    use: MachineUse, idle: Mapping[str, Idle], not_work_s: float, work: Work | None, sites_s: float
) -> Iterator[Measurement]:
    if work is None or not math.isfinite(work.amount) or work.amount <= 0:
        return
    found: dict[str, tuple[str, float]] = {}
    beyond_s, switches = use.beyond_s(idle), use.switches(idle)
    least_s = max(RESOLUTION_S * len(use.uses), sites_s * (1 - CLOCKS_DIFFER) - RESOLUTION_S)
    if beyond_s is not None and beyond_s - not_work_s > least_s and use.stolen <= STOLEN:
        found["cpu_all"] = "s", beyond_s - not_work_s
    if switches is not None and switches > 0:
        found["context_switches"] = "1", switches
    if use.tcp is not None and use.tcp.sent > 0 and use.tcp.retransmitted >= 0:
        found["tcp_retransmits"] = "1", use.tcp.retransmitted
    for name, (unit, amount) in found.items():
        if math.isfinite(each := amount / work.amount):
            yield Measurement(Metric(f"{name}_per_{work.unit}", f"{unit}/{PER[work.unit]}", "lower"), each)


def _softirq(uses: Mapping[str, Use]) -> Iterator[Measurement]:
    """Of all CPU time, the share that the kernel spent in software interrupts: most of its network stack.

    Both by the ticks of /proc/stat; absent where these are too few to tell the share to `_SHARE_TOLD`.
    """
    busy_s = sum(each.ticks_s for each in uses.values())
    told = busy_s * _SHARE_TOLD >= RESOLUTION_S * len(uses)
    share = sum(each.softirq_s for each in uses.values()) / busy_s if told else -1.0
    if 0 <= share <= 1:
        yield Measurement(Metric("softirq_share", "%", "lower"), 100 * share)


def samples(use: MachineUse, idle: Mapping[str, Idle]) -> Iterator[tuple[str, str, float]]:
    """What the figures are made of, by machine; "trial" is what is of all together."""
    for name, each in use.uses.items():
        yield name, "measured_busy_s", each.busy_s
        yield name, "measured_softirq_s", each.softirq_s
        yield name, "measured_context_switches", each.context_switches
        if name in idle:
            yield name, "idle_cpus", idle[name].busy_cpus
    yield "trial", "tool_cpu_s", use.tool_s
    if use.tcp is not None:
        yield "trial", "tcp_segments_sent", use.tcp.sent
        yield "trial", "tcp_segments_retransmitted", use.tcp.retransmitted
