"""What a report contains about a load that rises: frozen data. Made by `weighbridge.analysis.curves`."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from weighbridge.model.level import Level
from weighbridge.statistics import Better, Cost, Interval


@dataclass(frozen=True, slots=True)
class Broke:
    """How many trials of one environment at one level broke under its load, of those that had a result, and why."""

    environment: str
    trials: int
    of: int
    reason: str
    """What the trials said, one sentence; the most frequent where they said several things."""
    lost: int
    """Blocks that have no value because of it."""
    measured: int
    """Blocks that have one all the same."""

    @property
    def always(self) -> bool:
        """Whether no trial gave a value."""
        return self.trials == self.of


@dataclass(frozen=True, slots=True)
class LoadLevel:
    """One level of the load: its number, as it was written, and the cell's key and label."""

    load: float
    text: str
    level: Level
    label: str


@dataclass(frozen=True, slots=True)
class Point:
    """One environment at one level on one metric. Values are in the metric's unit."""

    level: LoadLevel
    blocks: int
    """Number of blocks that have a value."""
    value: Interval | None
    """The median over the blocks with the 95 % interval of the typical value (infinite limits for a single block);
    None where there is no value."""
    broke: Broke | None


@dataclass(frozen=True, slots=True)
class Peak:
    """The level with an environment's highest median, and how sure that level is."""

    level: LoadLevel
    value: float
    """The median there, in the metric's unit."""
    highest: int
    """In how many blocks this level was the highest."""
    of: int
    """Blocks in which every level has a result; 0 where there is none, and nothing is known of how sure it is."""
    others: tuple[LoadLevel, ...]
    """The other levels that were the highest in some block, ascending."""
    edge: Literal["", "lowest", "highest"]
    """Whether it is the first or the last level with values, so that the true peak may lie beyond."""


@dataclass(frozen=True, slots=True)
class EnvironmentCurve:
    """One environment's values of one metric over the levels."""

    environment: str
    points: tuple[Point, ...]
    """One for each level, ascending, also where there is no value."""
    peak: Peak | None
    """Of a throughput, its own; of other metrics, that of the throughput they belong to."""


@dataclass(frozen=True, slots=True)
class WholeCost:
    """What an environment costs over the whole curve, paired by block. A family of its own: no verdict."""

    environment: str
    peak_cost: Cost | None
    """Its highest value in a block against the baseline's, each at its own level; only of a throughput."""
    mean: Cost | None
    """Ratio of the geometric means over `levels`: of the areas under the curves where both axes are logarithmic."""
    levels: int
    """How many levels `mean` is about: those at which neither of the two broke."""


@dataclass(frozen=True, slots=True)
class MetricCurve:
    """One metric over the levels, in every environment."""

    metric: str
    unit: str
    better: Better
    curves: tuple[EnvironmentCurve, ...]
    """In the study's order."""
    whole: tuple[WholeCost, ...]
    """Every environment but the baseline, the A/A arm last."""

    @property
    def throughput(self) -> bool:
        """Whether it is a rate of which more is better: what a peak is the highest of."""
        return is_throughput(self.unit, self.better)

    @property
    def nothing(self) -> bool:
        """Whether it is zero everywhere, as most counts of errors are."""
        values = [point.value for curve in self.curves for point in curve.points if point.value is not None]
        return all(value.estimate == value.high == 0 for value in values)


def is_throughput(unit: str, better: Better) -> bool:
    """Whether a metric is a rate of which more is better."""
    return better == "higher" and unit.endswith("/s")


@dataclass(frozen=True, slots=True)
class ErrorsFrom:
    """Where errors begin in one environment, counted in trials that gave a measurement all the same."""

    first: LoadLevel
    """The lowest level at which some block has errors."""
    blocks: int
    of: int
    """In how many blocks of that level."""
    most: LoadLevel | None
    """The lowest level at which the median block has errors; None where none does."""


@dataclass(frozen=True, slots=True)
class LoadSweep:
    """One workload under a rising load; other factors than the load are fixed in it."""

    workload: str
    load: str
    """The option that is the load."""
    fixed: str
    """The other factors: ``content=page``; empty where the load alone is swept."""
    levels: tuple[LoadLevel, ...]
    """Ascending."""
    metrics: tuple[MetricCurve, ...]
    """What the workload measures, in its order; resource use is none of it."""
    errors: Mapping[str, ErrorsFrom]
    """By environment; absent where no errors were counted."""
    broke: Mapping[str, tuple[tuple[LoadLevel, Broke], ...]]
    """By environment the levels at which it broke; absent where it did not."""

    @property
    def title(self) -> str:
        """The workload with its other factors."""
        return f"{self.workload} ({self.fixed})" if self.fixed else self.workload

    @property
    def headline(self) -> MetricCurve | None:
        """Its first metric; None where every trial broke."""
        return self.metrics[0] if self.metrics else None

    @property
    def throughput(self) -> MetricCurve | None:
        """Its first throughput, which has the peak; None where there is none."""
        return next((each for each in self.metrics if each.throughput), None)
