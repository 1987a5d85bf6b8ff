"""The conditions of a run's measurement, read from its facts: hypervisors, durability, packet sizes, idle CPUs.

`weighbridge.analysis.remarks` derives remarks from them.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Literal

from pydantic import ValidationError

from weighbridge.errors import RunDirectoryError
from weighbridge.model.facts import (
    ADDED_CONTAINERS,
    IDLE_CPUS,
    LIMITS_ABOVE,
    MEMORY_FOLDERS,
    OPEN_FILES,
    OUTERMOST_GROUP,
    POLL,
    PROCESSES,
    QUALITY_OF_SERVICE,
    ROUTE_TO_SUPPORTING_SERVICES,
    ULIMIT,
    idle_code,
    layers_of,
)
from weighbridge.model.interrupt_time import INTERRUPT_TIME
from weighbridge.model.isolation import SCOPE, Layer, SiteLayers, by_environment
from weighbridge.model.power_cut import SCOPE as POWER_CUTS
from weighbridge.model.power_cut import PowerCut, power_cut_of

Fact = tuple[str, str, str, float]
"""The scope, key, value and time of a fact."""

COMPARED = (
    "userland", "packages", "user", "limits", QUALITY_OF_SERVICE, ADDED_CONTAINERS, LIMITS_ABOVE, OUTERMOST_GROUP,
    OPEN_FILES, PROCESSES, ROUTE_TO_SUPPORTING_SERVICES, *MEMORY_FOLDERS.values(),
)  # fmt: skip
"""Facts of a site that must be the same in every environment, like facts that start with `COMPARED_BEGINNINGS`."""
COMPARED_BEGINNINGS = ("version", ULIMIT)

READABLE = 40
"""The length from which a value is a digest or a list that means nothing to a reader."""

PACKET_SIZES = "packet sizes"
"""The scope of packet sizes: "ENVIRONMENT/WORKLOAD LABEL" -> "1418 B"."""


def packet_sizes(facts: Iterable[Fact]) -> dict[str, str]:
    """Return the packet sizes: "ENVIRONMENT/WORKLOAD LABEL" -> "1418 B" or "1472 B (probed)"."""
    return {key: value for scope, key, value, _ in facts if scope == PACKET_SIZES}


def bare(size: str) -> str:
    """Return a packet size without its origin: a probed and a given size are equal if their bytes are."""
    return size.split(" (", maxsplit=1)[0]


def interrupt_times(facts: Iterable[Fact]) -> frozenset[str]:
    """Return the `InterruptTime` of this machine and of the other hosts; empty for runs before it was recorded.

    This machine is included even if all roles ran elsewhere.
    """
    return frozenset(
        value for scope, key, value, _ in facts if key == INTERRUPT_TIME and scope.partition(" ")[0] == "host"
    )


# -- hypervisors -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Isolation:
    """The hypervisors that an environment's programs ran in, each once for both roles."""

    sites: tuple[SiteLayers, ...] = ()
    """Sites, except those whose hypervisors are all part of another site's."""

    @property
    def layers(self) -> tuple[Layer, ...]:
        """Every layer, the outermost first."""
        return tuple(dict.fromkeys(layer for site in self.sites for layer in site.layers))

    @property
    def emulated(self) -> bool:
        """Whether any measured program ran on an emulator."""
        return any(site.emulated for site in self.sites)


NO_HYPERVISOR = Isolation()


def isolations(facts: Iterable[Fact], environments: Sequence[str]) -> dict[str, Isolation]:
    """Return the hypervisors of each environment that has any. Raises RunDirectoryError if a fact cannot be read."""
    sites = [(key, _read(key, value)) for scope, key, value, _ in facts if scope == SCOPE]
    return {name: Isolation(each) for name, each in by_environment(sites, environments).items()}


def _read(place: str, stored: str) -> SiteLayers:
    try:
        return layers_of(stored)
    except ValueError:
        raise RunDirectoryError(f"the run is damaged: the hypervisors of {place} cannot be read") from None


def emulators(isolation: Isolation) -> tuple[str, ...]:
    """Return the names of the emulated layers."""
    return tuple(layer.name for layer in isolation.layers if layer.emulated)


# -- durability ------------------------------------------------------------------------------------

DURABILITY = "durability"
"""Scope of the durability of each workload in each environment: "ENVIRONMENT/WORKLOAD LABEL" -> "synchronous"."""

Durabilities = Mapping[str, tuple[str, ...]]
"""The durabilities of a workload, each with the environments that have it."""

PowerCuts = tuple[PowerCut, ...]
"""The latest check by power cut of each environment and promise."""


def durabilities(facts: Iterable[Fact]) -> dict[str, str]:
    """Return the facts with the scope "durability"."""
    return {key: value for scope, key, value, _ in facts if scope == DURABILITY}


def by_label(by_place: Mapping[str, str]) -> dict[str, Durabilities]:
    """Return for each workload label its durability, or several with their environments."""
    kinds: dict[str, dict[str, tuple[str, ...]]] = {}
    for place, kind in by_place.items():
        environment, _, label = place.partition("/")
        mine = kinds.setdefault(label, {})
        mine[kind] = (*mine.get(kind, ()), environment)
    return dict(kinds)


def power_cuts(facts: Iterable[Fact], environments: Collection[str]) -> PowerCuts:
    """Return the latest check of each environment and promise.

    Inconsistent checks, and checks that a newer version stored differently, are left out.
    """
    checks: dict[str, PowerCut] = {}
    for scope, key, value, _ in facts:
        if scope == POWER_CUTS:
            with suppress(ValidationError):
                checks[key] = power_cut_of(value)
    return tuple(each for each in checks.values() if each.adds_up and each.environment in environments)


# -- idle CPUs and calibration ---------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Calibration:
    """The result of the machine's last calibration. ``scope`` is whether it applies to this run.

    Calibration uses one host, no cables, and idle CPUs that halt. It does not apply to other paths, or to CPUs that
    poll.
    """

    scope: Literal["this-run", "another-path", "halting-cpus"]
    facts: Mapping[str, str]


def polled(facts: Iterable[Fact]) -> bool:
    """Return whether the run's idle CPUs polled, so that no environment waited for one to wake up."""
    return any((scope, key, idle_code(value)) == ("host", IDLE_CPUS, POLL) for scope, key, value, _ in facts)


def calibration_of(facts: Iterable[Fact]) -> Calibration | None:
    """Return the machine's last calibration, from the latest facts of the run; None if there is none."""
    facts = list(facts)
    figures = {key: value for scope, key, value, _ in facts if scope == "calibration"}
    if not figures:
        return None
    if any(scope.startswith("host ") and key == "kind" for scope, key, _, _ in facts):
        return Calibration("another-path", figures)
    return Calibration("halting-cpus" if polled(facts) else "this-run", figures)
