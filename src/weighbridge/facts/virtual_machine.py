"""Whether this machine runs under a hypervisor, and the hypervisor's name for the machine."""

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
"""The beginnings of hypervisors' names in firmware (systemd, src/basic/virt.c: dmi_vendor_table)."""
_BARE_METAL = re.compile(r".*[.-]metal")
"""A cloud product that is a physical machine: Amazon's "c7g.metal"."""
_CLOUDS = ("Amazon EC2", "Google")
"""Clouds that rent physical machines under the names of virtual ones, and set that bit correctly."""
_SMBIOS = "sys/firmware/dmi/entries/0-0/raw"
_SMBIOS_EXTENSION, _VIRTUAL_BIT = 0x13, 1 << 4
"""Second extension of the BIOS characteristics: the bit for a virtual machine (SMBIOS 3, 7.1.2.2)."""
_DEVICE_TREE: Mapping[str, re.Pattern[str]] = {
    "proc/device-tree/hypervisor/compatible": re.compile(r".+"),
    "proc/device-tree/compatible": re.compile(r"linux,dummy-virt|qemu,.*"),
}
"""Entries that only a hypervisor's device tree has: its name, and the board that QEMU emulates (``-M virt``)."""


def virtual(root: Path = _ROOT) -> bool:
    """Return whether the machine is known to run under a hypervisor."""
    return bool(hypervisor(root))


def hypervisor(root: Path = _ROOT) -> str | None:
    """Return the hypervisor's name for this machine; "" on physical machines, None if unknown.

    On x86, a CPU flag decides, whatever the firmware says. Other machines use the rules of systemd-detect-virt: the
    firmware's tables (except those of a cloud's bare metal), the device tree, and the kernel for Xen. A hypervisor
    that appears in none of these is not detected.
    """
    product = _text(root / _DMI / "product_name")
    flags = [line.split() for line in _text(root / "proc/cpuinfo").splitlines() if line.startswith("flags")]
    if flags:
        return (product or "a hypervisor (unnamed)") if any("hypervisor" in words for words in flags) else ""
    by_firmware = _by_firmware(root, product)
    return by_firmware or _by_device_tree(root) or _text(root / "sys/hypervisor/type") or by_firmware


def _by_firmware(root: Path, product: str) -> str | None:
    """Return the name in the firmware's tables; "" for a cloud's bare metal, None for neither."""
    names = [_text(root / _DMI / file) for file in _DMI_FILES]
    if not any(_DMI_VENDORS.match(name) for name in names):
        return None
    if _BARE_METAL.fullmatch(product):
        return ""
    extension = _octets(root / _SMBIOS)[_SMBIOS_EXTENSION : _SMBIOS_EXTENSION + 1]
    # the tables of other virtual machines can omit the bit
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
