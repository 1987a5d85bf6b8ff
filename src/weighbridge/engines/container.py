"""A container as a site."""

from collections.abc import Mapping
from typing import Any

from weighbridge.engines.client import engine_errors
from weighbridge.engines.docker import Engine
from weighbridge.launcher.launch import Launcher
from weighbridge.launcher.site import LaunchedSite
from weighbridge.linux.cgroup_files import NETWORK
from weighbridge.model.site import SiteRequest


class DockerSite(LaunchedSite):
    """A running container. Implements ``Site``; ``notes`` are further facts."""

    def __init__(
        self,
        request: SiteRequest,
        made: Engine,
        container: Any,
        addresses: tuple[str, str],
        notes: Mapping[str, str],
        launcher: Launcher,
    ) -> None:
        super().__init__(request.name, made.host, launcher, addresses)
        self._notes = notes
        self._engine = made
        self._container = container
        self.pid = int(container.attrs["State"]["Pid"])
        self._userland = request.userland

    def _pause(self) -> None:
        with engine_errors(f"{self.name}: pause"):
            self._engine.client.api.pause(self._container.id)

    def _resume(self) -> None:
        with engine_errors(f"{self.name}: unpause"):
            self._engine.client.api.unpause(self._container.id)

    def meters(self) -> Mapping[str, float]:
        """Counters of the container's control group, read from the kernel, not through the engine."""
        return self.host.meters_of(self.pid)

    def scope(self) -> Mapping[str, str]:
        """The files of its control group, and of its network where that is not the host's."""
        shared = self._container.attrs["HostConfig"]["NetworkMode"] == "host"
        return {what: path for what, path in self.host.scope_of(self.pid).items() if not (shared and what == NETWORK)}

    def facts(self) -> Mapping[str, str]:
        """The engine, the network and the userland."""
        with engine_errors(f"{self.name}: inspect"):
            info = self._engine.client.info()
        warnings = {f"not honoured: {w}": w for w in self._container.attrs.get("Warnings") or ()}
        return {
            "userland": self._userland.digest,
            "user": "root",
            "docker": self._engine.version + (" (private)" if self._engine.private else ""),
            "storage driver": info.get("Driver", "?"),
            "cgroup driver": info.get("CgroupDriver", "?"),
            "runtime": info.get("DefaultRuntime", "?"),
            "host": self.host.name,
            "address": self.address,
            **warnings,
            **self._notes,
        }
