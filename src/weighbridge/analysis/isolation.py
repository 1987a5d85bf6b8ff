"""In which hypervisors the environments of a run were measured, and whether one of them was an emulator."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from weighbridge.analysis.condition_remarks import Emulated, EmulatedCost, GuestTicks, Nested, Unverified
from weighbridge.analysis.confounders import Fact
from weighbridge.analysis.remarks import Remark
from weighbridge.errors import RunDirectoryError
from weighbridge.model.facts import layers_of
from weighbridge.model.isolation import SCOPE, Layer, SiteLayers, by_environment


@dataclass(frozen=True, slots=True)
class Isolation:
    """The hypervisors in which an environment's programs ran; of those of its two roles each once."""

    sites: tuple[SiteLayers, ...] = ()
    """Those without another that is in the same hypervisors and in more."""

    @property
    def layers(self) -> tuple[Layer, ...]:
        """Every layer, the outermost first."""
        return tuple(dict.fromkeys(layer for site in self.sites for layer in site.layers))

    @property
    def emulated(self) -> bool:
        """Whether a part of what was measured ran on an emulator."""
        return any(site.emulated for site in self.sites)


NO_HYPERVISOR = Isolation()


def isolations(facts: Iterable[Fact], environments: Sequence[str]) -> dict[str, Isolation]:
    """Give the hypervisors of each environment that is in some. RunDirectoryError where a fact cannot be read."""
    sites = [(key, _read(key, value)) for scope, key, value, _ in facts if scope == SCOPE]
    return {name: Isolation(each) for name, each in by_environment(sites, environments).items()}


def _read(place: str, stored: str) -> SiteLayers:
    try:
        return layers_of(stored)
    except ValueError:
        raise RunDirectoryError(f"the run is damaged: the hypervisors of {place} cannot be read") from None


def isolation_remarks(isolation: Mapping[str, Isolation], baseline: str) -> tuple[Remark, ...]:
    """Give what stands on top of a report: which costs are an emulator's, and which hosts are guests themselves."""
    found: list[Remark] = []
    if emulated := [name for name, each in isolation.items() if each.emulated]:
        names = dict.fromkeys(name for each in emulated for name in emulators(isolation[each]))
        found.append(Emulated(tuple(emulated), tuple(names), baseline if baseline in emulated else ""))
    nested: dict[Nested, dict[str, None]] = {}
    for name, each in isolation.items():
        for site in _guests(each):
            nested.setdefault(site, {})[name] = None
    return (*found, *(replace(site, environments=tuple(names)) for site, names in nested.items()))


UNVERIFIED = "unverified"
"""Scope of what was never seen to work on real hardware: environment or "host NAME" -> what of it."""


def unverified_remarks(facts: Iterable[Fact], environments: Sequence[str]) -> tuple[Remark, ...]:
    """Give what a run has of that scope, each once."""
    found = dict.fromkeys((key, value) for scope, key, value, _ in facts if scope == UNVERIFIED)
    return tuple(
        Unverified(key, "", what) if key in environments else Unverified("", key.removeprefix("host "), what)
        for key, what in found
    )


def _guests(isolation: Isolation) -> list[Nested]:
    """The hosts that are guests themselves."""
    return [
        Nested((), site.host, tuple(layer.name for layer in site.of_host)) for site in isolation.sites if site.of_host
    ]


def of_comparison(isolation: Mapping[str, Isolation], *environments: str) -> list[Remark]:
    """Give which side of a comparison was measured under emulation, and on which hosts that are guests both were.

    Where that is one host for both, it is told once; where only one side was on such a host, the report's top tells.
    """
    sides = [isolation.get(name, NO_HYPERVISOR) for name in environments]
    found: list[Remark] = [
        EmulatedCost(name, emulators(side)) for name, side in zip(environments, sides, strict=True) if side.emulated
    ]
    if all(side.emulated for side in sides):
        layers = dict.fromkeys(name for side in sides for name in emulators(side))
        found = [EmulatedCost(environments[0], tuple(layers), both=True)]
    common = [each for each in _guests(sides[0]) if all(each in _guests(side) for side in sides)]
    if common or not all(_guests(side) for side in sides):
        return [*found, *common]
    of_each = zip(environments, sides, strict=True)
    return [*found, *(replace(each, environments=(name,)) for name, side in of_each for each in _guests(side))]


def guest_ticks(isolation: Mapping[str, Isolation], *environments: str) -> list[GuestTicks]:
    """Give whose CPU time an emulated host counts; that of an emulator's process on a real machine is real."""
    found = [
        GuestTicks(name, site.host)
        for name in environments
        for site in isolation.get(name, NO_HYPERVISOR).sites
        if any(layer.emulated for layer in site.of_host)
    ]
    return [*dict.fromkeys(found)]


def emulators(isolation: Isolation) -> tuple[str, ...]:
    """Give the names of the layers that are emulated."""
    return tuple(layer.name for layer in isolation.layers if layer.emulated)
