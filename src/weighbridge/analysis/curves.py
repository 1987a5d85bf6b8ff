"""Load curves: the results of each environment at each level of a rising load, with peaks, errors and breakage.

**A point** is the median over the blocks, with the 95% interval of the typical value. This is the exact signed-rank
interval (Student's t below ten blocks), of logarithms if all values are positive. It includes differences between
blocks, so two bands can overlap although the paired cost is clear.

**The peak** is the level with the highest median. It is uncertain because the median is. Reports therefore show how
many blocks had their highest value at that level, and which other levels were the highest in some block.

**The ratio of peaks** is paired by block: the environment's highest value in a block against the baseline's, each at
its own level. A level that broke has no value and cannot be the highest. A block counts if both have a result,
measured or broken, at every level.

**The mean over all levels** is the geometric mean of a block over the levels at which neither broke in any block. If
values are logarithmic and the levels are evenly spaced, its ratio is the ratio of the areas under the curves.

A repeated block counts with its first result (see `weighbridge.analysis.overload`). For the two costs, it counts with
the first attempt that has a result on both sides.
"""

import json
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import fmean, median
from typing import Literal

from weighbridge.analysis.overload import Breakage, without_retries
from weighbridge.analysis.plan import Comparisons
from weighbridge.analysis.trial_row import TrialRow
from weighbridge.model.address import ArmId, CellId, MetricId, grouped
from weighbridge.model.measurement import scale_of
from weighbridge.model.quantity import RATE_UNITS, SIZE_UNITS, TIME_UNITS
from weighbridge.statistics import Better, Contrast, Cost, Interval, typical_interval
from weighbridge.store.run import RunStore

Units = Mapping[MetricId, tuple[str, Better]]
"""The unit of each metric, and the direction that is better."""


@dataclass(frozen=True, slots=True)
class SweptLevel:
    """One level of the load: its number, its text in the study, and its cell."""

    load: float
    text: str
    cell: CellId


@dataclass(frozen=True, slots=True)
class CurvePoint:
    """One environment's point on one metric at one level, in the metric's unit."""

    level: SweptLevel
    blocks: int
    """Number of blocks that have a value."""
    value: Interval | None
    """The median over the blocks with the 95% interval of the typical value; None without a value."""
    broke: Breakage | None


@dataclass(frozen=True, slots=True)
class CurvePeak:
    """The level with an environment's highest median, and how certain that level is."""

    level: SweptLevel
    value: float
    """The median at that level, in the metric's unit."""
    highest: int
    """The number of blocks with their highest value at this level."""
    total: int
    """The number of blocks with a result at every level; 0 if there are none and the certainty is unknown."""
    others: tuple[SweptLevel, ...]
    """The other levels that were the highest in some block, ascending."""
    edge: Literal["", "lowest", "highest"]
    """Whether this is the first or last level with values, so that the true peak can lie beyond."""


@dataclass(frozen=True, slots=True)
class EnvironmentCurve:
    """One environment's values of one metric over the levels."""

    environment: str
    points: tuple[CurvePoint, ...]
    """One point for each level, ascending, including levels without a value."""
    peak: CurvePeak | None
    """A throughput's own peak; other metrics have the peak of the throughput that they belong to."""


@dataclass(frozen=True, slots=True)
class WholeCost:
    """The cost of an environment over the whole curve, paired by block. It has no verdict."""

    environment: str
    peak_cost: Cost | None
    """The environment's highest value in a block against the baseline's, at any level; only for throughputs."""
    mean: Cost | None
    """The ratio of the geometric means over `levels`; on two logarithmic axes, of the areas under the curves."""
    levels: int
    """The number of levels in `mean`, at which neither of the two broke."""


@dataclass(frozen=True, slots=True)
class MetricCurve:
    """One metric over the levels, in every environment."""

    metric: str
    unit: str
    better: Better
    curves: tuple[EnvironmentCurve, ...]
    """The curves in the study's order."""
    whole_costs: tuple[WholeCost, ...]
    """The costs of all environments but the baseline, the A/A arm last."""

    @property
    def throughput(self) -> bool:
        """Whether this is a rate for which more is better, so that it has a peak."""
        return is_throughput(self.unit, self.better)

    @property
    def nothing(self) -> bool:
        """Whether all values are zero, as for most counts of errors."""
        values = [point.value for curve in self.curves for point in curve.points if point.value is not None]
        return all(value.estimate == value.high == 0 for value in values)


def is_throughput(unit: str, better: Better) -> bool:
    """Return whether a metric is a rate for which more is better."""
    return better == "higher" and unit.endswith("/s")


@dataclass(frozen=True, slots=True)
class ErrorsFrom:
    """The load from which one environment has errors, counted in trials that still gave a measurement."""

    first: SweptLevel
    """The lowest level at which some block has errors."""
    blocks: int
    total: int
    """``blocks`` out of ``total`` had errors at that level."""
    most: SweptLevel | None
    """The lowest level at which the median block has errors; None if there is none."""


@dataclass(frozen=True, slots=True)
class LoadSweep:
    """One workload under a rising load; all other factors are fixed."""

    workload: str
    load: str
    """The option that is the load."""
    fixed: str
    """The other factors, such as ``content=page``; empty if only the load varies."""
    levels: tuple[SweptLevel, ...]
    """The levels, ascending."""
    metrics: tuple[MetricCurve, ...]
    """The workload's own metrics in its order, without resource use."""
    errors: Mapping[str, ErrorsFrom]
    """Errors by environment; an environment without counted errors is absent."""
    broke: Mapping[str, tuple[tuple[SweptLevel, Breakage], ...]]
    """For each environment that broke, the levels at which it did."""

    @property
    def title(self) -> str:
        """The name of the workload with its other factors."""
        return f"{self.workload} ({self.fixed})" if self.fixed else self.workload

    @property
    def headline(self) -> MetricCurve | None:
        """The first metric; None if every trial broke."""
        return self.metrics[0] if self.metrics else None

    @property
    def throughput(self) -> MetricCurve | None:
        """The first throughput, which has the peak; None if there is none."""
        return next((each for each in self.metrics if each.throughput), None)


@dataclass(slots=True)
class Results:
    """The trials of one sweep with a result, measured or broken, by level, block, attempt and environment."""

    levels: tuple[SweptLevel, ...]
    trials: tuple[TrialRow, ...]
    blocks: list[int] = field(default_factory=list)
    """All blocks, ascending."""
    _by: dict[tuple[CellId, int], dict[int, dict[str, TrialRow]]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for row in self.trials:
            self._by.setdefault((row.cell, row.block), {}).setdefault(row.attempt, {})[row.environment] = row
        self.blocks = sorted({block for _, block in self._by})

    def first(self, level: SweptLevel, block: int, *environments: str) -> tuple[TrialRow, ...] | None:
        """Return the trials of a block's first attempt with a result in all these environments; None without one."""
        attempts = self._by.get((level.cell, block), {})
        for attempt in sorted(attempts):
            if all(name in attempts[attempt] for name in environments):
                return tuple(attempts[attempt][name] for name in environments)
        return None

    def has_whole_block(self, level: SweptLevel, contrast: Contrast) -> bool:
        """Return whether some block of a level has a result in all arms of a contrast."""
        return any(self.first(level, block, *contrast.arms) for block in self.blocks)

    def measured(self, level: SweptLevel, environment: str, metric: str) -> list[float]:
        """Return an environment's values at a level, one per block."""
        rows = [trials[0] for block in self.blocks if (trials := self.first(level, block, environment))]
        return [row.values[metric] for row in rows if metric in row.values]


# -- points and peaks ------------------------------------------------------------------------------


def curves_of(
    results: Results,
    metric: str,
    environments: Sequence[str],
    broken: Mapping[ArmId, Breakage],
    *,
    throughput: bool,
    of: Sequence[EnvironmentCurve] = (),
) -> tuple[EnvironmentCurve, ...]:
    """Return the curve of every environment that has a result.

    A throughput has its own peaks. Other metrics take them from the curves in ``of``.
    """
    others = {each.environment: each.peak for each in of}
    curves = []
    for name in environments:
        if not any(row.environment == name for row in results.trials):
            continue
        points = []
        for level in results.levels:
            values = results.measured(level, name, metric)
            band = typical_interval(values) if values else None
            points.append(CurvePoint(level, len(values), band, broken.get(ArmId(level.cell, name))))
        curve = EnvironmentCurve(name, tuple(points), None)
        peak = _peak(results, metric, curve) if throughput else _transfer_peak(others.get(name), curve)
        curves.append(replace(curve, peak=peak))
    return tuple(curves)


def _peak(results: Results, metric: str, curve: EnvironmentCurve) -> CurvePeak | None:
    """Return the level with the highest median, among the levels that broke in less than half of the trials."""
    bearing = [each for each in curve.points if each.broke is None or 2 * each.broke.trials < each.broke.total]
    medians = [(each.value.estimate, each.level) for each in bearing if each.value is not None]
    if not medians:
        return None
    value, level = max(medians, key=lambda each: each[0])
    tops = [top for block in results.blocks if (top := _top(results, metric, curve, block)) is not None]
    edge: Literal["", "lowest", "highest"] = ""
    if level == medians[-1][1]:
        edge = "highest"
    elif level == medians[0][1]:
        edge = "lowest"
    others = sorted({top for top in tops if top != level}, key=lambda each: each.load)
    return CurvePeak(level, value, tops.count(level), len(tops), tuple(others), edge)


def _top(results: Results, metric: str, curve: EnvironmentCurve, block: int) -> SweptLevel | None:
    """Return the level with a block's highest value; None unless every level has a result and one has a value."""
    values: list[tuple[float, SweptLevel]] = []
    for point in curve.points:
        if point.value is None and point.broke is None:
            continue  # a level that this environment was never measured at
        trials = results.first(point.level, block, curve.environment)
        if trials is None:
            return None
        if metric in trials[0].values:
            values.append((trials[0].values[metric], point.level))
    return max(values, key=lambda each: each[0])[1] if values else None


def _transfer_peak(peak: CurvePeak | None, curve: EnvironmentCurve) -> CurvePeak | None:
    """Return another metric's peak on this curve: its level with the value here."""
    point = next((each for each in curve.points if peak is not None and each.level == peak.level), None)
    return replace(peak, value=point.value.estimate) if peak and point and point.value else None


# -- errors ----------------------------------------------------------------------------------------


def errors_from(results: Results, environment: str, counts: Sequence[str]) -> ErrorsFrom | None:
    """Return the lowest levels at which some block, and the median block, had errors of any kind."""
    first: tuple[SweptLevel, int, int] | None = None
    for level in results.levels:
        rows = [trials[0] for block in results.blocks if (trials := results.first(level, block, environment))]
        totals = [sum(row.values.get(each, 0.0) for each in counts) for row in rows if row.ok]
        if first is None and any(totals):
            first = (level, sum(total > 0 for total in totals), len(totals))
        if first is not None and totals and median(totals) > 0:
            return ErrorsFrom(*first, level)
    return ErrorsFrom(*first, None) if first else None


# -- the whole curve -------------------------------------------------------------------------------


def whole_costs(results: Results, metric: str, unit: str, better: Better, plan: Comparisons) -> tuple[WholeCost, ...]:
    """Return each environment's costs over the whole curve against the baseline; none for counts and shares."""
    if scale_of(metric, unit) == "difference":
        return ()
    costs = []
    for name in plan.compared:
        contrast = Contrast.between(name, plan.against(name))
        levels = [level for level in results.levels if results.has_whole_block(level, contrast)]
        unbroken = [level for level in levels if not _breaks(results, level, contrast)]
        peaks = _peaks(results, levels, metric, contrast) if is_throughput(unit, better) else []
        means = _means(results, unbroken, metric, contrast) if len(unbroken) > 1 else []
        peak_cost, mean = (
            contrast.cost([*zip(*blocks, strict=True)], better=better, looks=plan.looks) if blocks else None
            for blocks in (peaks, means)
        )
        costs.append(WholeCost(name, peak_cost, mean, len(unbroken)))
    return tuple(costs)


_Blocks = list[tuple[float, ...]]
"""One value of each arm of a contrast, block by block."""


def _breaks(results: Results, level: SweptLevel, contrast: Contrast) -> bool:
    return any(row.cell == level.cell and row.broke and row.environment in contrast.arms for row in results.trials)


def _peaks(results: Results, levels: Sequence[SweptLevel], metric: str, contrast: Contrast) -> _Blocks:
    """Return the highest value of each arm in each block with a result at every level."""
    peaks: _Blocks = []
    for block in results.blocks:
        rows = [results.first(level, block, *contrast.arms) for level in levels]
        complete = [each for each in rows if each is not None]
        arms = [[row.values[metric] for row in arm if metric in row.values] for arm in zip(*complete, strict=True)]
        if arms and len(complete) == len(levels) and all(arms):
            peaks.append(tuple(max(arm) for arm in arms))
    return peaks


def _means(results: Results, levels: Sequence[SweptLevel], metric: str, contrast: Contrast) -> _Blocks:
    """Return the geometric mean over the levels for each block with all values; empty if one is not positive."""
    means: _Blocks = []
    for block in results.blocks:
        rows = [results.first(level, block, *contrast.arms) for level in levels]
        values = [[row.values.get(metric, math.nan) for row in at_level] for at_level in rows if at_level is not None]
        if len(values) < len(levels) or any(math.isnan(value) for at_level in values for value in at_level):
            continue
        if any(value <= 0 for at_level in values for value in at_level):
            return []
        means.append(tuple(math.exp(fmean(math.log(value) for value in arm)) for arm in zip(*values, strict=True)))
    return means


LEAST = 3
"""The fewest levels for a curve."""

ERRORS = "errors"
"""The prefix of metrics that count errors in trials that still gave a measurement."""

_NUMBER = re.compile(r"\s*([0-9]+(?:\.[0-9]+)?)\s*(\S*)\s*")


def load_sweeps(
    store: RunStore,
    trials: Iterable[TrialRow],
    own_metrics: Units,
    plan: Comparisons,
    broken: Mapping[ArmId, Breakage],
) -> tuple[LoadSweep, ...]:
    """Return a sweep for each workload that names its load, and for each level of its other factors, in order."""
    loads: dict[str, str] = json.loads(store.info().get("loads", "{}"))
    cells = [cell.id for cell in store.cells()]
    rows = without_retries(trials)
    sweeps = []
    for workload, fixed, levels in _group_by_load(cells, loads):
        swept = {level.cell for level in levels}
        mine = [row for row in rows if row.cell in swept and (row.ok or row.broke)]
        results = Results(levels, tuple(mine))
        units = {metric.metric: unit for metric, unit in own_metrics.items() if metric.cell in swept}
        metrics = _metrics(results, units, plan, broken)
        sweeps.append(
            LoadSweep(
                workload, loads[workload], fixed, levels, metrics,
                _errors(results, metrics, plan.environments), _broke(levels, plan.environments, broken),
            )
        )  # fmt: skip
    return tuple(sweeps)


def numbers(texts: Sequence[str]) -> list[float] | None:
    """Return levels as numbers in their base unit; None if one is not a number, or if units differ."""
    unit_factors = {**TIME_UNITS, **SIZE_UNITS, **RATE_UNITS}
    parts = [match.groups() for text in texts if (match := _NUMBER.fullmatch(text))]
    units = {unit for _, unit in parts}
    if len(parts) < len(texts) or (len(units) > 1 and not units <= set(unit_factors)):
        return None
    return [float(number) * unit_factors.get(unit, 1) for number, unit in parts]


def _group_by_load(
    cells: Sequence[CellId], loads: Mapping[str, str]
) -> list[tuple[str, str, tuple[SweptLevel, ...]]]:
    """Return workloads that name their load, with their other factors and levels, if there are enough levels."""
    swept = []
    with_load = [cell for cell in cells if cell.level.value_of(loads.get(cell.workload, "")) is not None]
    groups = grouped(with_load, lambda cell: (cell.workload, cell.level.without(loads[cell.workload]).label))
    for (workload, rest), of_group in groups.items():
        texts = [cell.level.factors[loads[workload]] for cell in of_group]
        values = numbers(texts)
        if values is not None and len(set(values)) >= LEAST:
            levels = [SweptLevel(*each) for each in zip(values, texts, of_group, strict=True)]
            swept.append((workload, rest, tuple(sorted(levels, key=lambda each: each.load))))
    return swept


def _metrics(
    results: Results,
    units: Mapping[str, tuple[str, Better]],
    plan: Comparisons,
    broken: Mapping[ArmId, Breakage],
) -> tuple[MetricCurve, ...]:
    """Return each metric's curves. A latency has the peak of the throughput before it, or of the first one."""
    rates = {
        metric: curves_of(results, metric, plan.environments, broken, throughput=True)
        for metric, of in units.items()
        if is_throughput(*of)
    }
    metrics: list[MetricCurve] = []
    peaks: tuple[EnvironmentCurve, ...] = next(iter(rates.values()), ())
    for metric, (unit, better) in units.items():
        peaks = rates.get(metric, peaks)
        of = () if scale_of(metric, unit) == "difference" else peaks  # a count has no peak
        curves = rates.get(metric) or curves_of(results, metric, plan.environments, broken, throughput=False, of=of)
        costs = whole_costs(results, metric, unit, better, plan)
        metrics.append(MetricCurve(metric, unit, better, curves, costs))
    return tuple(metrics)


def _errors(results: Results, metrics: Sequence[MetricCurve], environments: Sequence[str]) -> dict[str, ErrorsFrom]:
    counts = [each.metric for each in metrics if each.metric.startswith(ERRORS) and each.better == "lower"]
    first_errors = {name: errors_from(results, name, counts) for name in environments}
    return {name: each for name, each in first_errors.items() if each is not None}


def _broke(
    levels: Sequence[SweptLevel], environments: Sequence[str], broken: Mapping[ArmId, Breakage]
) -> dict[str, tuple[tuple[SweptLevel, Breakage], ...]]:
    breakages = {
        name: tuple((level, each) for level in levels if (each := broken.get(ArmId(level.cell, name))) is not None)
        for name in environments
    }
    return {name: each for name, each in breakages.items() if each}
