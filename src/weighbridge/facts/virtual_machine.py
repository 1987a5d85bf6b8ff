"""Whether a hypervisor has this machine's CPUs, and what it calls the machine."""

import contextlib
import re
from collections.abc import Mapping
from pathlib import Path

_ROOT = Path("/")
_DMI = "sys/class/dmi/id"
_DMI_FILES = ("product_name", "sys_vendor", "board_vendor", "bios_vendor", "product_version")
_DMI_VENDORS = re.compile(
    r"KVM|OpenStack|KubeVirt|Amazon EC2|QEMU|VMware|VMW|innotek GmbH|VirtualBox|Oracle Corporation|Xen|Bochs|"
    r"Parallels|BHYVE|Hyper-V|Apple Virtualization|Google Compute Engine|Virtual Machine"
)
"""How the texts begin by which hypervisors name themselves (systemd, src/basic/virt.c: dmi_vendor_table)."""
_BARE_METAL = re.compile(r".*[.-]metal")
"""A product of a cloud that is a whole machine: Amazon's "c7g.metal"."""
_CLOUDS = ("Amazon EC2", "Google")
"""Who rents whole machines under the names of virtual ones, and sets that bit."""
_SMBIOS = "sys/firmware/dmi/entries/0-0/raw"
_SMBIOS_EXTENSION, _VIRTUAL_BIT = 0x13, 1 << 4
"""Second extension of the BIOS characteristics: whether the table is of a virtual machine (SMBIOS 3, 7.1.2.2)."""
_DEVICE_TREE: Mapping[str, re.Pattern[str]] = {
    "proc/device-tree/hypervisor/compatible": re.compile(r".+"),
    "proc/device-tree/compatible": re.compile(r"linux,dummy-virt|qemu,.*"),
}
"""What only a hypervisor's tree of devices says: who it is, and the board that QEMU makes up (``-M virt``)."""


def virtual(root: Path = _ROOT) -> bool:
    """Whether a hypervisor is known to have the CPUs."""
    return bool(hypervisor(root))


def hypervisor(root: Path = _ROOT) -> str | None:
    """Return the hypervisor's name for this machine, or its own; "" where none has the CPUs, None where not known.

    x86 tells by a flag of its CPUs, whatever else is named. Others tell as systemd-detect-virt knows: by the
    firmware's tables (a cloud's bare metal has such ones and is none), the tree of devices, and the kernel for Xen.
    A hypervisor that is in none of these is not seen.
    """
    product = _text(root / _DMI / "product_name")
    flags = [line.split() for line in _text(root / "proc/cpuinfo").splitlines() if line.startswith("flags")]
    if flags:
        return (product or "a hypervisor (unnamed)") if any("hypervisor" in words for words in flags) else ""
    by_firmware = _by_firmware(root, product)
    return by_firmware or _by_device_tree(root) or _text(root / "sys/hypervisor/type") or by_firmware


def _by_firmware(root: Path, product: str) -> str | None:
    """The name in the firmware's tables; "" where they say that this is a cloud's bare metal, None: neither."""
    names = [_text(root / _DMI / file) for file in _DMI_FILES]
    if not any(_DMI_VENDORS.match(name) for name in names):
        return None
    if _BARE_METAL.fullmatch(product):
        return ""
    extension = _octets(root / _SMBIOS)[_SMBIOS_EXTENSION : _SMBIOS_EXTENSION + 1]
    # of other virtual machines the table may have left the bit out
    if extension and not extension[0] & _VIRTUAL_BIT and any(name.startswith(_CLOUDS) for name in names):
        return ""
    return product or next(name for name in names if name)


def _by_device_tree(root: Path) -> str:
    for file, pattern in _DEVICE_TREE.items():
        for word in _text(root / file).split("\0"):
            if pattern.fullmatch(word):
                return word
    return ""


def _text(file: Path) -> str:
    return _octets(file).decode(errors="replace").strip().rstrip("\0")


def _octets(file: Path) -> bytes:
    with contextlib.suppress(OSError):
        return file.read_bytes()
    return b""
