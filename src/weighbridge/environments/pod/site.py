"""A pod as a site."""

import contextlib
from collections.abc import Mapping
from pathlib import Path

from weighbridge.errors import EnvironmentLost
from weighbridge.hosts.kubernetes.cluster import RunningPod
from weighbridge.hosts.kubernetes.objects import PodRequest
from weighbridge.launcher.site import LaunchedSite
from weighbridge.linux import counters
from weighbridge.model.site import SiteRequest


class PodSite(LaunchedSite):
    """A running pod. Implements ``Site``. It is stopped by signals, as no control group of it is ours."""

    def __init__(
        self, request: SiteRequest, running: RunningPod, asked: PodRequest, not_honoured: Mapping[str, str]
    ) -> None:
        address = request.host.address if asked.host_network else running.address
        if asked.host_network and not request.apart:
            address = "127.0.0.1"
        super().__init__(request.name, request.host, running.launcher, (address, address))
        self.way_s = running.launcher.way_s()
        self._request, self._running, self._asked, self._not_honoured = request, running, asked, not_honoured

    def _pause(self) -> None:
        self._launcher.pause(stopped=True)

    def _resume(self) -> None:
        with contextlib.suppress(EnvironmentLost):  # at its end: it has gone
            self._launcher.pause(stopped=False)

    def _text(self, *paths: str) -> str:
        """The first of its files that is there; "" where none is."""
        for path in paths:
            with contextlib.suppress(OSError):
                return self.read(str(Path("/sys/fs/cgroup") / path)).decode()
        return ""

    def meters(self) -> Mapping[str, float]:
        """Counters of the container's control group, which the pod sees as the topmost one (version 1 and 2)."""
        unified = bool(self._text("cgroup.controllers"))
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
            cpu = {"throttled_share": 0.0, **cpu}  # without a limit it is not told
        seconds = {"cpu_s": "cpu_share", "throttled_s": "throttled_share"}
        return {name: cpu[key] for name, key in seconds.items() if key in cpu} | {**memory, **events}

    def scope(self) -> Mapping[str, str]:
        """Return none: its host's sampler does not see them."""
        return {}

    def facts(self) -> Mapping[str, str]:
        """The pod, its network, its limits, and what could not be honoured."""
        spec, status = self._running.about.get("spec") or {}, self._running.about.get("status") or {}
        facts = {
            "userland": self._request.userland.digest,
            "user": self._request.userland.process.user("root"),
            "host": self.host.name,
            "node": str(spec.get("nodeName", "")),
            "address": self.address,
            "network": "host" if self._asked.host_network else "pod",
            "quality of service": str(status.get("qosClass", "")),
            "runtime class": self._asked.runtime_class or "the cluster's default",
            "frozen by": "signals",
        }
        refused = {f"not honoured: {limit}": why for limit, why in self._not_honoured.items()}
        return {key: value for key, value in facts.items() if value} | refused
