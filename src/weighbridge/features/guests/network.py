"""The connection of a guest's network interface to its host: a tap on a bridge, or QEMU's own network stack."""

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import dataclass
from typing import ClassVar

from weighbridge.errors import EnvironmentLost, Unavailable
from weighbridge.hosts.bridge import bridge_for
from weighbridge.linux.links import NO_OFFLOADS, must
from weighbridge.model.command import Command, HostProcess, PublishedPort
from weighbridge.model.host import Host
from weighbridge.model.site import SiteRequest

_MADE_S, _LOOK_S, _TOGETHER_S = 30.0, 0.02, 0.2


@dataclass(frozen=True, slots=True)
class Tap:
    """An interface of the host that the hypervisor makes and removes; it is a port of ``bridge``.

    ``guest_address`` and the host's address ``gateway`` are on the bridge; ``mtu`` is in bytes.
    """

    name: str
    bridge: str
    guest_address: str
    gateway: str
    mtu: int
    offloads: bool = True
    """Whether it passes packets larger than its cable's."""
    made_first: bool = False
    """Whether it is up before the hypervisor starts: after a refused frame, user-mode Linux sends nothing more."""
    mask: ClassVar[str] = "255.255.255.0"

    @property
    def hardware(self) -> str:
        """Return the hardware address of the guest's interface, which is unique in the run."""
        return "52:54:" + ":".join(f"{int(part):02x}" for part in self.guest_address.split("."))

    def facts(self) -> Mapping[str, str]:
        """Return no facts: the bridge has no external connection."""
        return {}

    def netdev(self) -> str:
        """Return the value of ``-netdev``."""
        return f"tap,id=net,ifname={self.name},script=no,downscript=no"

    def must_be_free(self, host: Host) -> None:
        """Raise Unavailable if the host already has a link of this name, because QEMU would use it."""
        if _exists(host, self.name):
            raise Unavailable(
                f"host {host.name} has a network link {self.name} that this run did not create. Remove it with: ip "
                f"link delete {self.name}"
            )

    @contextmanager
    def made(self, host: Host) -> Iterator[None]:
        """Create the tap as a port of the bridge if it is ``made_first``, and remove it in the end. Unavailable."""
        if not self.made_first:
            yield
            return
        must(host, "ip", "tuntap", "add", "dev", self.name, "mode", "tap")
        try:
            for words in self._settings():
                must(host, *words)
            yield
        finally:
            with suppress(EnvironmentLost, Unavailable):
                must(host, "ip", "link", "delete", self.name)

    def _settings(self) -> Iterator[tuple[str, ...]]:
        for words in (("master", self.bridge), ("mtu", str(self.mtu)), ("up",)):
            yield ("ip", "link", "set", self.name, *words)
        if not self.offloads:
            yield ("ethtool", "-K", self.name, *NO_OFFLOADS)

    def join(self, host: Host, hypervisor: HostProcess, why: Callable[[], str]) -> None:
        """Make the tap a port of the bridge once QEMU has made it. Raises Unavailable with ``why`` if it does not."""
        if self.made_first:
            return
        deadline = time.monotonic() + _MADE_S
        while not _exists(host, self.name):
            if hypervisor.poll() is not None or time.monotonic() > deadline:
                raise Unavailable(f"host {host.name}: {why()}")
            time.sleep(_LOOK_S)
        for words in self._settings():
            completed = host.run(Command(words, 30))
            if completed.returncode != 0:
                ended = hypervisor.wait(_TOGETHER_S)
                raise Unavailable(f"host {host.name}: {why() if ended else completed.last_words}")


@dataclass(frozen=True, slots=True)
class UserNetwork:
    """QEMU's own network stack: ``ports`` of ``address`` on the host lead to the guest."""

    address: str
    ports: tuple[PublishedPort, ...] = ()
    guest_address: ClassVar[str] = "10.0.2.15"
    gateway: ClassVar[str] = "10.0.2.2"
    mask: ClassVar[str] = "255.255.255.0"
    mtu: ClassVar[int] = 1500
    offloads: ClassVar[bool] = True
    hardware: ClassVar[str] = "52:54:00:00:02:0f"

    @property
    def closed(self) -> bool:
        """Return whether the guest has no outgoing connections; they must be allowed for answers from UDP ports."""
        # libslirp 4.7 exempts only answers over TCP from restrict
        return all(port.transport == "tcp" for port in self.ports)

    def facts(self) -> Mapping[str, str]:
        """Return which networks the guest can reach."""
        return {"way out": "none" if self.closed else "to the host and beyond it, because UDP is forwarded"}

    def netdev(self) -> str:
        """Return the value of ``-netdev``."""
        forwards = (
            f"hostfwd={port.transport}:{self.address}:{port.reached}-{self.guest_address}:{port.listens}"
            for port in self.ports
        )
        return ",".join(("user", "id=net", f"restrict={'on' if self.closed else 'off'}", *forwards))

    def must_be_free(self, host: Host) -> None:
        """Do nothing: QEMU reports a port in use."""

    def made(self, host: Host) -> AbstractContextManager[None]:
        """Make nothing: the network is a part of QEMU."""
        return nullcontext()

    def join(self, host: Host, hypervisor: HostProcess, why: Callable[[], str]) -> None:
        """Do nothing: the network is a part of QEMU."""


Network = Tap | UserNetwork


def tap_of(request: SiteRequest, *, attached: bool, made_first: bool = False) -> Tap:
    """Return a tap on the bridge of a site, which has the host's interface as a port if it is ``attached``."""
    bridge = bridge_for(request, attached=attached)
    disposable = request.host.capabilities.disposable
    offloads = disposable is None or not attached or disposable.offloads
    port, address = bridge.next_port(), bridge.next_address()
    return Tap(port, bridge.name, address, bridge.gateway, bridge.mtu, offloads, made_first)


def _exists(host: Host, link: str) -> bool:
    try:
        host.read(f"/sys/class/net/{link}/ifindex")
    except OSError:
        return False
    return True
