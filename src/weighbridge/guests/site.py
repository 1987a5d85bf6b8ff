"""A guest as a site: its programs are behind the launcher inside, its use is that of the whole hypervisor process."""

from collections.abc import Mapping

from weighbridge.launcher.launch import Launcher
from weighbridge.launcher.site import GroupedSite
from weighbridge.model.command import Command
from weighbridge.model.host import Group
from weighbridge.model.isolation import Layer
from weighbridge.model.site import SiteRequest

_SYNC_S = 120.0


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

    def facts(self) -> Mapping[str, str]:
        """The userland, the hypervisor, its devices, and the guest's own kernel."""
        kernel = self.read("/proc/version").decode(errors="replace").strip()
        clock = self.read("/sys/devices/system/clocksource/clocksource0/current_clocksource").decode().strip()
        return {
            "userland": self._userland.digest,
            "user": self._userland.process.user("root"),
            "host": self.host.name,
            "address": self.address,
            "guest kernel": kernel,
            "guest clock": clock,
            **self._notes,
        }
