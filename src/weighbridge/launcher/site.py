"""The parts of a site that its launcher provides, for every kind of site: programs, files, freezing."""

import contextlib
import functools
from abc import ABC, abstractmethod
from collections.abc import Mapping

from weighbridge.launcher.launch import Launcher
from weighbridge.linux import counters
from weighbridge.linux.cgroup_files import limits_above, limits_in_force, outermost_group, process_limit
from weighbridge.model.facts import CPU_LIMIT, LIMITS_ABOVE, MEMORY_LIMIT, OUTERMOST_GROUP, PROCESSES
from weighbridge.model.host import Group, Host, NetworkLink
from weighbridge.model.isolation import Layers
from weighbridge.model.sampling import Sampler
from weighbridge.model.site import SiteEntry


class LaunchedSite(ABC):
    """The common part of ``Site``; each kind of site implements the abstract methods.

    ``addresses`` are the address for the other role, and the address that its servers bind to.
    """

    counted = True
    sampler: Sampler | None = None

    def __init__(self, name: str, host: Host, launcher: Launcher, addresses: tuple[str, str]) -> None:
        self.name = name
        self.title = launcher.name
        self.address, self.listen = addresses
        self.reached: Mapping[int, int] = {}
        self.assigned_ports: Mapping[int, int] = {}
        self.host = host
        self.links: tuple[NetworkLink, ...] = ()
        self.round_trip_s = 0.0
        self.open_files = launcher.open_files
        self.opening_phases: Mapping[str, float] = {}
        self.layers: Layers = host.layers
        """The layers of its host; a hypervisor's site adds its own."""
        self.run, self.start, self.read, self.put = launcher.run, launcher.start, launcher.read, launcher.put
        self.listening = launcher.listening
        self._launcher = launcher
        self._frozen = False

    def entering(self) -> SiteEntry | None:
        """Return None: a kind of site that the host can enter overrides this method."""
        return None

    def freeze(self) -> None:
        """Stop every process in the site, if there is any except its launcher."""
        if not self._frozen and not self._launcher.alone():
            self._pause()
            self._frozen = True

    def thaw(self) -> None:
        """Let the processes run again."""
        if self._frozen:
            self._resume()
            self._frozen = False

    def memory(self) -> Mapping[str, int]:
        """Implement ``Site.memory`` with its host's /proc/meminfo (proc(5))."""
        kib = counters.memory_kib(self.host.read("/proc/meminfo").decode())
        names = {"total": "MemTotal", "available": "MemAvailable"}
        return {name: kib[field] << 10 for name, field in names.items() if field in kib}

    def guest_meters(self) -> Mapping[str, float]:
        """Implement ``Site.guest_meters``: it has its own kernel if its environment added a hypervisor."""
        if self.layers == self.host.layers:
            return {}
        meters = counters.guest_cpu(self.read("/proc/stat").decode(errors="replace"))
        if self.layers[-1].emulated:  # an emulator reports no steal, so its zero means nothing
            meters.pop("guest_steal_s", None)
        return meters

    @abstractmethod
    def _pause(self) -> None:
        """Stop every process, including the launcher."""

    @abstractmethod
    def _resume(self) -> None:
        """Let every process run again."""

    @abstractmethod
    def meters(self) -> Mapping[str, float]:
        """Implement ``Site.meters``."""

    @abstractmethod
    def scope(self) -> Mapping[str, str]:
        """Implement ``Site.scope``."""

    @abstractmethod
    def facts(self) -> Mapping[str, str]:
        """Implement ``Site.facts``."""


def group_facts(host: Host, pid: int) -> dict[str, str]:
    """Return facts of a site's control groups, by its first process's number on the host; without unknown ones.

    They are the limits of processes, CPU time and memory, the limits of the groups above the site's own, and the
    outermost group, with which it competes.
    """
    facts, read = {}, functools.cache(host.read)  # each file only once, because another host is a round trip away
    with contextlib.suppress(OSError):
        limit = process_limit(read, pid)
        facts[PROCESSES] = "no limit" if limit is None else str(limit)
    with contextlib.suppress(OSError):
        facts[OUTERMOST_GROUP] = outermost_group(read, pid)
        cpus, memory = limits_above(read, pid)
        limits = [] if cpus is None else [f"{cpus:g} CPU"]
        limits += [] if memory is None else [f"{memory // 2**20} MiB"]
        facts[LIMITS_ABOVE] = ", ".join(limits) or "no limit"
        in_force = limits_in_force(read, pid)
        facts |= {CPU_LIMIT: in_force.cpu_words, MEMORY_LIMIT: in_force.memory_words}
    return facts


class GroupedSite(LaunchedSite):
    """A site whose processes are in our control group; without a group it cannot be frozen or metered."""

    def __init__(
        self, name: str, host: Host, launcher: Launcher, addresses: tuple[str, str], group: Group | None
    ) -> None:
        super().__init__(name, host, launcher, addresses)
        self._group = group

    def freeze(self) -> None:
        """Stop every process in the site, if it has a group."""
        if self._group:
            super().freeze()

    def _pause(self) -> None:
        if self._group:
            self._group.freeze()

    def _resume(self) -> None:
        if self._group:
            self._group.thaw()

    def meters(self) -> Mapping[str, float]:
        """Return the counters of its control group."""
        return self._group.meters() if self._group else {}

    def scope(self) -> Mapping[str, str]:
        """Return the files of its control group on the host."""
        return self._group.scope() if self._group else {}
