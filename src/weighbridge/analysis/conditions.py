"""Under which conditions a run was measured, read from its facts: hypervisors, durability, sizes, idle CPUs.

What is to be said of them beside a cost is in `weighbridge.analysis.remarks`.
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
    ULIMIT,
    idle_code,
    layers_of,
)
from weighbridge.model.host import INTERRUPT_TIME
from weighbridge.model.isolation import SCOPE, Layer, SiteLayers, by_environment
from weighbridge.model.power_cut import SCOPE as POWER_CUTS
from weighbridge.model.power_cut import PowerCut, power_cut_of
from weighbridge.model.site import ROUTE_TO_SUPPORTING_SERVICES

Fact = tuple[str, str, str, float]
"""Scope, key, value, when."""

COMPARED = (
    "userland", "packages", "user", "limits", QUALITY_OF_SERVICE, ADDED_CONTAINERS, LIMITS_ABOVE, OUTERMOST_GROUP,
    OPEN_FILES, PROCESSES, ROUTE_TO_SUPPORTING_SERVICES, *MEMORY_FOLDERS.values(),
)  # fmt: skip
"""Facts of a site that have to be the same in every environment; so do those with one of `COMPARED_BEGINNINGS`."""
COMPARED_BEGINNINGS = ("version", ULIMIT)

READABLE = 40
"""Letters from which a value is a digest, or a list, that says nothing to a reader."""

PACKET_SIZES = "packet sizes"
"""Scope of the size of what each workload sends in each environment: "ENVIRONMENT/WORKLOAD LABEL" -> "1418 B"."""


def packet_sizes(facts: Iterable[Fact]) -> dict[str, str]:
    """Give the facts of scope "packet sizes": "ENVIRONMENT/WORKLOAD LABEL" -> "1418 B", perhaps "1472 B (probed)"."""
    return {key: value for scope, key, value, _ in facts if scope == PACKET_SIZES}


def bare(size: str) -> str:
    """A packet size without how it was found: a probed and a given size are the same when they are as large."""
    return size.split(" (", maxsplit=1)[0]


def interrupt_times(facts: Iterable[Fact]) -> frozenset[str]:
    """Give the `InterruptTime` of this machine and of the other hosts; empty for a run made before it was noted.

    Where all roles were elsewhere this machine's is among them too.
    """
    return frozenset(
        value for scope, key, value, _ in facts if key == INTERRUPT_TIME and scope.partition(" ")[0] == "host"
    )


# -- hypervisors -----------------------------------------------------------------------------------


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


def emulators(isolation: Isolation) -> tuple[str, ...]:
    """Give the names of the layers that are emulated."""
    return tuple(layer.name for layer in isolation.layers if layer.emulated)


# -- durability ------------------------------------------------------------------------------------

DURABILITY = "durability"
"""Scope of the durability of each workload in each environment: "ENVIRONMENT/WORKLOAD LABEL" -> "synchronous"."""

Durabilities = Mapping[str, tuple[str, ...]]
"""The durabilities that a workload has, each with the environments in which it has it."""

PowerCuts = tuple[PowerCut, ...]
"""The latest check by power cut of each environment and promise."""


def durabilities(facts: Iterable[Fact]) -> dict[str, str]:
    """Give the facts of that scope."""
    return {key: value for scope, key, value, _ in facts if scope == DURABILITY}


def by_label(by_place: Mapping[str, str]) -> dict[str, Durabilities]:
    """Per workload label its durability, or several with the environments of each."""
    kinds: dict[str, dict[str, tuple[str, ...]]] = {}
    for place, kind in by_place.items():
        environment, _, label = place.partition("/")
        mine = kinds.setdefault(label, {})
        mine[kind] = (*mine.get(kind, ()), environment)
    return dict(kinds)


def power_cuts(facts: Iterable[Fact], environments: Collection[str]) -> PowerCuts:
    """Give the latest check of each of these environments and promise.

    What does not add up, and what a newer version has kept otherwise, is left out.
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
    """What the machine's last calibration says. ``about``: whether it is about this run.

    It was made with one host and without cables, whose idle CPUs halt: it says nothing of another path, or of CPUs
    that poll.
    """

    scope: Literal["this-run", "another-path", "halting-cpus"]
    facts: Mapping[str, str]


def polled(facts: Iterable[Fact]) -> bool:
    """Whether the run's idle CPUs polled: then nobody waited for one to wake up, in any environment."""
    return any((scope, key, idle_code(value)) == ("host", IDLE_CPUS, POLL) for scope, key, value, _ in facts)


def calibration_of(facts: Iterable[Fact]) -> Calibration | None:
    """Give the machine's last calibration, the latest of the run's facts; None where there is none."""
    facts = list(facts)
    figures = {key: value for scope, key, value, _ in facts if scope == "calibration"}
    if not figures:
        return None
    if any(scope.startswith("host ") and key == "kind" for scope, key, _, _ in facts):
        return Calibration("another-path", figures)
    return Calibration("halting-cpus" if polled(facts) else "this-run", figures)
