"""The meters of one trial: begun before its first program, ended after its measured one. They never fail it."""

import time
from collections.abc import Mapping
from dataclasses import dataclass, field

from weighbridge.errors import EnvironmentLost
from weighbridge.meters.machines import Idle, Read
from weighbridge.meters.meter import Meter, MeterFailed
from weighbridge.meters.scopes import host_place
from weighbridge.model.flag import Flag, FlagCode
from weighbridge.model.site import Site
from weighbridge.model.study import Role
from weighbridge.model.trial import Series
from weighbridge.runner.machine_use import MachineUse, networks_of, samples

Sample = tuple[str, str, float]


@dataclass(slots=True)
class Metering:
    """The meters by host, with the sites that are on each. ``since``: when the trial began (time.monotonic)."""

    meters: Mapping[str, Meter]
    sites: Mapping[Role, Site]
    hosts: Mapping[Role, str]
    since: float
    series: list[Series] = field(default_factory=list)
    samples: list[Sample] = field(default_factory=list)
    flags: list[Flag] = field(default_factory=list)
    measured: tuple[float, float] | None = None
    """When the measured process ran, in seconds since the trial began."""
    machines: MachineUse | None = None
    """What whole machines did meanwhile; None where their idle level is not known."""
    own_cpu_s: float = 0.0
    """CPU seconds that all meters took while the measured process ran: that share of what they took in all."""
    _begun: list[str] = field(default_factory=list)
    _begun_at: float = 0.0
    _idle: Mapping[str, Idle] = field(default_factory=dict)

    def begin(self) -> None:
        """Begin to read; each meter has read once when this returns."""
        self._begun_at = time.monotonic()
        for name, meter in self.meters.items():
            try:
                meter.begin({role: site.scope() for role, site in self.sites.items() if self.hosts.get(role) == name})
            except (MeterFailed, EnvironmentLost, OSError) as failure:
                self._failed(name, failure)
            else:
                self._begun.append(name)

    def end(self) -> None:
        """Read for the last time. Ending twice is harmless."""
        begun, self._begun = self._begun, []
        begun_at, lasted_s = self._begun_at - self.since, time.monotonic() - self._begun_at
        share = (self.measured[1] - max(begun_at, self.measured[0])) / lasted_s if self.measured else 0.0
        for name in begun:
            try:
                taken = self.meters[name].end(self.since)
            except MeterFailed as failure:
                self._failed(name, failure)
                continue
            self.series += taken.series
            if taken.own_cpu_s is not None:
                self.samples.append((host_place(name), "meter_cpu_s", taken.own_cpu_s))
                self.own_cpu_s += share * taken.own_cpu_s

    def watch(self, machines: Mapping[str, Read], idle: Mapping[str, Idle]) -> None:
        """Read whole machines' counters, just before the measured process starts."""
        if machines.keys() <= idle.keys():
            self.machines, self._idle = MachineUse(machines, networks_of(self.sites)), idle
            self.machines.begin()

    def watched(self) -> None:
        """Read whole machines' counters again: the measured process has just ended, its output has not come yet."""
        if self.machines is not None:
            self.machines.end()

    def window(self, begun: float, lasted_s: float) -> None:
        """Mark the time in which the measured process ran: from a moment on, and how long."""
        if self.machines is not None:
            self.samples += samples(self.machines, self._idle)
        self.measured = (begun - self.since, begun - self.since + lasted_s)

    def _failed(self, name: str, failure: Exception) -> None:
        self.flags.append(Flag(FlagCode.NO_READINGS, f"host {name}", text=str(failure)))
