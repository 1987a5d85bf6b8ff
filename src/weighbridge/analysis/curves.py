"""A rising load: what each environment reaches at each level, where it is highest, has errors, and broke.

**A point** is the median over the blocks' values, with the 95 % interval of the typical value: the exact signed-rank
interval (below ten blocks Student's t), of the logarithms where all values are positive, as for costs. It spans what
differs between blocks too, so that two bands may overlap where the paired cost is clear.

**The peak** is the level with the highest median. The median has an uncertainty, and so has the peak: it is told in
how many blocks that level was the highest, and which other levels were the highest in some block.

**The ratio of peaks** is paired by block: the environment's highest value in it against the baseline's, each at
whichever level that was. A level that broke has no value, and so is not the highest; a block counts if both have a
result, measured or broken, at every level.

**Over all levels**: per block the geometric mean over those levels at which neither broke in any block; its ratio is
that of the areas under the two curves where values are logarithmic and the levels stand at even distances.

A block that was run again counts with its first result (see `weighbridge.analysis.overload`), for the two costs with
its first attempt in which both sides have one.
"""

import json
import re
from collections.abc import Iterable, Mapping, Sequence

from weighbridge.analysis.curve_points import Results, curves_of, errors_from, whole_costs
from weighbridge.analysis.overload import Place, without_retries
from weighbridge.analysis.plan import Plan
from weighbridge.analysis.results import MetricReport
from weighbridge.analysis.sweep import (
    Broke,
    EnvironmentCurve,
    ErrorsFrom,
    LoadLevel,
    LoadSweep,
    MetricCurve,
    is_throughput,
)
from weighbridge.analysis.trial_row import TrialRow
from weighbridge.model.level import Level
from weighbridge.model.quantity import RATE_UNITS, SIZE_UNITS, TIME_UNITS
from weighbridge.statistics import scale_of
from weighbridge.store.run import RunStore

LEAST = 3
"""Levels from which there is a curve to be drawn."""

ERRORS = "errors"
"""How the names of metrics begin that count what went wrong in a trial that gave a measurement all the same."""

_NUMBER = re.compile(r"\s*([0-9]+(?:\.[0-9]+)?)\s*(\S*)\s*")


def load_sweeps(
    store: RunStore,
    trials: Iterable[TrialRow],
    reports: Sequence[MetricReport],
    plan: Plan,
    broken: Mapping[Place, Broke],
) -> tuple[LoadSweep, ...]:
    """Give every workload that names its load, apart for each level of its other factors, in the study's order."""
    loads: dict[str, str] = json.loads(store.info().get("loads", "{}"))
    cells = [(workload, level, label) for workload, level, _, label, _ in store.cells()]
    rows = without_retries(trials)
    found = []
    for workload, fixed, levels in _swept(cells, loads):
        keys = {level.level for level in levels}
        mine = [row for row in rows if row.workload == workload and row.level in keys and (row.ok or row.broke)]
        about = [each for each in reports if each.workload == workload and each.level in keys]
        results = Results(levels, tuple(mine))
        metrics = _metrics(results, [each for each in about if not each.resource_use], plan, workload, broken)
        found.append(
            LoadSweep(
                workload, loads[workload], fixed, levels, metrics,
                _errors(results, metrics, plan.environments), _broke(levels, workload, plan.environments, broken),
            )
        )  # fmt: skip
    return tuple(found)


def numbers(texts: Sequence[str]) -> list[float] | None:
    """Give levels as numbers, those with units in the base unit; None where one is no number, or units differ."""
    known = {**TIME_UNITS, **SIZE_UNITS, **RATE_UNITS}
    parts = [found.groups() for text in texts if (found := _NUMBER.fullmatch(text))]
    units = {unit for _, unit in parts}
    if len(parts) < len(texts) or (len(units) > 1 and not units <= set(known)):
        return None
    return [float(number) * known.get(unit, 1) for number, unit in parts]


def _swept(
    cells: Sequence[tuple[str, Level, str]], loads: Mapping[str, str]
) -> list[tuple[str, str, tuple[LoadLevel, ...]]]:
    """The workloads that name their load, with their other factors and the levels, where these are enough."""
    groups: dict[tuple[str, str], list[tuple[str, Level, str]]] = {}
    for workload, level, label in cells:
        load = loads.get(workload, "")
        if (value := level.value_of(load)) is not None:
            groups.setdefault((workload, level.without(load).label), []).append((value, level, label))
    found = []
    for (workload, rest), mine in groups.items():
        values = numbers([text for text, _, _ in mine])
        if values is not None and len(set(values)) >= LEAST:
            made = [LoadLevel(value, *each) for value, each in zip(values, mine, strict=True)]
            found.append((workload, rest, tuple(sorted(made, key=lambda each: each.load))))
    return found


def _metrics(
    results: Results, reports: Sequence[MetricReport], plan: Plan, workload: str, broken: Mapping[Place, Broke]
) -> tuple[MetricCurve, ...]:
    """Each metric's curves. A latency's peak is that of the throughput named before it, else of the first one."""
    units = {each.metric: (each.unit, each.better) for each in reports}
    breaks = {(level, name): each for (mine, level, name), each in broken.items() if mine == workload}
    rates = {
        metric: curves_of(results, metric, plan.environments, breaks, throughput=True)
        for metric, of in units.items()
        if is_throughput(*of)
    }
    found: list[MetricCurve] = []
    peaks: tuple[EnvironmentCurve, ...] = next(iter(rates.values()), ())
    for metric, (unit, better) in units.items():
        peaks = rates.get(metric, peaks)
        of = () if scale_of(unit) == "difference" else peaks  # a count has no peak
        curves = rates.get(metric) or curves_of(results, metric, plan.environments, breaks, throughput=False, of=of)
        whole = whole_costs(results, metric, unit, better, plan)
        found.append(MetricCurve(metric, unit, better, curves, whole))
    return tuple(found)


def _errors(results: Results, metrics: Sequence[MetricCurve], environments: Sequence[str]) -> dict[str, ErrorsFrom]:
    counts = [each.metric for each in metrics if each.metric.startswith(ERRORS) and each.better == "lower"]
    found = {name: errors_from(results, name, counts) for name in environments}
    return {name: each for name, each in found.items() if each is not None}


def _broke(
    levels: Sequence[LoadLevel], workload: str, environments: Sequence[str], broken: Mapping[Place, Broke]
) -> dict[str, tuple[tuple[LoadLevel, Broke], ...]]:
    found = {
        name: tuple(
            (level, each) for level in levels if (each := broken.get((workload, level.level, name))) is not None
        )
        for name in environments
    }
    return {name: each for name, each in found.items() if each}
