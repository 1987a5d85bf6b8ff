"""The hypervisors and emulators between a program and the processor. Pure."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Layer:
    """One isolation layer ("Xen PVH"), not a container. ``emulated``: it translates every instruction in software."""

    __pydantic_config__ = {"extra": "forbid"}  # noqa: RUF012 (pydantic reads it; hosts without it import this module)

    name: str
    emulated: bool = False


Layers = tuple[Layer, ...]
"""The layers from the outermost, which is on the hardware (or the outermost known one), to the innermost."""

SCOPE = "layers"
"""The scope of the facts: "ENVIRONMENT/ROLE", possibly with "@CLIENT HOST" -> the `SiteLayers` as JSON."""

OUTSIDE = "outside"
"""The environment of sites of roles that are outside of all environments."""


@dataclass(frozen=True, slots=True)
class SiteLayers:
    """The hypervisors around a site; some of them are also around its host."""

    host: str
    of_host: Layers = ()
    own: Layers = ()
    """The layers of the environment itself, inside the host's."""

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
        """Whether one of the layers is emulated, so that everything inside runs on an emulator."""
        return any(layer.emulated for layer in self.layers)


def by_environment(
    sites: Iterable[tuple[str, SiteLayers]], environments: Sequence[str]
) -> dict[str, tuple[SiteLayers, ...]]:
    """Return the sites of each environment that is inside a hypervisor, from the stored facts (`SCOPE`).

    A role outside of the environments is part of each environment that is measured with it, with its host's
    hypervisors. An environment with sites of its own is measured only with their clients. Sites whose layers are a
    part of another site's layers are left out.
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
    """Return the sites without those whose layers others have, too, with further layers inside."""
    by_layers = {site.layers: site for site in reversed([*sites])}
    innermost = [
        site
        for layers, site in by_layers.items()
        if not any(len(other) > len(layers) and other[: len(layers)] == layers for other in by_layers)
    ]
    return tuple(reversed(innermost))
