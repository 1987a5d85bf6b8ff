"""What environments are called: the only place where a name is made that people read.

An environment that was measured in hypervisors is never named without them: whoever shows an analysis to people shows
what `displayed` makes of it. Machines get the name of the study, and the layers beside it.
"""

from collections.abc import Mapping
from dataclasses import fields, is_dataclass, replace
from operator import is_not
from typing import Any, TypeVar

from weighbridge.analysis.between_runs import RunPair, RunsCompared
from weighbridge.analysis.compared_run import ComparedRun
from weighbridge.analysis.conditions import NO_HYPERVISOR, Isolation
from weighbridge.analysis.history import History
from weighbridge.analysis.results import Analysis
from weighbridge.model.isolation import SiteLayers
from weighbridge.model.level import Level
from weighbridge.model.study import Rung

Data = TypeVar("Data")
CellKey = tuple[str, Level, str]
"""Workload, level, environment."""

NAMES = frozenset({"environment", "environments", "baseline", "aa_arm", "previous"})
"""Fields of an analysis that hold names of environments."""
BY_NAME = frozenset({"broke", "errors"})
"""Fields whose keys are names of environments."""


def environment_name(name: str, isolation: Isolation) -> str:
    """Return ``xen (Xen PVH inside QEMU, TCG: emulated)``; without hypervisors the name alone."""
    within = dict.fromkeys(layers_words(site) for site in isolation.sites)
    return f"{name} ({'; '.join(within)})".lstrip() if within else name


def layers_of_environment(name: str, analysis: Analysis) -> str:
    """Return what stands after an environment's name: ``(QEMU, TCG: emulated)``; nothing without hypervisors."""
    return environment_name("", analysis.isolation.get(name, NO_HYPERVISOR))


def layers_words(site: SiteLayers) -> str:
    """Return a site's layers, the innermost first: ``QEMU, KVM``; ``inside QEMU, TCG: emulated`` of a native one."""
    return f"{'' if site.own else 'inside '}{site.names}{': emulated' if site.emulated else ''}"


def displayed(analysis: Analysis) -> Analysis:
    """Return the same analysis with every environment called what people are to read; it is not for machines."""
    names = {name: environment_name(name, each) for name, each in analysis.isolation.items()}
    if not names:
        return analysis
    named_paths = {
        (names.get(name, name), client): path for (name, client), path in analysis.paths.by_environment.items()
    }
    renamed_analysis: Analysis = renamed(replace(analysis, context=None), names)
    return replace(
        renamed_analysis,
        broken=_by_cell(analysis.broken, names),
        bottlenecks=_by_cell(analysis.bottlenecks, names),
        durability={label: {kind: _all(arms, names) for kind, arms in kinds.items()}
                    for label, kinds in analysis.durability.items()},
        paths=replace(analysis.paths, by_environment=named_paths),
        rungs=tuple(Rung(names.get(name, name), base and names.get(base, base)) for name, base in analysis.rungs),
        isolation={},  # it is in the names now
    )  # fmt: skip


def _all(arms: tuple[str, ...], names: Mapping[str, str]) -> tuple[str, ...]:
    return tuple(names.get(name, name) for name in arms)


def _by_cell(cells: Mapping[CellKey, Data], names: Mapping[str, str]) -> dict[CellKey, Data]:
    return {
        (workload, level, names.get(name, name)): renamed(value, names)
        for (workload, level, name), value in cells.items()
    }


def renamed(value: Any, names: Mapping[str, str]) -> Any:
    """Return data with the names of environments replaced in those fields that hold them, however deep."""
    if is_dataclass(value) and not isinstance(value, type):
        before = {each.name: getattr(value, each.name) for each in fields(value) if each.init}
        now = {name: _field(name, each, names) for name, each in before.items()}
        changed = {name: each for name, each in now.items() if each is not before[name]}
        return replace(value, **changed) if changed else value
    if type(value) is tuple:
        items = tuple(renamed(each, names) for each in value)
        return items if any(map(is_not, items, value)) else value
    return value


def _field(field: str, value: Any, names: Mapping[str, str]) -> Any:
    if field in NAMES and isinstance(value, str):
        return names.get(value, value)
    if field in NAMES and isinstance(value, tuple):
        return _all(value, names)
    if field in BY_NAME and isinstance(value, Mapping):
        return {names.get(name, name): renamed(each, names) for name, each in value.items()}
    return renamed(value, names)


# -- several runs ----------------------------------------------------------------------------------


def displayed_runs(comparison: RunsCompared) -> RunsCompared:
    """Return the same comparison, not for machines; an environment in other hypervisors has both in its name."""
    names: dict[str, str] = {}
    by_name: dict[str, dict[str, None]] = {}
    for run in comparison.runs:
        for name, each in run.analysis.isolation.items():
            by_name.setdefault(name, {})[environment_name("", each)] = None
    for name, ways in by_name.items():
        names[name] = " then ".join((f"{name} {next(iter(ways))}", *list(ways)[1:]))
    if not names:
        return comparison
    return RunsCompared(_run(comparison.first), tuple(_pair(pair, names) for pair in comparison.pairs))


def displayed_history(run_history: History) -> History:
    """Return the same history, not for machines."""
    return replace(run_history, runs=tuple(replace(past, run=_run(past.run)) for past in run_history.runs))


def _run(run: ComparedRun) -> ComparedRun:
    return replace(run, analysis=displayed(run.analysis))


def _pair(pair: RunPair, names: dict[str, str]) -> RunPair:
    return replace(
        pair, first=_run(pair.first), second=_run(pair.second), facts=renamed(pair.facts, names),
        metrics=renamed(pair.metrics, names),
    )  # fmt: skip
