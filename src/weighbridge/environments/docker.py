"""Docker: the userland as an image, in a container with one of Docker's networks."""

import base64
import contextlib
import itertools
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

from weighbridge import cgroups
from weighbridge.engines.docker import Engine, bridge_prefix, engine, engine_errors, readiness
from weighbridge.engines.exec import Exec
from weighbridge.errors import EnvironmentLost, Unavailable
from weighbridge.model.command import Command, Completed, Running, Transport
from weighbridge.model.plugin import Environment, Readiness
from weighbridge.model.site import SITE_ENV, Site, SiteRequest
from weighbridge.model.study import Options
from weighbridge.process import RUN_VARIABLE


class DockerOptions(Options):
    """Which network, and how a client reaches the server.

    ``bridge`` is a bridge network made for the run. ``publish`` has clients use a published port instead of the
    container's own address. It is published on the bridge's own address (``gateway``: the path of netfilter's
    address translation, which clients on other machines take too) or on ``loopback`` (through docker-proxy).
    """

    network: Literal["none", "host", "bridge"] = "bridge"
    publish: bool = False
    publish_on: Literal["gateway", "loopback"] = "gateway"


class DockerSite:
    """A running container. Implements ``Site``."""

    def __init__(
        self, request: SiteRequest, made: Engine, container: Any, addresses: tuple[str, str], *, proxied: bool
    ) -> None:
        self.name = request.name
        self.address, self.listen = addresses
        self._proxied = proxied
        self._host = request.host
        self._engine = made
        self._container = container
        self._env = {**SITE_ENV, RUN_VARIABLE: request.run.id}
        self._pid = int(container.attrs["State"]["Pid"])
        self._userland = request.userland

    def run(self, command: Command) -> Completed:
        """Run to the end; killed at its deadline."""
        process = self.start(command)
        return process.stop(timed_out=not process.wait(command.deadline_s))

    def start(self, command: Command) -> Running:
        """Start and return at once."""
        return Exec(self._engine.client, self._container.id, command, self._env)

    def put(self, path: str, data: bytes) -> None:
        """Write a file below /tmp or /run of the site."""
        done = self.run(Command(("sh", "-c", 'base64 -d > "$1"', "put", path), stdin=base64.b64encode(data)))
        if done.returncode != 0:
            raise EnvironmentLost(f"{self.name}: cannot write {path}: {done.last_words}")

    def listening(self, ports: tuple[tuple[Transport, int], ...]) -> bool:
        """True when every port has a listener in the container's network namespace."""
        return self._host.listening(ports, self._pid)

    def freeze(self) -> None:
        """Pause the container."""
        with engine_errors(f"{self.name}: pause"):
            self._engine.client.api.pause(self._container.id)

    def thaw(self) -> None:
        """Unpause it."""
        with engine_errors(f"{self.name}: unpause"):
            self._engine.client.api.unpause(self._container.id)

    def meters(self) -> Mapping[str, float]:
        """Counters of the container's control group, read from the kernel, not through the engine."""
        groups = {}
        with contextlib.suppress(OSError):
            for line in Path(f"/proc/{self._pid}/cgroup").read_text().splitlines():
                _, names, path = line.split(":", 2)
                groups.update(dict.fromkeys(names.split(","), path))
        version = cgroups.version()
        base = cgroups.bases()

        def folder(controller: str) -> Path:
            name = "" if version == 2 else controller
            if name not in groups:  # its first process has ended: the container was killed
                return Path("/nonexistent")
            return base[name] / groups[name].lstrip("/")

        return cgroups.read_meters(version, folder)

    def facts(self) -> Mapping[str, str]:
        """The engine, the network and the userland."""
        with engine_errors(f"{self.name}: inspect"):
            info = self._engine.client.info()
        warnings = {f"not honoured: {w}": w for w in self._container.attrs.get("Warnings") or ()}
        if self._proxied:
            what = "limits of docker-proxy"
            warnings[f"not honoured: {what}"] = f"{what}: it carries this environment's traffic outside of all limits"
        return {
            "userland": self._userland.digest,
            "user": "root",
            "docker": self._engine.version + (" (private)" if self._engine.private else ""),
            "storage driver": info.get("Driver", "?"),
            "cgroup driver": info.get("CgroupDriver", "?"),
            "runtime": info.get("DefaultRuntime", "?"),
            "address": self.address,
            **warnings,
        }


class Docker(Environment):
    """Containers of the Docker engine that answers, or of a private one."""

    kind = "docker"
    summary = "a Docker container with network none, host or bridge (direct or by a published port)"
    options = DockerOptions

    def problems(self, options: Any, *, network: bool) -> list[str]:
        """Publishing without a bridge, and a network workload without a network."""
        found = []
        if options.publish and options.network != "bridge":
            found.append(f"'publish' needs network: bridge, not {options.network}")
        if options.network == "none" and network:
            found.append("network: none cannot carry a workload that needs a network")
        return found

    def readiness(self) -> Readiness:
        """Whether an engine answers or a private one can be started."""
        return readiness()

    @contextmanager
    def open(self, options: Any, request: SiteRequest) -> Iterator[Site]:
        """A container that sleeps until processes are started in it."""
        made: Engine = request.run.share("docker", lambda: engine(request.run))
        with contextlib.ExitStack() as stack:
            with engine_errors(f"opening {request.name}"):
                network = _network(stack, made, request) if options.network == "bridge" else None
                container = _container(stack, made, options, request, network)
                _must_be_here(container)
                addresses = _addresses(container, options, network)
            proxied = options.publish and options.publish_on == "loopback"
            yield DockerSite(request, made, container, addresses, proxied=proxied)


_numbers = itertools.count()


def _network(stack: contextlib.ExitStack, made: Engine, request: SiteRequest) -> Any:
    network = made.client.networks.create(
        f"weighbridge-{request.run.id}-{request.name}",
        driver="bridge",
        labels=made.labels,
        options={"com.docker.network.bridge.name": f"{bridge_prefix(request.run.id)}{next(_numbers) % 1000}"},
    )
    stack.callback(_quietly, network.remove)
    network.reload()
    return network


def _gateway(network: Any) -> str:
    return str(network.attrs["IPAM"]["Config"][0]["Gateway"])


def _container(
    stack: contextlib.ExitStack, made: Engine, options: DockerOptions, request: SiteRequest, network: Any
) -> Any:
    limits = request.limits
    ports = {}
    if options.publish:
        on = _gateway(network) if options.publish_on == "gateway" else "127.0.0.1"
        ports = {f"{port}/{transport}": (on, port) for transport, port in request.ports}
    container = made.client.containers.create(
        made.image(request.userland),
        ["sleep", "infinity"],
        name=f"weighbridge-{request.run.id}-{request.name}",
        hostname=request.name[:63],
        init=True,
        labels=made.labels,
        network=network.name if network is not None else options.network,
        ports=ports,
        read_only=True,
        tmpfs={"/tmp": "mode=1777,exec", "/run": "mode=1777,exec"},  # noqa: S108 - folders of the container
        cgroup_parent=made.cgroup_parent,
        cpu_quota=limits.cpu_quota_us,
        cpu_period=limits.cpu_period_us if limits.cpus is not None else None,
        mem_limit=limits.memory,
        memswap_limit=-1 if limits.memory is not None else None,  # as in a control group: swap is not limited
        cpuset_cpus=limits.cpuset,
        environment={**SITE_ENV, RUN_VARIABLE: request.run.id},
    )
    stack.callback(_quietly, container.remove, force=True, v=True)
    container.start()
    container.reload()
    return container


def _must_be_here(container: Any) -> None:
    """Listeners, counters and signals go by /proc: with an engine elsewhere they would be those of strangers."""
    for _ in range(200):
        with contextlib.suppress(OSError):
            if b"sleep\0infinity" in Path(f"/proc/{container.attrs['State']['Pid']}/cmdline").read_bytes():
                return
        time.sleep(0.005)  # it may be about to become what it was told to run
    raise Unavailable("the Docker engine that answers is on another machine: name one of this machine in DOCKER_HOST")


def _addresses(container: Any, options: DockerOptions, network: Any) -> tuple[str, str]:
    """Where clients connect, and where servers bind."""
    if network is None:
        return "127.0.0.1", "127.0.0.1"
    own = str(container.attrs["NetworkSettings"]["Networks"][network.name]["IPAddress"])
    if not options.publish:
        return own, own
    return (_gateway(network) if options.publish_on == "gateway" else "127.0.0.1"), "0.0.0.0"  # noqa: S104


def _quietly(action: Any, **arguments: Any) -> None:
    with contextlib.suppress(Exception):  # the engine may be gone; what is left is swept at the end of the run
        action(**arguments)


PLUGIN = Docker()
