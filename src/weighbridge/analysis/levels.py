"""The workloads of a run, each with the levels of its load in order."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace

from weighbridge.model.address import CellId, grouped
from weighbridge.store.rows import CellRow
from weighbridge.store.run import RunStore


@dataclass(frozen=True, slots=True)
class LoadLevel:
    """One level of a workload, as text and as a cell."""

    text: str
    cell: CellId


@dataclass(frozen=True, slots=True)
class LevelGroup:
    """A workload with all levels of its load; other factors are fixed."""

    workload: str
    title: str
    load: str
    """The name of the swept factor; empty if there is none."""
    levels: tuple[LoadLevel, ...]
    """Levels in ascending order if they are numbers, otherwise in the study's order."""


def groups_of(store: RunStore) -> list[LevelGroup]:
    """Return the workloads of a run with their levels in order; factors other than the load make separate groups."""
    loads: dict[str, str] = json.loads(store.info().get("loads", "{}"))
    groups: dict[tuple[str, str], tuple[LevelGroup, list[LoadLevel]]] = {}
    for workload, cells in grouped(store.cells(), lambda cell: cell.workload).items():
        load = _load(cells, loads.get(workload, ""))
        for cell in sorted(cells, key=lambda each: _number(each, load) or 0.0):
            title = CellId(workload, cell.level.without(load)).label if load else workload
            text = cell.level.value_of(load) or cell.level.label
            _, levels = groups.setdefault((workload, title), (LevelGroup(workload, title, load, ()), []))
            levels.append(LoadLevel(text, cell.id))
    return [replace(group, levels=tuple(levels)) for group, levels in groups.values()]


def _number(cell: CellRow, factor: str) -> float | None:
    """Return a factor's value: the option in its base unit, or as it was written; None if it is not a number."""
    value = cell.options.get(factor, cell.level.value_of(factor))
    try:
        return None if isinstance(value, bool) else float(str(value))
    except ValueError:
        return None


def _load(cells: Sequence[CellRow], named: str) -> str:
    """Return the load: of the factors swept over numbers, the one that the workload named, or the first."""
    swept = []
    for name in dict.fromkeys(name for cell in cells for name in cell.level.factors):
        numbers = [_number(cell, name) for cell in cells if name in cell.level.factors]
        if len(numbers) == len(cells) and None not in numbers and len(set(numbers)) > 1:
            swept.append(name)
    return named if named in swept else next(iter(swept), "")
