"""The hypervisors and emulators between a program and the processor. Pure.

It is a part of what runs on other machines, which have Python's standard library alone.
"""

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Layer:
    """One of them, as a reader knows it: "QEMU, KVM", "Xen PVH". A container is none.

    ``emulated``: it translates every instruction in software, so that what is measured inside is the emulator.
    """

    name: str
    emulated: bool = False


Layers = tuple[Layer, ...]
"""From the outermost, which is on the hardware (or is all that this machine knows of it), to the innermost."""


def is_emulated(layers: Iterable[Layer]) -> bool:
    """Whether one of them is: whatever is inside of it runs on an emulator, too."""
    return any(layer.emulated for layer in layers)
