"""A guest as a site: the launcher inside runs its programs, and the hypervisor process counts as its resource use."""

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
    DISK_DRIVER: tuple(f"/sys/class/block/{name}/device/uevent" for name in ("vdb", "sdb", "ubdb")),
}
"""The files in /sys with the drivers; the first disk holds the root."""
_QUEUE = "/sys/class/net/eth0/queues/rx-{}/rps_cpus"
_MOST_QUEUES = 256


class GuestSite(GroupedSite):
    """A running guest. Implements ``Site``. ``notes`` are further facts.

    Its control group contains the complete hypervisor with virtual CPUs and devices. While it is frozen, the guest's
    clock continues, as in a container. ``has_data`` means that it has a disk for data.
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
        """Stop the guest even if no program is left: its kernel would continue, and write to the disk."""
        if self._group and not self._frozen:
            if self._has_data:
                self.run(Command(("sync",), _SYNC_S))
            self._pause()
            self._frozen = True

    def _drivers(self) -> Iterator[tuple[str, str]]:
        for fact, paths in _DEVICES.items():
            for path in paths:
                with suppress(OSError):
                    lines = self.read(path).decode(errors="replace").splitlines()
                    yield from ((fact, line.partition("=")[2]) for line in lines if line.startswith("DRIVER="))

    def _queues(self) -> Iterator[tuple[str, str]]:
        """Yield the number of queues of the interface that the guest's kernel uses, by /sys."""
        count = 0
        with suppress(OSError):
            for number in range(_MOST_QUEUES):
                self.read(_QUEUE.format(number))
                count += 1
        if count:
            yield NETWORK_QUEUES, str(count)

    def facts(self) -> Mapping[str, str]:
        """Return facts about the root filesystem, the hypervisor, its devices, and the guest's own kernel."""
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
