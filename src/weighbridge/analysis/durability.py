"""What a power cut leaves of what a server has acknowledged, beside what it costs."""

from collections.abc import Iterable, Mapping

from weighbridge.analysis.confounders import Fact
from weighbridge.analysis.results import Remark

DURABILITY = "durability"
"""Scope of the durability of each workload in each environment: "ENVIRONMENT/WORKLOAD LABEL" -> "synchronous"."""

MEANING = {
    "synchronous": "acknowledged writes are on the disk",
    "asynchronous": "a power cut loses the last acknowledged writes",
    "none": "acknowledged writes are in memory only",
}


def durabilities(facts: Iterable[Fact]) -> dict[str, str]:
    """Give the facts of that scope."""
    return {key: value for scope, key, value, _ in facts if scope == DURABILITY}


def unlike(found: Mapping[str, str], label: str, environment: str, baseline: str) -> str:
    """How the durability of two environments differs in a workload; empty where it does not."""
    mine, other = (found.get(f"{name}/{label}", "") for name in (environment, baseline))
    return f"durability {mine or 'unknown'}, but {other or 'unknown'} in {baseline}" if mine != other else ""


def differences(found: Mapping[str, str], baseline: str) -> tuple[Remark, ...]:
    """Give how environments differ from the baseline, and in which workloads."""
    labels: dict[tuple[str, str], list[str]] = {}
    for place in found:
        environment, _, label = place.partition("/")
        if text := unlike(found, label, environment, baseline):
            labels.setdefault((environment, text), []).append(label)
    return tuple(
        Remark("durability", f"{environment}: {text} ({', '.join(mine)})")
        for (environment, text), mine in labels.items()
    )


def durability_lines(found: Mapping[str, str]) -> dict[str, str]:
    """Per workload label its durability in words, of each environment where they differ."""
    by_label: dict[str, dict[str, list[str]]] = {}
    for place, kind in found.items():
        environment, _, label = place.partition("/")
        by_label.setdefault(label, {}).setdefault(kind, []).append(environment)
    lines = {}
    for label, kinds in by_label.items():
        told = []
        for kind, names in kinds.items():
            where = f" in {', '.join(names)}" if len(kinds) > 1 else ""
            told.append(f"{MEANING.get(kind, f'durability {kind}')}{where}")
        lines[label] = "; ".join(told)
    return lines
