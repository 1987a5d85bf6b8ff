"""A guest as a site: its programs are behind the launcher inside, its use is that of the whole hypervisor process."""

from collections.abc import Iterator, Mapping
from contextlib import suppress

from weighbridge.launcher.launch import Launcher
from weighbridge.launcher.site import GroupedSite
from weighbridge.model.command import Command
from weighbridge.model.facts import DISK_DRIVER, NETWORK_DRIVER, NETWORK_QUEUES, USERLAND
from weighbridge.model.host import Group
from weighbridge.model.isolation import Layer
from weighbridge.model.site import SiteRequest

_SYNC_S = 120.0
_DEVICES: Mapping[str, tuple[str, ...]] = {
    NETWORK_DRIVER: ("/sys/class/net/eth0/device/uevent",),
    DISK_DRIVER: ("/sys/class/block/vdb/device/uevent", "/sys/class/block/sdb/device/uevent"),
}
"""Where the kernel says it. The first disk holds the root."""
_QUEUE = "/sys/class/net/eth0/queues/rx-{}/rps_cpus"
_MOST_QUEUES = 256


class GuestSite(GroupedSite):
    """A running guest. Implements ``Site``. ``notes`` are further facts.

    Its control group has the whole hypervisor: virtual CPUs, devices and all. While it is frozen the guest's clock
    goes on, as does that of a container. ``has_data``: a disk that is written to.
    """

    def __init__(
        self,
        request: SiteRequest,
        launcher: Launcher,
        group: Group | None,
        addresses: tuple[str, str],
        layer: Layer,
        notes: Mapping[str, str],
        *,
        has_data: bool = False,
    ) -> None:
        super().__init__(request.name, request.host, launcher, addresses, group)
        self.layers = (*request.host.layers, layer)
        self._notes = notes
        self._has_data = has_data
        self._userland = request.userland

    def freeze(self) -> None:
        """Stop the guest even where no program is left: its kernel would go on, and write to the disk."""
        if self._group and not self._frozen:
            if self._has_data:
                self.run(Command(("sync",), _SYNC_S))
            self._pause()
            self._frozen = True

    def _drivers(self) -> Iterator[tuple[str, str]]:
        """Which drivers the guest's kernel has for its interface and the disk of its data, by /sys."""
        for fact, paths in _DEVICES.items():
            for path in paths:
                with suppress(OSError):
                    lines = self.read(path).decode(errors="replace").splitlines()
                    yield from ((fact, line.partition("=")[2]) for line in lines if line.startswith("DRIVER="))

    def _queues(self) -> Iterator[tuple[str, str]]:
        """How many queues the guest's kernel uses of its interface, by /sys."""
        count = 0
        with suppress(OSError):
            for number in range(_MOST_QUEUES):
                self.read(_QUEUE.format(number))
                count += 1
        if count:
            yield NETWORK_QUEUES, str(count)

    def facts(self) -> Mapping[str, str]:
        """The userland, the hypervisor, its devices, and the guest's own kernel."""
        kernel = self.read("/proc/version").decode(errors="replace").strip()
        clock = self.read("/sys/devices/system/clocksource/clocksource0/current_clocksource").decode().strip()
        return {
            USERLAND: self._userland.digest,
            "user": self._userland.process.user("root"),
            "host": self.host.name,
            "address": self.address,
            "guest kernel": kernel,
            "guest clock": clock,
            **dict(self._drivers()),
            **dict(self._queues()),
            **self._notes,
        }
