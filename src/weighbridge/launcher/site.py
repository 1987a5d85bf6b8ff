"""What every kind of site has by its launcher: programs, files, and how it is frozen."""

import contextlib
import functools
from abc import ABC, abstractmethod
from collections.abc import Mapping

from weighbridge.launcher.launch import Launcher
from weighbridge.linux import counters
from weighbridge.linux.cgroup_files import limits_above, limits_in_force, outermost_group, process_limit
from weighbridge.model.facts import CPU_LIMIT, LIMITS_ABOVE, MEMORY_LIMIT, OUTERMOST_GROUP, PROCESSES
from weighbridge.model.host import Group, Host, Link
from weighbridge.model.isolation import Layers
from weighbridge.model.sampling import Sampler


class LaunchedSite(ABC):
    """The part of ``Site`` that is the same everywhere: a kind of site adds what is abstract here.

    ``addresses``: where the other role reaches it, and to which its servers bind.
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
        self.links: tuple[Link, ...] = ()
        self.way_s = 0.0
        self.open_files = launcher.open_files
        self.layers: Layers = host.layers
        """A hypervisor's site adds its own."""
        self.run, self.start, self.read, self.put = launcher.run, launcher.start, launcher.read, launcher.put
        self.listening = launcher.listening
        self._launcher = launcher
        self._frozen = False

    def freeze(self) -> None:
        """Stop every process in the site from running, where there is one beside its launcher."""
        if not self._frozen and not self._launcher.alone():
            self._pause()
            self._frozen = True

    def thaw(self) -> None:
        """Let them run again."""
        if self._frozen:
            self._resume()
            self._frozen = False

    def memory(self) -> Mapping[str, int]:
        """As ``Site.memory``: its host's, by /proc/meminfo (proc(5))."""
        kib = counters.memory_kib(self.host.read("/proc/meminfo").decode())
        names = {"total": "MemTotal", "available": "MemAvailable"}
        return {name: kib[field] << 10 for name, field in names.items() if field in kib}

    def guest_meters(self) -> Mapping[str, float]:
        """As ``Site.guest_meters``: its kernel is its own where its environment added a hypervisor."""
        if self.layers == self.host.layers:
            return {}
        meters = counters.guest_cpu(self.read("/proc/stat").decode(errors="replace"))
        if self.layers[-1].emulated:  # an emulator tells of no steal: the zero says nothing
            meters.pop("guest_steal_s", None)
        return meters

    @abstractmethod
    def _pause(self) -> None:
        """Stop every process, the launcher too."""

    @abstractmethod
    def _resume(self) -> None:
        """Let every process run again."""

    @abstractmethod
    def meters(self) -> Mapping[str, float]:
        """As ``Site.meters``."""

    @abstractmethod
    def scope(self) -> Mapping[str, str]:
        """As ``Site.scope``."""

    @abstractmethod
    def facts(self) -> Mapping[str, str]:
        """As ``Site.facts``."""


def group_facts(host: Host, pid: int) -> dict[str, str]:
    """Facts of the control groups of a site whose first process has this number on its host; none where untold.

    They are how many processes it may have, its limits, what the groups above its own leave it, and with what it
    competes.
    """
    facts, read = {}, functools.cache(host.read)  # each file once: another host is a round trip away
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
    """A site whose processes are in a control group of our own; one without a group cannot be frozen, nor metered."""

    def __init__(
        self, name: str, host: Host, launcher: Launcher, addresses: tuple[str, str], group: Group | None
    ) -> None:
        super().__init__(name, host, launcher, addresses)
        self._group = group

    def freeze(self) -> None:
        """As every site, where it can be."""
        if self._group:
            super().freeze()

    def _pause(self) -> None:
        if self._group:
            self._group.freeze()

    def _resume(self) -> None:
        if self._group:
            self._group.thaw()

    def meters(self) -> Mapping[str, float]:
        """Counters of its control group."""
        return self._group.meters() if self._group else {}

    def scope(self) -> Mapping[str, str]:
        """The files of its control group on the host."""
        return self._group.scope() if self._group else {}
