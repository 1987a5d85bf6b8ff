"""Remarks about hypervisors, emulators, and what is untested on real hardware."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from weighbridge.analysis.conditions import (
    NO_HYPERVISOR,
    Fact,
    Isolation,
    emulators,
)
from weighbridge.analysis.context import Context
from weighbridge.analysis.remarks.rules import AboutEnvironment, ComparisonInRun, about_comparison, on_top
from weighbridge.analysis.results import Remark, RemarkPlace


@dataclass(frozen=True, slots=True)
class EmulatedCost(AboutEnvironment):
    """A side of a comparison was measured under emulation; with ``both``, both sides and their ``layers`` were."""

    code = "emulated"
    placement = RemarkPlace.NAME
    layers: tuple[str, ...]
    both: bool = False


@about_comparison(20)
def _emulated_cost(comparison: ComparisonInRun) -> Iterator[Remark]:
    sides = {name: comparison.context.isolation.get(name, NO_HYPERVISOR) for name in reversed(comparison.sides)}
    if all(side.emulated for side in sides.values()):
        layers = dict.fromkeys(name for side in sides.values() for name in emulators(side))
        yield EmulatedCost(comparison.row.environment, tuple(layers), both=True)
    else:
        yield from (EmulatedCost(name, emulators(side)) for name, side in sides.items() if side.emulated)


@dataclass(frozen=True, slots=True)
class Nested(Remark):
    """Environments that were measured on a host that is itself a guest, in ``layers``, the outermost first.

    ``environments`` is empty in a comparison if both sides were on the host. ``everywhere`` means all environments.
    """

    code = "nested"
    placement = RemarkPlace.NAME
    environments: tuple[str, ...]
    host: str
    layers: tuple[str, ...]
    everywhere: bool = False


@about_comparison(30)
def _nested_sides(comparison: ComparisonInRun) -> Iterator[Remark]:
    """Yield the nested hosts of both sides, a shared one once; for a single side, the top of the report is enough."""
    sides = {name: _nested(comparison.context.isolation.get(name, NO_HYPERVISOR)) for name in comparison.sides}
    environment, baseline = reversed(sides)
    common = [each for each in sides[environment] if each in sides[baseline]]
    if common or not all(sides.values()):
        yield from common
    else:
        for name in (environment, baseline):
            yield from (replace(each, environments=(name,)) for each in sides[name])


def _nested(isolation: Isolation) -> list[Nested]:
    """Return the hosts that are guests themselves."""
    return [
        Nested((), site.host, tuple(layer.name for layer in site.of_host)) for site in isolation.sites if site.of_host
    ]


@dataclass(frozen=True, slots=True)
class Emulated(Remark):
    """Environments that were measured under emulation: their cost is the cost of the emulators in ``layers``.

    ``baseline`` is the baseline's name if it was emulated, otherwise empty. If it was, every cost is relative to an
    emulator. ``everywhere`` means all environments.
    """

    code = "emulated"
    environments: tuple[str, ...]
    layers: tuple[str, ...]
    baseline: str = ""
    everywhere: bool = False


@on_top(20)
def _emulated(context: Context) -> Iterator[Remark]:
    emulated = {name: each for name, each in context.isolation.items() if each.emulated}
    if emulated:
        layers = dict.fromkeys(name for each in emulated.values() for name in emulators(each))
        baseline = context.baseline if context.baseline in emulated else ""
        everywhere = {*context.plan.environments} <= {*emulated}
        yield Emulated(tuple(emulated), tuple(layers), baseline, everywhere)


@on_top(30)
def _nested_environments(context: Context) -> Iterator[Remark]:
    hosts: dict[Nested, dict[str, None]] = {}
    for name, isolation in context.isolation.items():
        for host in _nested(isolation):
            hosts.setdefault(host, {})[name] = None
    every = {*context.plan.environments}
    yield from (
        replace(host, environments=tuple(names), everywhere=every <= {*names}) for host, names in hosts.items()
    )


UNVERIFIED = "unverified"
"""The scope of facts about unverified kinds: environment or "host NAME" -> the unverified part."""


@dataclass(frozen=True, slots=True)
class Unverified(Remark):
    """An environment or ``host`` whose ``part`` was never seen to work on real hardware."""

    code = "unverified"
    environment: str
    host: str
    part: str


@on_top(40)
def _unverified(context: Context) -> Iterable[Remark]:
    return unverified(context.facts, context.plan.environments)


def unverified(facts: Iterable[Fact], environments: Sequence[str]) -> tuple[Remark, ...]:
    """Return the unverified parts of a run, each once."""
    stated = dict.fromkeys((key, value) for scope, key, value, _ in facts if scope == UNVERIFIED)
    return tuple(
        Unverified(key, "", what) if key in environments else Unverified("", key.removeprefix("host "), what)
        for key, what in stated
    )
