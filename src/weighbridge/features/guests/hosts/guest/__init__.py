"""A machine of our own as a host: a QEMU guest with Debian's full kernel, joined to the others by a switch."""

from collections.abc import Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, ClassVar

from weighbridge.features.guests import accelerator, disk, kernel, system, volatile_disk
from weighbridge.features.guests.accelerator import EMULATED
from weighbridge.features.guests.architecture import HOST, X86_64
from weighbridge.features.guests.hosts.guest.options import GuestOptions
from weighbridge.linux.cleanup import OF_HOSTS
from weighbridge.linux.process import which
from weighbridge.model.host import Host, RunContext
from weighbridge.model.host_kind import HostKind, HostOptions
from weighbridge.model.plugin import Readiness

_BOOT_S, _SYSTEM_BUILD_S = 2.0, 90.0


class Guest(HostKind):
    """A QEMU guest whose first process starts an agent of ours; it ends when our end of its stream closes."""

    kind = "guest"
    group = "virtual machines"
    summary = (
        "a QEMU guest as a host, with Debian's full kernel: it can run engines that this machine's kernel does not "
        "support"
    )
    cleanup: ClassVar = OF_HOSTS
    root_makes = "guest hosts"
    options = GuestOptions
    programs: ClassVar = (HOST.program, *kernel.PROGRAMS, *disk.PROGRAMS, "ip", "ethtool")
    architectures: ClassVar = (X86_64.name,)

    def ready(self, options: Any | None = None) -> Readiness:
        """Return whether guests are emulated, and whether a write cache can be lost with the power."""
        if options is not None and options.write_cache != "kept" and which(volatile_disk.PROGRAM) is None:
            return Readiness(False, *volatile_disk.missing())
        return accelerator.readiness("auto" if options is None else options.accelerator, accelerator.no_kvm())

    def build_s(self, options: Any, cache: Path) -> float:
        """Return the seconds to build its system and the kernel that tries KVM."""
        from weighbridge.hosts.agent.frames import BOOT

        kernel_s = 0.0 if kernel.cached(cache) is not None else kernel.BUILD_S
        return kernel_s + (0.0 if system.is_cached(cache, BOOT, options.system) else _SYSTEM_BUILD_S)

    def opening_s(self, options: Any) -> float:
        """Return the seconds until its agent answers."""
        return _BOOT_S * self.slowdown(options)

    def slowdown(self, options: Any) -> float:
        """Return the slowdown of an emulated CPU, unless KVM is possible."""
        return EMULATED if self.ready(options).caveat == "emulated" else 1.0

    def open(
        self, name: str, options: Any, run: RunContext, peers: Sequence[HostOptions]
    ) -> AbstractContextManager[Host]:
        """Start the guest, and end it with everything in it."""
        from weighbridge.features.guests.hosts.guest.host import guest_host

        return guest_host(name, options, run)


PLUGIN = Guest()
