"""The architectures of guests: the parts of a machine, its kernel and its console that depend on the processor."""

import platform
from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Architecture:
    """An architecture with the ``name`` of uname(2). ``cpus`` is the CPU model for each accelerator."""

    name: str
    debian: str
    """Debian's name for it."""
    program: str
    """QEMU's program for such machines."""
    machine: str
    """QEMU's machine, with its options."""
    console: str
    """The kernel's name of its serial port."""
    cpus: Mapping[str, str]
    has_ide: bool = True
    """Whether a disk can use IDE: Debian's kernel has drivers for QEMU's controller."""
    has_microvm: bool = True
    """Whether QEMU has a machine ``microvm`` for it."""

    @property
    def kernel(self) -> str:
        """Return Debian's full kernel: the cloud kernel has no e1000 and cannot be a host of Xen."""
        return f"linux-image-{self.debian}"


X86_64 = Architecture("x86_64", "amd64", "qemu-system-x86_64", "q35", "ttyS0", {"kvm": "host", "tcg": "max"})
AARCH64 = Architecture(
    "aarch64", "arm64", "qemu-system-aarch64", "virt,gic-version=max", "ttyAMA0",
    # signing pointers with the architecture's own cipher costs an emulated CPU half of its time
    {"kvm": "host", "tcg": "max,pauth-impdef=on"}, has_ide=False, has_microvm=False,
)  # fmt: skip
KNOWN = {each.name: each for each in (X86_64, AARCH64)}


def architecture_of(name: str) -> Architecture:
    """Return the architecture of this name, or x86-64 if it is unknown."""
    return KNOWN.get(name, X86_64)


HOST = architecture_of(platform.machine())
"""The architecture of this machine and its guests."""
