"""Changes between two fleets, machine by machine, and whether pairs disturb each other.

The change of a machine's cost is judged like the change between two runs (`features/gate/between_runs.py`), with
Holm's correction over the machines (or pairs) and the headline costs together. `statistics.fleet` computes the mean
change over all machines with its interval, and finds machines that changed differently from the others. It does so
for costs and for the baseline's own values. Own values have no verdict because two sessions are not interleaved.

**Alone against together** compares a pair that was measured alone with the same pair in a round. Pairs of a round
disturb each other if the mean over the pairs lies beyond the session allowance.
"""

import math
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from weighbridge.analysis.resources import negligible
from weighbridge.errors import RunDirectoryError
from weighbridge.features.fleets.analysis import (
    FleetMetric,
    FleetResult,
    FleetRun,
    RunEffect,
    WhyNotCounted,
    as_differences,
    common_scale,
    on_scale,
    other_setting,
)
from weighbridge.features.fleets.statistics import FleetCost, MachineEffect, PairEffect, RunCost, fleet_cost
from weighbridge.features.fleets.unit import Purpose
from weighbridge.features.gate import between
from weighbridge.features.gate.compared_run import FactChange, FactKind
from weighbridge.model.address import MetricId
from weighbridge.model.measurement import scale_of
from weighbridge.statistics import Cost, Interval, Sample, Verdict, looks_share
from weighbridge.statistics.contrast import OF_TWO
from weighbridge.statistics.sample_size import MIN_BLOCKS_VERDICT
from weighbridge.statistics.verdicts import ALPHA, adjusted


@dataclass(frozen=True, slots=True)
class UnitChange:
    """A machine (or pair) in two runs: by what its cost, or its own value, changed from the first to the second."""

    machines: tuple[str, ...]
    first: RunEffect
    second: RunEffect
    shift: Interval
    """The difference of the means on the scale of the effects, with its 95% interval; positive is worse."""
    change: between.CostShift | None
    """None of own values."""
    adjusted_p: float | None = None
    verdict: Verdict = "inconclusive"
    """The verdict; own values have none and are always "inconclusive"."""


@dataclass(frozen=True, slots=True)
class FleetShift:
    """One metric's changes over the machines (or pairs) that both sides have."""

    metric: FleetMetric
    rows: tuple[UnitChange, ...]
    fleet: FleetCost | None
    """The changes over the machines: what all changed by (``typical``), and who changed unlike the others."""
    judged: Interval | None
    """The typical change with the interval that the judgement goes by: corrected for the number of metrics."""
    allowance: float
    """The largest difference between two sessions of the same thing, on the scale of the effects."""
    family: int

    @property
    def proven(self) -> bool:
        """Whether all machines together changed by more than two sessions of the same thing can differ."""
        return self.judged is not None and (self.judged.low > self.allowance or self.judged.high < -self.allowance)

    @property
    def different(self) -> tuple[UnitChange, ...]:
        """The machines (or pairs) that changed."""
        return tuple(each for each in self.rows if each.verdict == "different")

    @property
    def unlike(self) -> tuple[MachineEffect | PairEffect, ...]:
        """The machines that changed differently from the others, then pairs that differ from their machines.

        Pairs without a common machine are treated as single machines, each by its name.
        """
        metric = replace(self.metric, fleet=self.fleet, family=self.family)
        return (*metric.outlier_machines, *metric.outlier_pairs)


@dataclass(frozen=True, slots=True)
class FleetsCompared:
    """A fleet against an earlier one."""

    before: FleetResult
    after: FleetResult
    shifts: tuple[FleetShift, ...]
    """The changes of the headline costs, then of the baseline's own values."""
    only_before: tuple[str, ...]
    """The machines, or pairs, that only the earlier fleet has."""
    only_after: tuple[str, ...]
    not_compared: tuple["NotCompared", ...]
    """The metrics of both fleets whose change cannot be computed."""
    other_ids: tuple[str, ...] = ()
    """The machines of both fleets whose machine id differs: another machine with its name, or a new installation."""

    def facts(self, machine: str) -> tuple[FactChange, ...]:
        """Return the facts of a machine that are not the same in both fleets."""
        was, now = self.before.machines.get(machine, {}), self.after.machines.get(machine, {})
        return tuple(
            FactChange(FactKind.MACHINE, key, was.get(key, ""), now.get(key, ""))
            for key in dict.fromkeys((*was, *now))
            if was.get(key, "") != now.get(key, "")
        )


@dataclass(frozen=True, slots=True)
class NotCompared:
    """A metric of two fleets that the earlier one has in another unit."""

    metric: FleetMetric
    before: FleetMetric

    @property
    def reason(self) -> Literal["unit"]:
        """In what the two differ."""
        return "unit"


PAIR = " → "
"""Between the client's and the server's machine."""


def effect_name(effect: MachineEffect | PairEffect) -> str:
    """Return what the machine, or the pair, of an effect is called."""
    return effect.machine if isinstance(effect, MachineEffect) else unit_name(effect.machines)


def unit_name(machines: Sequence[str]) -> str:
    """Return what a machine, or a pair, is called: ``n1 → n2``."""
    return PAIR.join(machines)


def machines_of(name: str) -> list[str]:
    """Return the machines of a unit's name."""
    return name.split(PAIR)


def compare_fleets(
    after: FleetResult, before: FleetResult, allowance: float = between.SESSION_ALLOWANCE
) -> FleetsCompared:
    """Compare a fleet with an earlier one of the same study.

    Raises RunDirectoryError if they have different studies or no machine in common.
    """
    names = f"{after.folder} and {before.folder}"
    if (after.study, after.baseline, after.size) != (before.study, before.baseline, before.size):
        raise RunDirectoryError(
            f"{names} belong to different studies, {after.study} and {before.study}: compare one study"
        )
    if (change := other_setting(before.runs[0], after.runs[0])) is not None:
        what = f"{change.name} {change.setting}".strip()
        raise RunDirectoryError(f"{names} are of different studies (other {what}): compare one study")
    sides = [{unit_name(run.machines): None for run in fleet.runs if _usual(run)} for fleet in (before, after)]
    if not sides[0].keys() & sides[1].keys():
        what = "machine" if after.size == 1 else "pair"
        raise RunDirectoryError(f"{names} have no {what} in common: compare fleets of the same machines")
    shifts = _shifts(before, after, _usual, _usual, allowance)
    only = [tuple(name for name in sides[one] if name not in sides[1 - one]) for one in (0, 1)]
    earlier = {_key(each): each for each in before.metrics}
    both = [NotCompared(each, earlier[_key(each)]) for each in after.metrics if _key(each) in earlier]
    not_compared = tuple(each for each in both if not _comparable(each.before, each.metric))
    ids = [{name: of for run in fleet.runs for name, (_, of) in zip(run.machines, run.nodes, strict=True)}
           for fleet in (before, after)]  # fmt: skip
    other_ids = tuple(name for name, now in ids[1].items() if now and ids[0].get(name) and ids[0][name] != now)
    return FleetsCompared(before, after, shifts, only[0], only[1], not_compared, other_ids)


def controls(fleet: FleetResult, allowance: float = between.SESSION_ALLOWANCE) -> tuple[FleetShift, ...]:
    """Return the change of each metric from alone to together, for pairs measured alone; empty if none were."""
    return _shifts(fleet, fleet, lambda run: run.purpose is Purpose.ALONE, _usual, allowance)


def _usual(run: FleetRun) -> bool:
    return run.purpose is Purpose.TOGETHER


def _shifts(
    first: FleetResult,
    second: FleetResult,
    in_first: Callable[[FleetRun], bool],
    in_second: Callable[[FleetRun], bool],
    allowance: float,
) -> tuple[FleetShift, ...]:
    later = {_key(each): each for each in second.metrics}
    shifts = []
    for metric in first.metrics:
        other = later.get(_key(metric))
        if other is None or not _comparable(metric, other):
            continue
        one = metric
        if metric.scale != other.scale:  # only one of the fleets has values that are not positive
            one, other = as_differences(first, metric), as_differences(second, other)
        befores, afters = _by_unit(one, in_first), _by_unit(other, in_second)
        rows = [
            row
            for machines, before in befores.items()
            if machines in afters and (row := _row(one, before, afters[machines], allowance, second.margin))
        ]
        if rows:
            allowed = math.log1p(allowance) if one.scale == "ratio" else 0.0
            shifts.append(FleetShift(other, tuple(rows), None, None, allowed, 1))
    shifts = _after_holm(shifts)
    return tuple(_over_fleet(each, len(shifts), on_scale(each.metric, second.runs, second.margin)) for each in shifts)


def _comparable(metric: FleetMetric, other: FleetMetric) -> bool:
    return metric.report.unit == other.report.unit


def _key(metric: FleetMetric) -> tuple[MetricId, str, bool]:
    report = metric.report
    return report.metric_id, metric.environment, metric.is_own_value


def _by_unit(metric: FleetMetric, which: Callable[[FleetRun], bool]) -> dict[tuple[str, ...], RunEffect]:
    """Return the first run of each machine or pair that can be compared."""
    units: dict[tuple[str, ...], RunEffect] = {}
    for each in metric.runs:
        if which(each.run) and each.effect is not None and each.blocks >= MIN_BLOCKS_VERDICT:
            units.setdefault(each.run.machines, each)
    return units


def _row(
    metric: FleetMetric, first: RunEffect, second: RunEffect, allowance: float, margin: float
) -> UnitChange | None:
    assert first.effect is not None and second.effect is not None
    shift = _shift(first, second)
    if metric.is_own_value:
        return UnitChange(first.run.machines, first, second, shift, None)
    key, environment, _ = _key(metric)
    runs = first.run, second.run
    reports, sides = [run.reports[key] for run in runs], [run.sides[key, environment] for run in runs]
    if (reports[0].unit, reports[0].better) != (reports[1].unit, reports[1].better):
        return None
    on = common_scale(reports[0], sides)
    one, other = (OF_TWO.effects(each, on) for each in sides)
    controls_of = [_control(run, key) for run in runs]
    change = between.change(
        one, other, better=reports[0].better, scale=on, equivalence=margin,
        looks=min((run.looks for run in runs), key=looks_share), allowance=allowance,
        floor=between.joint_floor(controls_of[0], controls_of[1], on),
    )  # fmt: skip
    return UnitChange(first.run.machines, first, second, shift, change)


def _control(run: FleetRun, key: MetricId) -> Cost | None:
    """Return the A/A arm's cost in a run."""
    sides = run.sides.get((key, run.aa_arm)) if run.aa_arm is not None else None
    if sides is None or not sides[0]:
        return None
    report = run.reports[key]
    return OF_TWO.cost(sides, better=report.better, looks=run.looks, scale=scale_of(report.metric, report.unit))


def _shift(first: RunEffect, second: RunEffect) -> Interval:
    """Return the difference of two means with Welch's 95% interval."""
    one, other = (
        Sample(each.effect.estimate, each.standard_error * math.sqrt(each.blocks), each.blocks)
        for each in (first, second)
        if each.effect is not None
    )
    interval = OF_TWO.unblocked((one, other), 0.95)
    return interval or Interval(*[other.mean - one.mean] * 3)


def _after_holm(shifts: Sequence[FleetShift]) -> list[FleetShift]:
    """Return the changes of costs with their verdicts, after Holm over all of them."""
    p_values = [row.change.p_value if row.change is not None else None for each in shifts for row in each.rows]
    corrected = iter(adjusted(p_values))
    return [
        replace(each, rows=tuple(_judge(each.metric, row, next(corrected)) for row in each.rows)) for each in shifts
    ]


def _judge(metric: FleetMetric, row: UnitChange, adjusted_p: float | None) -> UnitChange:
    if row.change is None:
        return row
    key, environment, _ = _key(metric)
    runs = row.first.run, row.second.run
    untrusted = any(run.trusted is False for run in runs)
    names = (metric.environment, runs[0].baseline)
    alike = all(runs[0].disturbances[name].alike(runs[1].disturbances[name]) for name in names)
    whys = [run.no_cost.get((key, environment)) for run in runs]
    verdict = between.verdict(
        row.change, adjusted_p, never_equivalent=untrusted or WhyNotCounted.NO_PATH in whys,
        never_different=untrusted or not alike or negligible(metric.report.metric, row.change.typical)
        or WhyNotCounted.NO_PATH in whys,
        hidden=WhyNotCounted.HIDDEN in whys,
    )  # fmt: skip
    return replace(row, adjusted_p=adjusted_p, verdict=verdict)


def _over_fleet(shift: FleetShift, family: int, margin: float) -> FleetShift:
    """Return the changes with their mean over all machines with trusted runs in both fleets."""
    rows = [row for row in shift.rows if _whole(row)]
    times = Counter(machine for row in rows for machine in row.machines)
    shared = any(number > 1 for number in times.values())  # a machine that changed, changed each of its pairs
    measured = [
        RunCost(
            row.machines if shared else (unit_name(row.machines),),
            row.shift.estimate, math.hypot(*_errors(row)), min(_blocks(row)),
        )
        for row in rows
    ]  # fmt: skip
    fleet = fleet_cost(measured, margin=margin) if measured else None
    judged = fleet_cost(measured, margin=margin, confidence=1 - ALPHA / family) if fleet is not None else None
    return replace(shift, fleet=fleet, judged=judged.typical if judged is not None else None, family=family)


def _whole(row: UnitChange) -> bool:
    """Return whether nothing but being a control keeps either run from being counted."""
    return all(each.reason in (None, WhyNotCounted.ALONE) for each in (row.first, row.second))


def _errors(row: UnitChange) -> Iterable[float]:
    return (each.standard_error for each in (row.first, row.second))


def _blocks(row: UnitChange) -> Iterable[int]:
    return (each.blocks for each in (row.first, row.second))
