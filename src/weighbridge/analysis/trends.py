"""What the order of trials does to results: drift and autocorrelation of series, and the place in a block.

A series is an environment's values of one metric of a workload at a level, in the order in which they ran. A run has
hundreds of series: tested each by itself at 1 %, a clean run had dozens of remarks. So the tests of all series, of
drift and of autocorrelation, are one family for Holm, as the families of verdicts are: the chance that a clean run
has any remark is at most 5 %, whatever the dependence, and series of the same trials do depend on one another. (The
rate of Benjamini and Hochberg promises that only of independent series, and lets more through where one drifts.)

Simulated with 24 independent series: any remark in 5.5 % of 200 clean runs of 10 blocks and in 4 % of 100 of 40 (at
a raw 1 % in 29 and 32 %); with 200 series in none of 15 runs of 20 blocks (at a raw 1 % in all, 4.3 remarks each). A
drift by 3 standard deviations over the run, in one of the 24, is found in 0, 40 and 96 % of 25 runs of 10, 20 and 40
blocks; one by 5 in 52, 96 and 100 %.

**The place in a block.** Blocks are in random order, so that a trial's place in its block biases no cost, but it
adds noise, and says that trials are not as fresh as they should be: a cache is still warm, a port not yet free, a
clock frequency falls. It is tested for each metric over all of its environments
(`weighbridge.statistics.place_slopes`), corrected once for all metrics of the run (Holm, 5 %), and said beside trust:
it makes no session untrusted by itself.

Simulated with blocks in random order, 120 sessions each, without an effect p <= 5 % is seen: of 3 environments in 10
blocks in 4 % (noise of 8 %), 7 (one run in ten slow), 3 (AR(1) 0.95), 3 (slow episodes) and 3 (heavy tails); of 7 in
20 blocks in 4, 3, 0, 3 and 3 %. With noise of 2 %, and p <= 0.05 / 8, an effect of 1 % from place to place is found
in 17 % of 40 sessions of 3 environments and 10 blocks, 47 % of 20 blocks, and in all of 4 environments and 40 blocks;
a first trial that differs by 2 % in 10, 38 and 68 %.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from weighbridge.analysis.trial_row import TrialRow
from weighbridge.model.address import ArmId, HasMetricId, MetricId, grouped
from weighbridge.statistics import Flags, flags, place_p_value, place_slopes, verdicts
from weighbridge.statistics.sample_size import MIN_BLOCKS_VERDICT

SeriesKey = tuple[ArmId, str]
"""An arm and the name of a metric."""


@dataclass(frozen=True, slots=True)
class SeriesTrends:
    """What looks wrong with a series; ``drifts`` and ``sticks``: after the correction for all series of the run."""

    flags: Flags
    drifts: bool
    sticks: bool
    """Whether successive values resemble one another."""


NOTHING_WRONG = SeriesTrends(Flags((), None, None), drifts=False, sticks=False)
"""Of a series without values."""


def series_of(trials: Iterable[TrialRow]) -> dict[SeriesKey, list[float]]:
    """Return every series of a run; ``trials`` are in the order in which they ran."""
    series: dict[SeriesKey, list[float]] = {}
    for trial in trials:
        arm = trial.arm
        for metric, value in trial.values.items():
            series.setdefault((arm, metric), []).append(value)
    return series


def run_trends(trials: Iterable[TrialRow]) -> Mapping[SeriesKey, SeriesTrends]:
    """Return what looks wrong with each series of a run; ``trials`` are in the order in which they ran."""
    series = {key: flags(values) for key, values in series_of(trials).items()}
    survives = surviving(series.values())
    return {key: SeriesTrends(each, next(survives), next(survives)) for key, each in series.items()}


def surviving(series: Iterable[Flags]) -> Iterator[bool]:
    """Give of each series whether its drift and whether its autocorrelation is left after Holm, one by one."""
    tests = [trend for each in series for trend in (each.drift, each.autocorrelation)]
    adjusted: Sequence[float | None] = verdicts.adjusted([None if test is None else test.p_value for test in tests])
    return (p_value is not None and p_value <= verdicts.ALPHA for p_value in adjusted)


# -- the place of a trial in its block -------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class PlaceEffect(HasMetricId):
    """A metric whose value depends on a trial's place in its block."""

    metric_id: MetricId
    per_place: float
    """By how much a value typically rises from one place to the next: its logarithm, or in the metric's unit."""
    logs: bool
    adjusted_p: float
    blocks: int


def place_effects(trials: Iterable[TrialRow]) -> tuple[PlaceEffect, ...]:
    """Return the metrics of a run in which the place matters; ``trials`` are in the order in which they ran.

    A block that was run again is one more block. Of fewer blocks than a verdict needs nothing is said.
    """
    tested: list[tuple[MetricId, bool, list[float]]] = []
    for cell, of_cell in grouped(trials, lambda trial: trial.cell).items():
        blocks = [*grouped(of_cell, lambda trial: (trial.block, trial.attempt)).values()]
        for metric in dict.fromkeys(metric for block in blocks for trial in block for metric in trial.values):
            placed = [
                [(place, trial.environment, trial.values[metric]) for place, trial in enumerate(block)
                 if metric in trial.values]
                for block in blocks
            ]  # fmt: skip
            slopes = place_slopes(placed)
            if len(slopes) >= MIN_BLOCKS_VERDICT:
                logs = all(value > 0 for block in placed for *_, value in block)
                tested.append((MetricId(cell, metric), logs, slopes))
    adjusted = verdicts.holm([place_p_value(slopes) for *_, slopes in tested])
    return tuple(
        PlaceEffect(metric_id, median(slopes), logs, p_value, len(slopes))
        for (metric_id, logs, slopes), p_value in zip(tested, adjusted, strict=True)
        if p_value <= verdicts.ALPHA
    )
