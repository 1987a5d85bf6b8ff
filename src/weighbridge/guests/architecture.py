"""Architectures that guests may have: what of a machine, its kernel and its console goes with the processor."""

import platform
from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Architecture:
    """``name`` is that of uname(2).

    ``cpus``: the model of its CPUs under each accelerator.
    """

    name: str
    debian: str
    """Debian's name for it."""
    program: str
    """QEMU's program that makes such machines."""
    machine: str
    """QEMU's machine, with its options."""
    console: str
    """The kernel's name of its serial port."""
    cpus: Mapping[str, str]
    has_ide: bool = True
    """Whether a disk may be on an IDE controller: Debian's kernel has drivers of the one that QEMU makes."""

    @property
    def kernel(self) -> str:
        """Debian's full kernel: the one for clouds has no e1000 and cannot be a host of Xen."""
        return f"linux-image-{self.debian}"


X86_64 = Architecture("x86_64", "amd64", "qemu-system-x86_64", "q35", "ttyS0", {"kvm": "host", "tcg": "max"})
AARCH64 = Architecture(
    "aarch64", "arm64", "qemu-system-aarch64", "virt,gic-version=max", "ttyAMA0",
    # signed pointers by the architecture's own cipher take an emulated CPU half of its time
    {"kvm": "host", "tcg": "max,pauth-impdef=on"}, has_ide=False,
)  # fmt: skip
KNOWN = {each.name: each for each in (X86_64, AARCH64)}


def architecture_of(name: str) -> Architecture:
    """Return the architecture of this name, or x86-64 where it is unknown."""
    return KNOWN.get(name, X86_64)


HOST = architecture_of(platform.machine())
"""That of this machine, which its guests have."""
