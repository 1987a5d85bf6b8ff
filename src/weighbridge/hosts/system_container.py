"""The common part of system containers' environments: options, networks, containers with our first process."""

import itertools
import re
from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field

from weighbridge.engines.network_problems import NO_NETWORK, attach_problems
from weighbridge.errors import Unavailable
from weighbridge.hosts.bridge import Bridge, bridge_for
from weighbridge.hosts.first_process import first_process
from weighbridge.launcher import build
from weighbridge.launcher.launch import Launcher
from weighbridge.launcher.site import GroupedSite
from weighbridge.linux.cgroup_files import network_of, version
from weighbridge.linux.links import must
from weighbridge.linux.network import in_network_of
from weighbridge.linux.process import environment_of, output
from weighbridge.model.command import Command, HostProcess
from weighbridge.model.environment import Environment, EnvironmentOptions, Needs
from weighbridge.model.facts import USERLAND
from weighbridge.model.host import Group, Host
from weighbridge.model.plugin import Readiness
from weighbridge.model.site import MountRequest, Site, SiteRequest

LAUNCHER = "/run/weighbridge-launcher"
"""The path of the launcher in a container."""
END_S = 5.0
_TOGETHER_S = 0.5
_numbers = itertools.count()


class SystemContainerOptions(EnvironmentOptions):
    """``bridge`` joins it by a veth pair to a bridge made for the run, on which the host has an address.

    With ``attach: interface``, the host's interface is a port of that bridge, and one subnet spans all hosts.
    """

    network: Annotated[
        Literal["none", "host", "bridge"], Field(description="bridge: a veth pair to a bridge created for the run")
    ] = "bridge"
    attach: Annotated[Literal["interface"] | None, Field(description="Add the host's interface to the bridge")] = None


@dataclass(frozen=True, slots=True)
class Container:
    """A container to start: its ``name`` (of letters, digits and dashes) and its folders on its host.

    ``root`` is read-only; ``data`` is mounted at /srv, "" for nothing.
    """

    request: SiteRequest
    name: str
    hostname: str
    launcher: str
    root: str
    data: str
    own_network: bool


@dataclass(frozen=True, slots=True)
class StartedContainer:
    """A running container: its launcher, its control group, and its refused limits with the reasons."""

    launcher: Launcher
    group: Group
    refused: Mapping[str, str]


class SystemContainer(Environment):
    """A kind of system container, with the method that starts one."""

    options = SystemContainerOptions
    mounts = frozenset({"folder"})
    storage = "directory"
    version: ClassVar[tuple[str, ...]]
    """The command that prints the version of its program in the first line."""

    @abstractmethod
    def started(self, container: Container, stack: ExitStack) -> StartedContainer:
        """Start a container, with the launcher as its first process; ``stack`` ends it. Raises Unavailable."""

    def check(self, options: Any, needs: Needs) -> list[str]:
        return list(_problems(options, needs))

    def ready(self, options: Any | None = None, needs: Needs | None = None) -> Readiness:
        """Return whether this user is root and control groups are mounted."""
        if output(("unshare", "--net", "--mount", "--pid", "--fork", "true")) is None:
            return Readiness(False, "only root can create system containers", "run as root")
        if not version():
            return Readiness(False, "no control groups are mounted at /sys/fs/cgroup", "mount them there")
        return Readiness(True)

    @contextmanager
    def open(self, options: Any, request: SiteRequest) -> Iterator[Site]:
        """Yield a container with its own control group, joined to its network once it runs."""
        if options.attach:
            request = replace(request, host=request.host.dedicated_host("ports"))
        host = request.host
        if not host.root:
            raise Unavailable("only root can create system containers: run as root")
        with ExitStack() as stack:
            container = _container(stack, options, request)
            bridge = bridge_for(request, attached=bool(options.attach)) if options.network == "bridge" else None
            started = self.started(container, stack)
            pid = first_process(host, started.group, request.title)
            address = _address(stack, bridge, container, pid)

            def in_force() -> dict[str, str]:
                return {"network": options.network, self.kind: self._version(host)}

            site = SystemContainerSite(container, started, pid, address, in_force)
            try:
                yield site
            finally:  # a frozen launcher cannot receive the order to end
                site.thaw()

    def _version(self, host: Host) -> str:
        return next(iter(host.run(Command(self.version, 20)).text.splitlines()), "unknown")


class SystemContainerSite(GroupedSite):
    """A running container. Implements ``Site``; ``pid`` is its first process, in the host's numbers.

    ``in_force`` returns further facts only on request, so that opening does not include their time.
    """

    def __init__(
        self,
        container: Container,
        started: StartedContainer,
        pid: int,
        address: str,
        in_force: Callable[[], Mapping[str, str]],
    ) -> None:
        request = container.request
        super().__init__(request.name, request.host, started.launcher, (address, address), started.group)
        self.pid = pid
        self._container, self._started, self._in_force = container, started, in_force

    def scope(self) -> Mapping[str, str]:
        return {**super().scope(), **(network_of(self.pid) if self._container.own_network else {})}

    def facts(self) -> Mapping[str, str]:
        """Return the root filesystem, the network, and the limits that could not be applied."""
        facts = {
            USERLAND: self._container.request.userland.digest,
            "user": self._container.request.userland.process.user("root"),
            "host": self.host.name,
            "address": self.address,
        }
        refused = {f"not honoured: {limit}": reason for limit, reason in self._started.refused.items()}
        return {**facts, **self._in_force(), **refused}


def joined(stack: ExitStack, container: Container, argv: tuple[str, ...]) -> Launcher:
    """Start the program that brings a container up, and return the launcher in it; ``stack`` ends both, in order."""
    request = container.request
    process, stream = request.host.talk(Command(argv))

    def end() -> None:
        process.wait(END_S)  # it cleans up after the container
        process.stop()

    stack.callback(end)
    reason = _why(request.host, process)
    return stack.enter_context(Launcher(stream, request.title, reason, environment_of(request.run.id)))


def remove(groups: list[Group]) -> None:
    """Kill the processes in control groups, and remove the groups."""
    for group in groups:
        group.kill()
        group.remove()


def _why(host: Host, process: HostProcess) -> Callable[[], str]:
    def why() -> str:
        process.wait(_TOGETHER_S)
        host.run(Command(("true",), 10))  # if the complete host is gone, report that
        stderr = process.stop().stderr.decode(errors="replace").strip()
        return stderr.splitlines()[0] if stderr else "the container was killed"  # the rest does not help

    return why


def _container(stack: ExitStack, options: SystemContainerOptions, request: SiteRequest) -> Container:
    host, run = request.host, request.run
    data = ""
    if request.storage is not None:
        mount_request = MountRequest(run, host, request.name)
        data = stack.enter_context(request.storage.open(mount_request)).source
    return Container(
        request,
        f"wb-{run.id[-6:]}-{next(_numbers)}",
        re.sub(r"[^A-Za-z0-9]+", "-", request.name)[:63].strip("-") or "site",
        host.program(build.ensure(run.cache, run.say)),
        str(host.userland(request.userland)),
        data,
        own_network=options.network != "host",
    )


def _address(stack: ExitStack, bridge: Bridge | None, container: Container, pid: int) -> str:
    """Return the address for the other role, after the container is joined to its network."""
    host = container.request.host
    if not container.own_network:
        return host.address if container.request.separate_hosts else "127.0.0.1"
    must(host, *in_network_of(pid), "ip", "link", "set", "lo", "up")
    if bridge is None:
        return "127.0.0.1"
    address = stack.enter_context(bridge.joined(pid))
    if (disposable := host.capabilities.disposable) is not None:
        disposable.keep_offloads(pid)
    return address


def _problems(options: SystemContainerOptions, needs: Needs) -> Iterator[str]:
    yield from attach_problems(options, needs)
    if not needs.network:
        return
    if options.network == "none":
        yield NO_NETWORK
    if needs.separate_hosts and options.network == "bridge" and not options.attach:
        yield "its bridge cannot be reached from another host: add attach: interface, or put both roles on one host"
