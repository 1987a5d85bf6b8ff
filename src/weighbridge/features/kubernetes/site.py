"""A pod as a site, for environments of pods and for native ones on a node (in a privileged pod)."""

import contextlib
import re
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from weighbridge.errors import EnvironmentLost, Unavailable
from weighbridge.features.kubernetes.cluster import RunningPod
from weighbridge.features.kubernetes.manifest import (
    given_otherwise,
    not_honoured,
    pod_request,
    quota_not_honoured,
    with_storage,
)
from weighbridge.features.kubernetes.objects import LAUNCHER, PodRequest, added_containers, resources_of
from weighbridge.features.kubernetes.pods import Pods
from weighbridge.launcher.site import LaunchedSite
from weighbridge.linux import counters
from weighbridge.linux.cgroup_files import NETWORK, GroupLimits, scope_files
from weighbridge.model.command import Command
from weighbridge.model.facts import ADDED_CONTAINERS, CPU_LIMIT, KERNEL, MEMORY_LIMIT, QUALITY_OF_SERVICE, USERLAND
from weighbridge.model.host import Host
from weighbridge.model.site import DATA, MountRequest, Site, SiteEntry, SiteRequest

_OPEN_S = 30.0

EVERYWHERE = "0.0.0.0"  # noqa: S104 - in a pod
_TOP = "/sys/fs/cgroup"
_EMPTY_GROUPS_FREE = (6, 6)
"""The Linux version since which a group without runnable tasks does not count as throttled."""
_AT_LEAST = (
    "the control group of the whole pod has the same limit but is invisible to the pod, so the real time is this "
    "value or more"
)
_OWN_COUNTS = (
    "its kernel ({kernel}) is not the kernel of its node, and counts neither its own work nor the CPU time that "
    "the node gave it"
)


@dataclass(frozen=True, slots=True)
class ServerRoute:
    """The path of clients to a server. ``address`` "" means its node's.

    ``reached``, ``assigned_ports``: see `weighbridge.model.site.Site`.
    """

    address: str
    facts: Mapping[str, str]
    reached: Mapping[int, int] = field(default_factory=dict)
    assigned_ports: Mapping[int, int] = field(default_factory=dict)


def _kernel_of(place: Site | Host) -> str:
    """Return the release of the kernel that programs see there; "" if unreadable."""
    with contextlib.suppress(OSError):
        return place.read("/proc/sys/kernel/osrelease").decode().strip()
    return ""


def _older(release: str, than: tuple[int, int]) -> bool:
    numbers = re.match(r"(\d+)\.(\d+)", release)
    return numbers is not None and (int(numbers[1]), int(numbers[2])) < than


class PodSite(LaunchedSite):
    """A running pod. Implements ``Site``. It is frozen by signals, because its control group is not ours."""

    def __init__(
        self, request: SiteRequest, running: RunningPod, asked: PodRequest, not_honoured: Mapping[str, str]
    ) -> None:
        address = request.host.address if asked.host_network else running.address
        if asked.host_network and not request.separate_hosts:
            address = "127.0.0.1"
        super().__init__(request.name, request.host, running.launcher, (address, address))
        self.sampler = running.launcher
        self._kernel = _kernel_of(self)
        self._counts_use = not self._kernel or _kernel_of(request.host) in ("", self._kernel)
        running.launcher.reports_use = self._counts_use
        self._top = Path(_TOP)
        self._groups = 2 if self._text("cgroup.controllers") else 1
        if self._groups == 2:
            self._top = self._own_group()
        by_container = counters.cpu_stat(self._text("cpu.stat")).counters.get("throttled_share", 0.0)
        self._held_at_first = (by_container, self._held_back_by_pod() or 0.0)
        self.round_trip_s = running.launcher.round_trip_s()
        self._request, self._running, self._asked, self._not_honoured = request, running, asked, not_honoured
        self._added = added_containers(running.manifest)
        self.own_address = address
        """The pod's own address, whatever leads to it."""
        self.admitted = ""
        """The only site that a NetworkPolicy allows to reach it; "" without one."""
        self._way_facts: Mapping[str, str] = {}

    def reach_by(self, way: ServerRoute) -> None:
        """Let clients reach its server through a Service."""
        self.address, self.listen = way.address or self._request.host.address, EVERYWHERE
        self.reached, self.assigned_ports, self._way_facts = way.reached, way.assigned_ports, way.facts

    def entering(self) -> SiteEntry:
        """Return the words of ``kubectl exec``. In a privileged pod, the launcher starts programs, as natively."""
        return SiteEntry() if self._asked.privileged else SiteEntry(self._running.entry, here=True)

    def open_data(self) -> None:
        """Make the folder of its data writable for all users, since it is root's if kubelet made it.

        Raises Unavailable.
        """
        done = self.run(Command((LAUNCHER, "open", DATA), _OPEN_S))
        if done.returncode != 0:
            raise Unavailable(f"{self.name}: its data cannot be made writable for all users: {done.last_words}")

    def _pause(self) -> None:
        self._launcher.pause(stopped=True)

    def _resume(self) -> None:
        with contextlib.suppress(EnvironmentLost):  # it can be gone at its end
            self._launcher.pause(stopped=False)

    def _text(self, *paths: str) -> str:
        for path in paths:
            with contextlib.suppress(OSError):
                return self.read(str(self._top / path)).decode()
        return ""

    def _own_group(self) -> Path:
        """Return the folder of its group of version 2: the top, unless the pod sees all of the node's groups."""
        with contextlib.suppress(OSError):
            group = next(
                (line[3:] for line in self.read("/proc/self/cgroup").decode().splitlines() if line[:3] == "0::"), ""
            )
            folder = Path(_TOP) / group.strip("/")
            self.read(str(folder / "cgroup.procs"))
            return folder
        return Path(_TOP)

    def _quota(self) -> tuple[str, str] | None:
        """Return the quota of CPU time and its period, in the kernel's words; None if unknown."""
        if self._groups == 2:
            words = self._text("cpu.max").split()
        else:
            words = [self._text(f"cpu/cpu.cfs_{name}_us").strip() for name in ("quota", "period")]
        return (words[0], words[1]) if len(words) == 2 and all(words) else None

    def _limits(self) -> dict[str, str]:
        if (quota := self._quota()) is None or not (self._counts_use and quota[1].isdecimal()):
            return {}
        period_us, limited = int(quota[1]), quota[0].isdecimal()
        memory = self._text("memory.max" if self._groups == 2 else "memory/memory.limit_in_bytes").strip()
        limits = GroupLimits(
            int(quota[0]) / period_us if limited else None,
            period_us / 1e6,
            int(memory) if memory.isdecimal() else None,
        )
        return {CPU_LIMIT: limits.cpu_words, MEMORY_LIMIT: limits.memory_words}

    def _held_back_by_pod(self) -> float | None:
        """Return the seconds that the complete pod's group, with the same quota, was throttled; None if invisible."""
        if self._groups != 2 or self._top == Path(_TOP):
            return None
        return counters.cpu_stat(self._text("../cpu.stat")).counters.get("throttled_share")

    def _held_back(self, by_container: float) -> float:
        """Return the seconds that its limit throttled it, by its container's group and, if visible, the pod's.

        Both run out together. Since Linux 6.6, a group without runnable tasks does not count, so the times add up;
        before, both count the same time ("sched: don't account throttle time for empty groups").
        """
        by_pod = self._held_back_by_pod() or 0.0
        if not _older(self._kernel, _EMPTY_GROUPS_FREE):
            return by_container + by_pod
        first = self._held_at_first  # subtract earlier values, because the pod's group is older
        return max(by_container - first[0], by_pod - first[1])

    def meters(self) -> Mapping[str, float]:
        """Return counters of the container's control group, which most pods see as the topmost one.

        A pod that sees all of its node's groups includes the throttled time of the complete pod. A pod with its own
        kernel has no counters, because its own values do not show the node's CPU time.
        """
        if not self._counts_use:
            return {}
        unified = self._groups == 2
        cpu = counters.cpu_stat(self._text("cpu.stat" if unified else "cpu/cpu.stat")).counters
        if not unified:
            cpu |= counters.cpuacct(self._text("cpuacct/cpuacct.usage")).counters
        memory = counters.memory_now(
            self._text("memory.current" if unified else "memory/memory.usage_in_bytes")
        ).levels
        events = counters.memory_events(
            self._text("memory.events" if unified else "memory/memory.oom_control")
        ).counters
        if unified and "cpu_share" in cpu:
            cpu = {"throttled_share": 0.0, **cpu}  # without a limit it is missing
            cpu["throttled_share"] = self._held_back(cpu["throttled_share"])
        seconds = {"cpu_s": "cpu_share", "throttled_s": "throttled_share"}
        return {name: cpu[key] for name, key in seconds.items() if key in cpu} | {**memory, **events}

    def scope(self) -> Mapping[str, str]:
        """Return the files of the container's control group and its network, as the pod sees them."""
        unified, top = self._groups == 2, self._top
        files = scope_files(self._groups, lambda controller: top if unified else top / controller)
        files = files if self._counts_use else {}
        return {**files, **({} if self._asked.host_network else {NETWORK: "/proc/self/net/dev"})}

    def facts(self) -> Mapping[str, str]:
        """Return the pod, its network, its limits, and limits that could not be applied."""
        spec, status = self._running.manifest.get("spec") or {}, self._running.manifest.get("status") or {}
        requests = resources_of(self._running.manifest).get("requests") or {}
        facts = {
            USERLAND: self._request.userland.digest,
            "user": self._request.userland.process.user(str(self._asked.user or "root")),
            "host": self.host.name,
            "node": str(spec.get("nodeName", "")),
            "address": self.own_address,
            "network": "host" if self._asked.host_network else "pod",
            "pod": "privileged, in the node's own namespaces" if self._asked.privileged else "",
            **self._limits(),
            QUALITY_OF_SERVICE: str(status.get("qosClass", "")),
            "requests": ", ".join(f"{amount} {resource}" for resource, amount in requests.items()),
            "runtime class": self._asked.runtime_class or "the cluster's default",
            KERNEL: self._kernel,
            "network policy": f"allows only {self.admitted}" if self.admitted else "none",
            "frozen by": "signals",
            **self._way_facts,
            "image": self._asked.image if self._asked.pull else "",
            ADDED_CONTAINERS: ", ".join(self._added) or "none",
            "images of added containers": ", ".join(filter(None, self._added.values())),
        }
        refused = {**self._not_honoured, **quota_not_honoured(self._request.limits, self._quota())}
        refused = {f"not honoured: {limit}": reason for limit, reason in refused.items()}
        if not self._counts_use:
            refused["not metered: CPU time, memory and time held back"] = _OWN_COUNTS.format(kernel=self._kernel)
        elif (
            self._request.limits.cpus is not None
            and "not honoured: cpus" not in refused
            and self._held_back_by_pod() is None
        ):
            refused["not metered: time held back by the CPU limit, in full"] = _AT_LEAST
        return {key: value for key, value in facts.items() if value} | refused


@contextmanager
def pod_site(request: SiteRequest, pods: Pods, asked: PodRequest) -> Iterator[PodSite]:
    """Start a pod on the node ``pods`` as a site, with its data. Raises Unavailable."""
    with ExitStack() as stack:
        if request.storage is not None:
            mount = stack.enter_context(request.storage.open(MountRequest(request.run, request.host, request.name)))
            asked = with_storage(asked, mount)
        running = stack.enter_context(pods.open_pod(asked))
        refused = {
            **not_honoured(request.limits, pods.cpu_manager),
            **given_otherwise(request.limits, running.manifest),
        }
        site = PodSite(request, running, asked, refused)
        stack.callback(site.thaw)  # frozen programs cannot receive the order to end
        if asked.data is not None and not asked.user:
            site.open_data()
        yield site


@contextmanager
def native_site(request: SiteRequest) -> Iterator[PodSite]:
    """Start a site in the node's own namespaces: a privileged pod, with the same limits as others. Unavailable."""
    pods: Pods | None = request.host.capabilities.pods
    assert pods is not None
    with pod_site(request, pods, pod_request(request, pods, privileged=True)) as site:
        yield site
