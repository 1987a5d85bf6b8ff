"""What a power cut leaves of what a server has acknowledged, beside what it costs."""

from collections.abc import Collection, Iterable, Mapping
from contextlib import suppress
from dataclasses import replace

from pydantic import ValidationError

from weighbridge.analysis.condition_remarks import OtherDurability
from weighbridge.analysis.confounders import Fact
from weighbridge.model.power_cut import SCOPE, PowerCut, power_cut_of

DURABILITY = "durability"
"""Scope of the durability of each workload in each environment: "ENVIRONMENT/WORKLOAD LABEL" -> "synchronous"."""

Durabilities = Mapping[str, tuple[str, ...]]
"""The durabilities that a workload has, each with the environments in which it has it."""

PowerCuts = tuple[PowerCut, ...]
"""The latest check by power cut of each environment and promise."""


def durabilities(facts: Iterable[Fact]) -> dict[str, str]:
    """Give the facts of that scope."""
    return {key: value for scope, key, value, _ in facts if scope == DURABILITY}


def other_durability(found: Mapping[str, str], label: str, environment: str, baseline: str) -> OtherDurability | None:
    """How the durability of two environments differs in a workload; None where it does not."""
    mine, other = (found.get(f"{name}/{label}", "") for name in (environment, baseline))
    return OtherDurability(mine, other, baseline) if mine != other else None


def differences(found: Mapping[str, str], baseline: str) -> tuple[OtherDurability, ...]:
    """Give how environments differ from the baseline, and in which workloads."""
    labels: dict[tuple[str, OtherDurability], list[str]] = {}
    for place in found:
        environment, _, label = place.partition("/")
        if unlike := other_durability(found, label, environment, baseline):
            labels.setdefault((environment, unlike), []).append(label)
    return tuple(
        replace(unlike, environment=environment, labels=tuple(mine)) for (environment, unlike), mine in labels.items()
    )


def by_label(found: Mapping[str, str]) -> dict[str, Durabilities]:
    """Per workload label its durability, or several with the environments of each."""
    kinds: dict[str, dict[str, tuple[str, ...]]] = {}
    for place, kind in found.items():
        environment, _, label = place.partition("/")
        mine = kinds.setdefault(label, {})
        mine[kind] = (*mine.get(kind, ()), environment)
    return dict(kinds)


def power_cuts(facts: Iterable[Fact], environments: Collection[str]) -> PowerCuts:
    """Give the latest check of each of these environments and promise.

    What does not add up, and what a newer version has kept otherwise, is left out.
    """
    found: dict[str, PowerCut] = {}
    for scope, key, value, _ in facts:
        if scope == SCOPE:
            with suppress(ValidationError):
                found[key] = power_cut_of(value)
    return tuple(each for each in found.values() if each.adds_up and each.environment in environments)
