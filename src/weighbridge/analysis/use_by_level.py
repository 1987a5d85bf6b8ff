"""Resource use of each trial as one number, and the median over the blocks by level and environment.

CPU, disks and network are means while the measured program ran; memory is the maximum in that time.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from weighbridge.analysis.levels import LevelGroup, LoadLevel, groups_of
from weighbridge.analysis.metered import CPU, HOST, PLACES, QUANTITIES, UNITS, Metered, QuantityId
from weighbridge.analysis.results import Analysis
from weighbridge.analysis.trial_row import TrialRow
from weighbridge.model.flag import FlagCode
from weighbridge.statistics import has_median_interval, median_interval
from weighbridge.store.run import RunStore

GENERATOR = {FlagCode.GENERATOR_SATURATED, FlagCode.GENERATOR_LATE, FlagCode.GENERATOR_TOOK}
"""Flags that mean that the generator was the limit."""


@dataclass(frozen=True, slots=True)
class MedianUse:
    """The median of a quantity over the blocks with its limits; `weighbridge.analysis.metered.UNITS` has its unit."""

    middle: float
    low: float
    high: float
    blocks: int

    @property
    def interval(self) -> bool:
        """Whether the limits are the 95% interval of the median; below six blocks they are the extremes."""
        return has_median_interval(self.blocks)

    @classmethod
    def of(cls, values: Sequence[float]) -> "MedianUse":
        """Return the median, with its limits, of one value per block."""
        interval = median_interval(values)
        return cls(interval.estimate, interval.low, interval.high, len(values))


@dataclass(frozen=True, slots=True)
class UseRow:
    """One environment at one level: its resource use, and the number of its trials with certain flags."""

    level: LoadLevel
    environment: str
    use: Mapping[QuantityId, MedianUse]
    trials: int
    broke: int
    """Trials without a value because the server broke; ``trials`` counts them too."""
    generator: int
    """Trials that the generator limited, and not the server."""
    throttled: Mapping[str, int]
    """Trials whose server (or single program) was throttled by its CPU limit, by place."""

    @property
    def generator_limited(self) -> bool:
        """Whether the generator was the limit in at least half of the trials."""
        return self.trials > 0 and 2 * self.generator >= self.trials


@dataclass(frozen=True, slots=True)
class ByLevel:
    """A workload's resource use over its levels. ``quantities`` are those that any trial has."""

    group: LevelGroup
    quantities: tuple[QuantityId, ...]
    rows: tuple[UseRow, ...]
    """Rows by level, and within a level in the study's order of environments."""


def by_level(store: RunStore, analysis: Analysis) -> list[ByLevel]:
    """Return each workload's use by level; workloads without readings over time are left out."""
    metered = Metered(store)
    workloads = []
    for group in groups_of(store):
        rows = []
        for level in group.levels:
            mine = analysis.trials_of.get(level.cell.label, ())
            for environment in analysis.environments:
                trials = [trial for trial in mine if trial.environment == environment]
                if trials:
                    rows.append(_row(metered, level, trials))
        keys = {key for row in rows for key in row.use}
        if keys:
            workloads.append(ByLevel(group, tuple(sorted(keys, key=_order)), tuple(rows)))
    return workloads


def _row(metered: Metered, level: LoadLevel, trials: Sequence[TrialRow]) -> UseRow:
    values: dict[QuantityId, list[float]] = {}
    for trial in one_a_block(trials):
        for key, value in metered.used(trial.id).items():
            values.setdefault(key, []).append(value)
    results = [trial for trial in trials if trial.ok or trial.outcome == "broke"]
    throttled = {shown: sum(_throttled(trial, role) for trial in results) for role, shown in PLACES.items()}
    return UseRow(
        level, trials[0].environment, {key: MedianUse.of(mine) for key, mine in values.items()}, len(results),
        sum(not trial.ok for trial in results), sum(generator_limited(trial) for trial in results),
        {place: count for place, count in throttled.items() if count and place != PLACES["client"]},
    )  # fmt: skip


def generator_limited(trial: TrialRow) -> bool:
    """Return whether the generator, and not the server, was the limit in a trial."""
    return any(flag.code in GENERATOR for flag in trial.flags)


def _throttled(trial: TrialRow, role: str) -> bool:
    return any((flag.code, flag.where) == (FlagCode.THROTTLED, role) for flag in trial.flags)


def one_a_block(trials: Sequence[TrialRow]) -> list[TrialRow]:
    """Return the first trial of each block that gave a value."""
    return list({trial.block: trial for trial in reversed(trials) if trial.ok}.values())


def _order(key: QuantityId) -> tuple[int, str, int]:
    places = list(PLACES.values())
    place = places.index(key.place) if key.place in places else len(places) + (not key.place.startswith(HOST))
    return place, key.place, QUANTITIES.index(key.quantity)


def unit_of(key: QuantityId) -> str:
    """Return the unit of a quantity's values."""
    return UNITS[key.quantity]


def never(use: ByLevel, key: QuantityId) -> bool:
    """Return whether a quantity was close to zero everywhere, so that a chart of it would show nothing."""
    limit = 0.005 if key.quantity == CPU else 1.0
    return all(row.use[key].high <= limit for row in use.rows if key in row.use)
