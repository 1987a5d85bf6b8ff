"""Firecracker: a microVM with virtio devices on MMIO, which is described by a file. Needs KVM."""

import json
from pathlib import Path
from typing import Any, ClassVar

from weighbridge.features.guests.kvm_guest import Hypervisor, KvmEnvironment, KvmMachine

_KERNEL = (
    "console=ttyS0", "reboot=k", "pci=off", "i8042.noaux", "i8042.nomux", "i8042.dumbkbd",
)  # fmt: skip
"""Options of its kernel. A guest ends the hypervisor with a reset through the keyboard controller."""
_CID = 3
"""The first address of a guest. It has no meaning on the host, so all guests can have it."""


class FirecrackerMachine(KvmMachine):
    """A guest of Firecracker. Before version 1.8, it had no ACPI, where Debian's kernel finds the devices."""

    __slots__ = ()
    hypervisor: ClassVar = Hypervisor(
        "Firecracker", "firecracker", (1, 8), "github.com/firecracker-microvm/firecracker", most_cpus=32
    )
    bus: ClassVar = "virtio_mmio"

    def argv(self) -> tuple[str, ...]:
        """Return the argument list; the guest is in the file of `configuration`."""
        return ("firecracker", "--no-api", "--level", "Error", "--config-file", str(self._file))

    @property
    def _file(self) -> Path:
        return self.folder / "guest.json"

    def configuration(self) -> tuple[Path, str]:
        """Return the file with the guest, as ``FullVmConfiguration`` in Firecracker's API describes it."""
        drives = [_drive("root", self.root, read_only=True)]
        drives += [] if self.data is None else [_drive("data", self.data, read_only=False)]
        guest: dict[str, Any] = {
            "boot-source": {
                "kernel_image_path": str(self.kernel),
                "initrd_path": str(self.ramdisk),
                "boot_args": self.command_line(*_KERNEL),
            },
            "machine-config": {"vcpu_count": self.cpus, "mem_size_mib": self.memory >> 20},
            "drives": drives,
            "vsock": {"guest_cid": _CID, "uds_path": str(self.vsock)},
        }
        if self.network is not None:
            card = {"iface_id": "eth0", "host_dev_name": self.network.name, "guest_mac": self.network.hardware}
            guest["network-interfaces"] = [card]
        return self._file, json.dumps(guest, indent=1)


def _drive(name: str, image: Path, *, read_only: bool) -> dict[str, Any]:
    """Return a disk. As its root device, Firecracker would change the kernel's command line; by default, it ignores
    flushes."""
    return {
        "drive_id": name,
        "path_on_host": str(image),
        "is_root_device": False,
        "is_read_only": read_only,
        "cache_type": "Writeback",
    }


class Firecracker(KvmEnvironment):
    """A microVM of Firecracker with Debian's kernel."""

    kind = "firecracker"
    summary = "a Firecracker microVM with Debian's kernel, on a bridge"
    machine = FirecrackerMachine


PLUGIN = Firecracker()
