"""The hypervisors and emulators between a program and the processor, and how a run keeps them. Pure."""

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass


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


def layers_json(layers: Layers) -> str:
    """The layers as a run keeps them: a JSON list of objects."""
    return json.dumps([asdict(layer) for layer in layers], separators=(",", ":"))


def layers_of(stored: str) -> Layers:
    """The layers that are kept as ``stored``. Raises ValueError where it is no such list."""
    from pydantic import TypeAdapter  # what runs on other machines imports this module, and has the library alone

    return TypeAdapter(Layers).validate_json(stored, strict=True)
