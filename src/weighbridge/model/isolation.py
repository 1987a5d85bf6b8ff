"""The hypervisors and emulators between a program and the processor. Pure."""

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

SCOPE = "layers"
"""Scope of the facts: "ENVIRONMENT/ROLE", perhaps with "@HOST OF THE CLIENT" -> the `SiteLayers` as JSON."""


@dataclass(frozen=True, slots=True)
class SiteLayers:
    """In which hypervisors a site is, and which of them its host is in."""

    host: str
    """The name of the host."""
    of_host: Layers = ()
    own: Layers = ()
    """Those of the environment itself, inside of the host's."""

    @property
    def layers(self) -> Layers:
        """All of them."""
        return self.of_host + self.own

    @property
    def emulated(self) -> bool:
        """Whether one of them is: whatever is inside of it runs on an emulator, too."""
        return any(layer.emulated for layer in self.layers)
