"""Cloud Hypervisor: a guest with virtio devices on PCI, which its arguments describe. Needs KVM."""

from pathlib import Path
from typing import ClassVar

from weighbridge.errors import Unavailable
from weighbridge.features.guests.architecture import HOST
from weighbridge.features.guests.kvm_guest import Hypervisor, KvmEnvironment, KvmMachine

_CID = 3
"""The first address of a guest. It has no meaning on the host, so all guests can have it."""
_RAW = "image_type=raw"
"""The type of an image. If the type is not stated, Cloud Hypervisor refuses writes to the first sector."""
_SEPARATORS = frozenset(',"[]')


class CloudHypervisorMachine(KvmMachine):
    """A guest of Cloud Hypervisor. It boots a guest that restarts again, so the guest switches itself off."""

    __slots__ = ()
    hypervisor: ClassVar = Hypervisor(
        "Cloud Hypervisor", "cloud-hypervisor", (51, 0), "github.com/cloud-hypervisor/cloud-hypervisor",
        most_cpus=254,
    )  # fmt: skip
    bus: ClassVar = "virtio_pci"

    def argv(self) -> tuple[str, ...]:
        """Return the argument list. Raises Unavailable if it cannot express a path."""
        data = () if self.data is None else (f"path={_plain(self.data)},{_RAW}",)
        tap = self.network
        network = () if tap is None else ("--net", f"tap={tap.name},mac={tap.hardware}")
        return (
            "cloud-hypervisor", "--kernel", str(self.kernel), "--initramfs", str(self.ramdisk),
            "--cmdline", self.command_line(f"console={HOST.console}", init=("--off",)),
            "--cpus", f"boot={self.cpus}", "--memory", f"size={self.memory >> 20}M",
            "--serial", "tty", "--console", "off", "--vsock", f"cid={_CID},socket={_plain(self.vsock)}",
            "--disk", f"path={_plain(self.root)},readonly=on,{_RAW}", *data, *network,
        )  # fmt: skip


def _plain(path: Path) -> str:
    if separators := _SEPARATORS & {*str(path)}:
        raise Unavailable(
            f"Cloud Hypervisor cannot use the path {path} because it contains {min(separators)!r}: move it "
            "(WEIGHBRIDGE_CACHE)"
        )
    return str(path)


class CloudHypervisor(KvmEnvironment):
    """A guest of Cloud Hypervisor with Debian's kernel."""

    kind = "cloud-hypervisor"
    summary = "a Cloud Hypervisor guest with Debian's kernel, on a bridge"
    machine = CloudHypervisorMachine


PLUGIN = CloudHypervisor()
