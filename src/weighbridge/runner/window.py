"""Measures the resource use of one trial: counters before and after it and its measured process, and time series.

Each source of counters is a `Reader`, and a `CounterDelta` reads it at both ends. All figures about a trial's
resource use come from its `Window`.
"""

import math
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial

from weighbridge.errors import EnvironmentLost
from weighbridge.meters import host
from weighbridge.meters.events import events_of_machines, machine_events, network_events
from weighbridge.meters.machines import Use, counters_of, networks_of, tcp_total, use
from weighbridge.meters.meter import MeterFailed, Samplers
from weighbridge.meters.scopes import host_place
from weighbridge.model.flag import Flag, FlagCode
from weighbridge.model.host import NetworkLink
from weighbridge.model.site import Site
from weighbridge.model.trial import Series
from weighbridge.runner.stage import Stage

WindowSample = tuple[str, str, float]
TRIAL = "trial"
"""The place of counters about a whole trial: this process's CPU time, TCP's segments."""


@dataclass(frozen=True, slots=True)
class Reader:
    """Reads the counters of one place by their names; unreadable ones are absent."""

    place: str
    read: Callable[[], Mapping[str, float]]


@dataclass(slots=True)
class CounterDelta:
    """Counters that the same readers read before and after something. The first reader is the closest to it."""

    readers: Sequence[Reader] = ()
    before: dict[str, dict[str, float]] = field(default_factory=dict)
    after: dict[str, dict[str, float]] = field(default_factory=dict)
    used: dict[str, dict[str, float]] = field(default_factory=dict)
    """The growth of each counter, by place and name, once the end is read; for a level, its value before."""

    def begin(self) -> None:
        """Read for the first time. Raises EnvironmentLost."""
        for reader in reversed(self.readers):
            self.before.setdefault(reader.place, {}).update(reader.read())

    def end(self) -> EnvironmentLost | None:
        """Read for the last time; return the first loss. A place that was lost meanwhile has no values."""
        first: EnvironmentLost | None = None
        for reader in self.readers:
            try:
                self.after.setdefault(reader.place, {}).update(reader.read())
            except EnvironmentLost as lost:
                first = first or lost
        self.used = {place: host.used(counters, self.after.get(place, {})) for place, counters in self.before.items()}
        return first


@dataclass(frozen=True, slots=True)
class MachineUse:
    """The use of whole machines while the measured process ran, and TCP's segments."""

    machines: Mapping[str, Use | None]
    """The use by the machine's name; None if a machine could not be read."""
    tool_s: float = 0.0
    """The CPU seconds of this process during that time, on the machine HERE."""
    segments: Mapping[str, float] = field(default_factory=dict)
    """TCP's ``sent_segments`` and ``resent_segments``; empty if unreadable."""

    @property
    def uses(self) -> dict[str, Use]:
        """The use of the machines that could be read."""
        return {name: used for name, used in self.machines.items() if used is not None}

    @property
    def complete(self) -> bool:
        """Whether every machine could be read."""
        return bool(self.machines) and None not in self.machines.values()

    @property
    def stolen(self) -> float:
        """The largest share of CPU time that a hypervisor took on any machine."""
        return max((used.stolen for used in self.uses.values()), default=0.0)


class Window:
    """The resource use of one trial, and of its measured process."""

    def __init__(self, stage: Stage) -> None:
        """Set the start of the trial (time.monotonic)."""
        self._stage = stage
        self.begun = time.monotonic()
        self.lasted_s = 0.0
        self.ran: tuple[float, float] | None = None
        """The start and end of the measured process, in seconds of the trial; None if it has not ended."""
        self.measured_s: float | None = None
        """Its duration by its own clock; None if it has not ended, or its clock stood still."""
        self.series: list[Series] = []
        self.flags: list[Flag] = []
        self.meters_s = 0.0
        """The CPU seconds of all meters while the measured process ran, as a share of their total time."""
        self._meter_samples: list[WindowSample] = []
        groups = {place: group for each in stage.machines.values() for place, group in each.hypervisors.items()}
        self._trial = CounterDelta([
            *(Reader(role, partial(_added_up, stage.sites_of(role))) for role in stage.sites),
            *(Reader(place, group.meters) for place, group in groups.items()),
            *(Reader(name, partial(host.read, file=machine.read)) for name, machine in stage.machines.items()),
        ])  # fmt: skip
        self._guests = CounterDelta([Reader(role, partial(_as_guest, site)) for role, site in stage.sites.items()])
        self._links: Sequence[NetworkLink] = ()
        self._measured = CounterDelta()
        self._series_begun: list[str] = []
        self._series_begun_at = 0.0
        self._measured_at = 0.0

    def begin(self) -> None:
        """Read the counters of the whole trial for the first time. Raises EnvironmentLost."""
        self._trial.begin()
        self._guests.begin()

    def end(self, *, lost: bool) -> None:
        """Read everything for the last time; guests are not read if one was ``lost``."""
        self.end_series()
        self.lasted_s = time.monotonic() - self.begun
        if not lost:
            self._guests.end()
        self._trial.end()

    def begin_series(self) -> None:
        """Start the meters of the hosts; each has read once when this returns. They never fail a trial."""
        self._series_begun_at = time.monotonic()
        sites, hosts = self._stage.sites, self._stage.hosts
        for name, meter in self._stage.meters.items():
            try:
                there = {role: site for role, site in sites.items() if hosts.get(role) == name}
                samplers: Samplers = {role: site.sampler for role, site in there.items() if site.sampler is not None}
                meter.begin({role: site.scope() for role, site in there.items()}, samplers)
            except (MeterFailed, EnvironmentLost, OSError) as failure:
                self._no_readings(name, failure)
            else:
                self._series_begun.append(name)

    def end_series(self) -> None:
        """Let the meters read for the last time, and take their readings. A second call does nothing."""
        names, self._series_begun = self._series_begun, []
        begun_s, lasted_s = self._series_begun_at - self.begun, time.monotonic() - self._series_begun_at
        share = (self.ran[1] - max(begun_s, self.ran[0])) / lasted_s if self.ran else 0.0
        for name in names:
            try:
                readings = self._stage.meters[name].end(self.begun)
            except MeterFailed as failure:
                self._no_readings(name, failure)
                continue
            self.series += readings.series
            if readings.own_cpu_s is not None:
                self._meter_samples.append((host_place(name), "meter_cpu_s", readings.own_cpu_s))
                self.meters_s += share * readings.own_cpu_s

    def _no_readings(self, name: str, failure: Exception) -> None:
        self.flags.append(Flag(FlagCode.NO_READINGS, f"host {name}", text=str(failure)))

    def begin_measured(self, *, served: bool, opens: bool) -> None:
        """Read just before the measured process starts.

        Machines are read if it is ``served``, because its own site shows everything that a program without a server
        uses. A process that ``opens`` sites works outside of the stage's sites.
        """
        stage, machines, self._links = self._stage, self._stage.working, self._stage.links
        readers = [
            *(_link_reader(number, link) for number, link in enumerate(self._links)),
            *(Reader(name, partial(_waits, machine.read)) for name, machine in machines.items()),
        ]
        if not opens:
            sites = [Reader(role, partial(_added_up, stage.sites_of(role))) for role in stage.sites]
            readers = [*sites, *readers]
        if not opens and served and stage.counted and machines.keys() <= stage.idle.keys():
            counters = [Reader(name, partial(counters_of, machine.read)) for name, machine in machines.items()]
            networks = networks_of(stage.sites.values())
            tcp = Reader(TRIAL, partial(tcp_total, networks))
            passed = Reader(TRIAL, partial(network_events, networks))
            readers = [*counters, Reader(TRIAL, lambda: {"tool_cpu_s": time.process_time()}), tcp, *readers, passed]
        if not opens and stage.counted:
            disks = bool(stage.data.written)
            readers += [
                Reader(name, partial(machine_events, each.read, disks=disks)) for name, each in machines.items()
            ]
        self._measured = CounterDelta(readers)
        self._measured.begin()
        self._measured_at = time.monotonic()

    def end_measured(self) -> None:
        """Read just after the measured process has ended, before its output arrives. Raises EnvironmentLost."""
        if (lost := self._measured.end()) is not None:
            raise lost

    def note_measured(self, lasted_s: float) -> None:
        """Note how long the measured process ran, by its own clock."""
        if lasted_s > 0:
            begun_s = self._measured_at - self.begun
            self.measured_s, self.ran = lasted_s, (begun_s, begun_s + lasted_s)

    @property
    def used(self) -> dict[str, dict[str, float]]:
        """The use of each machine, hypervisor and site in the whole trial, by place and name of the counter."""
        guests = self._guests.used
        return {place: {**used, **guests.get(place, {})} for place, used in self._trial.used.items()}

    @property
    def used_by_roles(self) -> dict[str, dict[str, float]]:
        """The use of each role's sites while the measured process ran, without the warm-up and the server's start."""
        used = self._measured.used
        return {role: used[role] for role in self._stage.sites if role in used}

    @property
    def machine_use(self) -> MachineUse | None:
        """The use of whole machines during that time; None if they were not read."""
        before, after = self._measured.before, self._measured.after
        if "tool_cpu_s" not in after.get(TRIAL, {}):
            return None
        trial = self._measured.used[TRIAL]
        machines = {name: use(before[name], after[name]) for name in self._stage.working}
        segments = {name: value for name, value in trial.items() if name.endswith("_segments")}
        return MachineUse(machines, trial["tool_cpu_s"], segments)

    @property
    def events(self) -> Mapping[str, float]:
        """The kernel's event counts during that time (`weighbridge.meters.events`), summed over all machines."""
        used = self._measured.used
        return used.get(TRIAL, {}) | events_of_machines({name: used.get(name, {}) for name in self._stage.working})

    @property
    def waited_s(self) -> float:
        """The longest time on any machine for which programs waited for disks during that time, in seconds."""
        used = self._measured.used
        return max((used.get(name, {}).get("psi_io_s", 0.0) for name in self._stage.working), default=0.0)

    def cables(self, seconds: float) -> list[Flag]:
        """Return each cable's share of its rate while it carried data for ``seconds``, in its busier direction."""
        carried = [self._measured.used.get(_cable(number), {}) for number in range(len(self._links))]
        shares = [
            (link, min(1.0, max(bits.values()) / (link.rate * seconds)))
            for link, bits in zip(self._links, carried, strict=True)
            if bits
        ]
        return [Flag(FlagCode.CABLE, link.where, {"share": share, "rate": link.rate}) for link, share in shares]

    def killed(self) -> bool:
        """Return whether the memory limit of the server's site has caused a kill in this trial so far."""
        before, server = self._trial.before.get("server", {}), self._stage.sites.get("server")
        with suppress(EnvironmentLost):
            return server is not None and server.meters().get("oom_kills", 0.0) > before.get("oom_kills", math.inf)
        return False

    def samples(self) -> Iterator[WindowSample]:
        """Yield every counter's growth as samples (place, name, value), without the time series."""
        for place, used in self.used.items():
            yield from ((place, name, value) for name, value in used.items())
        if (read := self.machine_use) is not None and self.ran is not None:
            for name, each in read.uses.items():
                yield name, "measured_busy_s", each.busy_s
                yield name, "measured_softirq_s", each.softirq_s
                yield name, "measured_context_switches", each.context_switches
                yield name, "idle_cpus", self._stage.idle[name].busy_cpus
            yield TRIAL, "tool_cpu_s", read.tool_s
            if read.segments:
                yield TRIAL, "tcp_segments_sent", read.segments["sent_segments"]
                yield TRIAL, "tcp_segments_retransmitted", read.segments["resent_segments"]
        yield from self._meter_samples


def _added_up(sites: Sequence[Site]) -> dict[str, float]:
    """Return the sum of the counters of a role's sites (`Site.meters`); ``throttled_s`` is their mean."""
    total: Counter[str] = Counter()
    for site in sites:
        total.update(site.meters())
    held_s = {"throttled_s": total["throttled_s"] / len(sites)} if "throttled_s" in total else {}
    return {**total, **held_s}


def _as_guest(site: Site) -> Mapping[str, float]:
    """Return a site's CPU time as its guest's kernel counts it; empty if unreadable. Raises EnvironmentLost."""
    with suppress(OSError):
        return site.guest_meters()
    return {}


def _waits(read: Callable[[str], bytes]) -> dict[str, float]:
    waited_s = host.waited_s("io", file=read)
    return {} if waited_s is None else {"psi_io_s": waited_s}


def _cable(number: int) -> str:
    return f"cable {number}"


def _link_reader(number: int, link: NetworkLink) -> Reader:
    return Reader(_cable(number), lambda: {f"{way}_bits": bits for way, bits in link.carried().items()})
