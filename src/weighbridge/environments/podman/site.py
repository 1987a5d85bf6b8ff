"""A Podman container as a site, and how pasta is connected to one where podman cannot do so."""

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from weighbridge.engines import runtimes
from weighbridge.engines.podman import Podman
from weighbridge.errors import Unavailable
from weighbridge.launcher.launch import Launcher
from weighbridge.launcher.site import GroupedSite, group_facts
from weighbridge.linux import counters
from weighbridge.linux.cgroup_files import NETWORK, network_of, processes_of
from weighbridge.model.facts import IN_NAMESPACE
from weighbridge.model.host import Group
from weighbridge.model.site import SiteEntry, SiteRequest

_CONNECTED_S = 10.0
_WITH_LOOPBACK = 2


class PodmanSite(GroupedSite):
    """A running container. Implements ``Site``; ``notes`` are further facts, ``pid`` is the host's number of it."""

    def __init__(
        self,
        request: SiteRequest,
        podman: Podman,
        launcher: Launcher,
        addresses: tuple[str, str],
        pid: int,
        group: Group | None,
        own_network: bool,
        container: str,
    ) -> None:
        super().__init__(request.name, podman.host, launcher, addresses, group)
        self._container = container
        self.notes: dict[str, str] = {}
        self.pid = pid
        self._podman = podman
        self._own_network = own_network
        self._userland = request.userland

    def entering(self) -> SiteEntry:
        """Return ``podman exec``, with everything that starts podman for the run."""
        return SiteEntry(self._podman.argv("exec", self._container))

    def meters(self) -> Mapping[str, float]:
        """Return the counters of the container's own control group, or nothing if it has none."""
        return self.host.meters_of(self.pid) if self._group else {}

    def scope(self) -> Mapping[str, str]:
        """Return the files of its control group (or of its processes, if it has none) and of its network."""
        used = self.host.scope_of(self.pid) if self._group else processes_of(self.pid) | network_of(self.pid)
        return {what: path for what, path in used.items() if self._own_network or what != NETWORK}

    def _runs_as(self) -> str:
        if self._userland.of_this_machine:
            return IN_NAMESPACE
        return "root of a user namespace" if self._podman.rootless else "root"

    def facts(self) -> Mapping[str, str]:
        """Podman, its runtime, the network and the userland."""
        podman = self._podman
        return {
            "userland": self._userland.digest,
            "user": self._userland.process.user(self._runs_as()),
            "podman": f"{podman.version} ({'rootless' if podman.rootless else 'rootful'})",
            "storage driver": podman.storage_driver,
            "runtime": podman.runtime,
            "transport": "podman start --attach keeps running outside the container's limits (8 to 9 MiB of "
            "memory_per_site "
            "in the density workload)",
            "host": self.host.name,
            **group_facts(self.host, self.pid),
            "address": self.address,
            **self.notes,
        }


def runtime_facts(podman: Podman, wanted: str, state: Mapping[str, Any]) -> dict[str, str]:
    """Return the facts of the runtime that made the first container with this option, by its ``inspect``.

    Raises Unavailable if it is another runtime than the study's.
    """

    def read_back() -> dict[str, str]:
        supervisor = runtimes.supervisor_of(podman.host.read, int(state["State"]["Pid"]))
        reported = str(state.get("OCIRuntime") or "")
        if wanted == runtimes.DEFAULT:
            return runtimes.facts_of(reported, supervisor)
        path = podman.runtime if runtimes.is_path(podman.runtime) else ""
        version = runtimes.version_here(supervisor.runtime or path) if podman.host.this_machine else runtimes.UNKNOWN
        entry = runtimes.RegisteredRuntime(Path(wanted).name, path)
        return runtimes.verified_facts(runtimes.ChosenRuntime(wanted, entry, version), reported, supervisor)

    return podman.runtime_facts.get(wanted, read_back)


@contextmanager
def connected_by_pasta(podman: Podman, pid: int, forwarded: Mapping[str, list[str]]) -> Iterator[None]:
    """Connect a container that has no network by pasta, with the options that podman gives it from 4.4 on.

    ``forwarded``: by transport what is forwarded to the container ("127.0.0.1/5201"). Raises Unavailable.
    """
    words = [
        "pasta",
        "--config-net",
        "--foreground",
        "--quiet",
        "--no-map-gw",
        "--tcp-ns",
        "none",
        "--udp-ns",
        "none",
    ]
    for transport, ports in forwarded.items():
        for port in ports or ["none"]:
            words += [f"--{transport}-ports", port]
    pasta = podman.start_beside(*words, str(pid))
    try:
        deadline = time.monotonic() + _CONNECTED_S
        while len(counters.interfaces(podman.host.read(f"/proc/{pid}/net/dev").decode())) < _WITH_LOOPBACK:
            if pasta.wait(0.02) or time.monotonic() > deadline:
                raise Unavailable(f"pasta did not connect the container: {pasta.stop().last_words}")
        yield
    finally:
        pasta.stop()
