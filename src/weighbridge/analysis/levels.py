"""The workloads of a run, each with the levels of its load in their order."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from weighbridge.model.level import Level, cell_label
from weighbridge.store.run import RunStore


@dataclass(frozen=True, slots=True)
class LoadLevel:
    """One level of a workload: as it is written at a span, its cell's key and its label in the report."""

    text: str
    level: Level
    label: str


@dataclass(frozen=True, slots=True)
class LevelGroup:
    """A workload with all levels of its load; other factors are fixed in it."""

    workload: str
    title: str
    load: str
    """The name of the factor that its levels are of; empty where nothing is swept."""
    levels: tuple[LoadLevel, ...]
    """Rising where they are numbers, in the study's order otherwise."""


def groups_of(store: RunStore) -> list[LevelGroup]:
    """Give the workloads of a run, each with its levels in order; other factors than the load make groups apart."""
    loads: dict[str, str] = json.loads(store.info().get("loads", "{}"))
    workloads: dict[str, list[_Cell]] = {}
    for workload, level, _, label, options in store.cells():
        workloads.setdefault(workload, []).append(_Cell(level, label, options))
    groups: dict[tuple[str, str], tuple[LevelGroup, list[LoadLevel]]] = {}
    for workload, cells in workloads.items():
        load = _load(cells, loads.get(workload, ""))
        for cell in sorted(cells, key=lambda each: each.number(load) or 0.0):
            title = cell_label(workload, cell.level.without(load)) if load else workload
            text = cell.level.value_of(load) or cell.level.label
            _, levels = groups.setdefault((workload, title), (LevelGroup(workload, title, load, ()), []))
            levels.append(LoadLevel(text, cell.level, cell.label))
    return [replace(group, levels=tuple(levels)) for group, levels in groups.values()]


@dataclass(frozen=True, slots=True)
class _Cell:
    level: Level
    label: str
    options: Mapping[str, object]

    def number(self, factor: str) -> float | None:
        """A factor's value: the option in its base unit, or as it was written; None where it is no number."""
        value = self.options.get(factor, self.level.value_of(factor))
        try:
            return None if isinstance(value, bool) else float(str(value))
        except ValueError:
            return None


def _load(cells: Sequence[_Cell], named: str) -> str:
    """The factor that is the load: of those swept over numbers, the one that the workload has named or the first."""
    swept = []
    for name in dict.fromkeys(name for cell in cells for name in cell.level.factors):
        numbers = [cell.number(name) for cell in cells if name in cell.level.factors]
        if len(numbers) == len(cells) and None not in numbers and len(set(numbers)) > 1:
            swept.append(name)
    return named if named in swept else next(iter(swept), "")
