"""The hypervisors and emulators between a program and the processor. Pure."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Layer:
    """One isolation layer, as a reader knows it: "QEMU, KVM", "Xen PVH". A container is none.

    ``emulated``: it translates every instruction in software, so that what is measured inside is the emulator.
    """

    name: str
    emulated: bool = False


Layers = tuple[Layer, ...]
"""From the outermost, which is on the hardware (or is all that this machine knows of it), to the innermost."""

SCOPE = "layers"
"""Scope of the facts: "ENVIRONMENT/ROLE", perhaps with "@HOST OF THE CLIENT" -> the `SiteLayers` as JSON."""

OUTSIDE = "outside"
"""In the place of an environment: the sites of the roles that are in none, and so a part of each."""


@dataclass(frozen=True, slots=True)
class SiteLayers:
    """In which hypervisors a site is, and which of them its host is in, too."""

    host: str
    """The name of the host."""
    of_host: Layers = ()
    own: Layers = ()
    """Those of the environment itself, inside of the host's."""

    @property
    def layers(self) -> Layers:
        """All layers around the site, the host's first."""
        return self.of_host + self.own

    @property
    def names(self) -> str:
        """The layers' names, the innermost first: ``Xen PVH inside QEMU, TCG``; empty without layers."""
        return " inside ".join(layer.name for layer in reversed(self.layers))

    @property
    def emulated(self) -> bool:
        """Whether one of them is: whatever is inside of it runs on an emulator, too."""
        return any(layer.emulated for layer in self.layers)


def by_environment(
    sites: Iterable[tuple[str, SiteLayers]], environments: Sequence[str]
) -> dict[str, tuple[SiteLayers, ...]]:
    """Give the sites of each environment that is in some hypervisor, by what a run keeps (`SCOPE`).

    A role that is outside of the environments is a part of each of them that is measured with it: its host's
    hypervisors are theirs too. An environment whose own sites are in some is measured with their clients alone. What
    another site of the environment has, and further layers inside of it, is left out.
    """
    places = [(*place.partition("/")[::2], site) for place, site in sites]
    clients: dict[str, set[str]] = {}
    for environment, role, _ in places:
        clients.setdefault(environment, set()).add(role.partition("@")[2])
    sites_of: dict[str, dict[SiteLayers, None]] = {name: {} for name in environments}
    for environment, role, site in places:
        client = role.partition("@")[2]
        for name in environments if environment == OUTSIDE else (environment,):
            if client in clients.get(name, {client}):
                sites_of.setdefault(name, {})[site] = None
    return {name: _innermost(sites_of[name]) for name in environments if sites_of[name]}


def _innermost(sites: Iterable[SiteLayers]) -> tuple[SiteLayers, ...]:
    """The sites without those whose layers others have too, and further ones inside of them."""
    by_layers = {site.layers: site for site in reversed([*sites])}
    innermost = [
        site
        for layers, site in by_layers.items()
        if not any(len(other) > len(layers) and other[: len(layers)] == layers for other in by_layers)
    ]
    return tuple(reversed(innermost))
