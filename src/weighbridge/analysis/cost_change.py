"""By what one cost changed from one run to another: the figures that `compare` shows and that a gate judges."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from weighbridge.analysis.compared_run import ComparedRun
from weighbridge.analysis.comparisons import Key, paired, scale
from weighbridge.analysis.results import Comparison, MetricReport
from weighbridge.statistics import between
from weighbridge.statistics.sample_size import MIN_BLOCKS_INTERVAL


class NoChange(StrEnum):
    """Why there is no change of a cost although both runs have the comparison."""

    NO_COST = "no-cost"
    """A run has no complete block."""
    BROKE = "broke"
    """In a run the environment or the baseline broke under the load in every block."""
    FEW = "few-blocks"
    """A run has a single block."""
    UNIT = "other-unit"
    """The two runs measured it in different units."""


@dataclass(frozen=True, slots=True)
class CostChange:
    """A change, and what it is made of: each run's effects, block by block."""

    first: Sequence[float]
    second: Sequence[float]
    change: between.Change


def why_no_change(
    reports: tuple[MetricReport, MetricReport], sides: tuple[Comparison, Comparison]
) -> NoChange | None:
    """Give why there is no change of a comparison that both runs have; None where there is one."""
    before, after = reports
    if (before.unit, before.better) != (after.unit, after.better):
        return NoChange.UNIT
    if any(each.broke_instead for each in sides):
        return NoChange.BROKE
    if any(each.cost is None for each in sides):
        return NoChange.NO_COST
    return NoChange.FEW if min(each.blocks for each in sides) < MIN_BLOCKS_INTERVAL else None


def cost_change(
    reports: tuple[MetricReport, MetricReport],
    sides: tuple[Comparison, Comparison],
    runs: tuple[ComparedRun, ComparedRun],
    *,
    looks: int,
    confidence: float = 0.95,
    equivalence: float | None = None,
    allowance: float = between.SESSION_ALLOWANCE,
) -> CostChange:
    """Give the change of a cost that both runs have (`why_no_change` is None).

    It is one of ratios where the metric is compared so and both costs are, else one of differences. An A/A arm has no
    noise floors, as these are made of it.
    """
    before, after = reports
    asked = scale(before.metric, before.unit)
    scales = {side.cost.scale for side in sides if side.cost is not None}
    on = asked or ("ratio" if scales == {"ratio"} else "difference")
    floor = None
    if not sides[0].aa and before.aa is not None and after.aa is not None:
        floor = between.joint_floor(before.aa.cost, after.aa.cost, on)
    key: Key = (before.workload, before.level, before.metric)
    first, second = (
        between.effects(*paired(run.values[key], run.analysis.baseline, side.environment), on)
        for run, side in zip(runs, sides, strict=True)
    )
    change = between.change(
        first, second, better=before.better, scale=on, confidence=confidence, equivalence=equivalence, looks=looks,
        allowance=allowance, floor=floor,
    )  # fmt: skip
    return CostChange(first, second, change)
