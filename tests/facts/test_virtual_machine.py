"""Which machines are virtual: the files of some, as their kernels have them."""

from pathlib import Path

import pytest

from weighbridge.facts import host
from weighbridge.facts.virtual_machine import hypervisor, virtual

DMI = "sys/class/dmi/id/"
X86 = {"proc/cpuinfo": "processor\t: 0\nflags\t\t: fpu vme {}lahf_lm\n"}
ARM64 = {
    "proc/cpuinfo": "processor\t: 0\nBogoMIPS\t: 243.75\nFeatures\t: fp asimd evtstrm aes\nCPU implementer\t: 0x41\n"
}
QEMU_VIRT = {"proc/device-tree/compatible": "linux,dummy-virt\0"}
"""As in a Debian guest of QEMU 10's ``-M virt`` that was started with ``-kernel``: it has no tables of firmware."""
GRAVITON = {
    f"{DMI}sys_vendor": "Amazon EC2\n", f"{DMI}board_vendor": "Amazon EC2\n", f"{DMI}bios_vendor": "Amazon EC2\n",
    f"{DMI}product_name": "c7g.large\n",
}  # fmt: skip
METAL = {**GRAVITON, f"{DMI}product_name": "c7g.metal\n"}
EDK2 = {f"{DMI}sys_vendor": "QEMU\n", f"{DMI}product_name": "QEMU Virtual Machine\n"}
AZURE = {f"{DMI}sys_vendor": "Microsoft Corporation\n", f"{DMI}product_name": "Virtual Machine\n"}
AMPERE = {f"{DMI}sys_vendor": "GIGABYTE\n", f"{DMI}product_name": "R272-P30-JG\n"}
PI = {"proc/device-tree/compatible": "raspberrypi,4-model-b\0brcm,bcm2711\0"}
HYPERVISOR_NODE = "proc/device-tree/hypervisor/compatible"


def machine(root: Path, files: dict[str, str | bytes]) -> Path:
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(text if isinstance(text, bytes) else text.encode())
    return root


def smbios(extension: int) -> dict[str, bytes]:
    """The first structure of the firmware's table: 0x13 is the second byte that extends the characteristics."""
    return {"sys/firmware/dmi/entries/0-0/raw": bytes(0x13) + bytes([extension]) + bytes(8)}


@pytest.mark.parametrize(
    ("files", "name"),
    [
        ({"proc/cpuinfo": X86["proc/cpuinfo"].format("hypervisor ")}, "a hypervisor (unnamed)"),
        ({"proc/cpuinfo": X86["proc/cpuinfo"].format("hypervisor "), f"{DMI}product_name": "m5.large\n"}, "m5.large"),
        ({"proc/cpuinfo": X86["proc/cpuinfo"].format(""), **EDK2}, ""),
        ({**ARM64, **GRAVITON}, "c7g.large"),
        ({**ARM64, **METAL}, ""),
        ({**ARM64, **GRAVITON, f"{DMI}product_name": "u7i-metal\n"}, ""),
        ({**ARM64, **GRAVITON, **smbios(0x1C)}, "c7g.large"),
        ({**ARM64, **GRAVITON, **smbios(0x0C)}, ""),
        ({**ARM64, **EDK2, **smbios(0)}, "QEMU Virtual Machine"),
        ({**ARM64, **AZURE}, "Virtual Machine"),
        ({**ARM64, **AMPERE}, None),
        ({**ARM64, **QEMU_VIRT}, "linux,dummy-virt"),
        ({**ARM64, **PI}, None),
        ({**ARM64, **PI, HYPERVISOR_NODE: "linux,kvm\0"}, "linux,kvm"),
        ({**ARM64, **PI, HYPERVISOR_NODE: "xen,xen-4.17\0xen,xen\0"}, "xen,xen-4.17"),
        ({**ARM64, "sys/hypervisor/type": "xen\n"}, "xen"),
        (ARM64, None),
        ({}, None),
    ],
)  # fmt: skip
def test_who_has_the_cpus(tmp_path: Path, files: dict[str, str | bytes], name: str | None):
    root = machine(tmp_path, files)
    assert hypervisor(root) == name and virtual(root) == bool(name)


@pytest.mark.parametrize(("name", "fact"), [("KVM", "KVM"), ("", "none seen"), (None, "not known")])
def test_only_where_the_cpus_tell_it_is_none(monkeypatch: pytest.MonkeyPatch, name: str | None, fact: str):
    monkeypatch.setattr(host, "hypervisor", lambda: name)
    monkeypatch.setattr(host, "_programs", dict)
    assert host.fingerprint()["virtualisation"] == fact
