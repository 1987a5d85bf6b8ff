"""Effects of the order of trials on results: drift and autocorrelation of series, and the place in a block.

A series is an environment's values of one metric of a cell, in chronological order. A run has hundreds of series, so
testing each one at 1% gave dozens of remarks in a clean run. The tests of all series for drift and autocorrelation
are therefore one family for Holm's correction, like the families of verdicts. The chance of any remark in a clean run
is at most 5%, whatever the dependence, and series of the same trials do depend on each other. (Benjamini and
Hochberg's rate promises this only for independent series, and lets more through if one drifts.)

Simulated clean runs with any remark:

    series  blocks  runs  with Holm  at a raw 1%
        24      10   200       5.5%          29%
        24      40   100       4.0%          32%
       200      20    15       0.0%         100%

Simulated runs, 25 each, that find a drift over the run in one of 24 series:

    drift                  10 blocks  20 blocks  40 blocks
    3 standard deviations         0%        40%        96%
    5 standard deviations        52%        96%       100%

**The place in a block.** Blocks are in random order, so a trial's place in its block biases no cost. But it adds
noise, and shows that trials are not as fresh as they should be: a cache is still warm, a port is not yet free, or a
clock frequency falls. The place is tested for each metric over all of its environments
(`weighbridge.statistics.place_slopes`) and corrected once for all metrics of the run (Holm, 5%). Reports show it next
to the trust; a session can be trusted in spite of it.

Simulated sessions, 120 each, without an effect but with p at most 5%:

    noise                3 environments, 10 blocks  7 environments, 20 blocks
    8%                                          4%                         4%
    one slow run in ten                         7%                         3%
    AR(1) 0.95                                  3%                         0%
    slow episodes                               3%                         3%
    heavy tails                                 3%                         3%

Simulated sessions, 40 each, that find an effect with noise of 2% and p at most 0.05 / 8:

    environments, blocks               3, 10  3, 20  4, 40
    1% from place to place               17%    47%   100%
    the first trial differs by 2%        10%    38%    68%
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from weighbridge.analysis.trial_row import TrialRow
from weighbridge.model.address import ArmId, HasMetricId, MetricId, grouped, grouped_by_arm
from weighbridge.statistics import Flags, flags, place_p_value, place_slopes, verdicts
from weighbridge.statistics.sample_size import MIN_BLOCKS_VERDICT

SeriesKey = tuple[ArmId, str]
"""An arm and the name of a metric."""


@dataclass(frozen=True, slots=True)
class SeriesTrends:
    """The suspicious trends of a series; ``drifts`` and ``sticks`` are corrected for all series of the run."""

    flags: Flags
    drifts: bool
    sticks: bool
    """Whether successive values resemble each other."""


NOTHING_WRONG = SeriesTrends(Flags((), None, None), drifts=False, sticks=False)
"""The trends of a series without values."""


def series_of(trials: Iterable[TrialRow]) -> dict[SeriesKey, list[float]]:
    """Return every series of a run; ``trials`` are in chronological order."""
    series: dict[SeriesKey, list[float]] = {}
    for arm, mine in grouped_by_arm(trials).items():
        by_metric: dict[str, list[float]] = {}
        for trial in mine:
            for metric, value in trial.values.items():
                by_metric.setdefault(metric, []).append(value)
        series.update({(arm, metric): values for metric, values in by_metric.items()})
    return series


def run_trends(trials: Iterable[TrialRow]) -> Mapping[SeriesKey, SeriesTrends]:
    """Return the trends of each series of a run; ``trials`` are in chronological order."""
    series = {key: flags(values) for key, values in series_of(trials).items()}
    survives = surviving(series.values())
    return {key: SeriesTrends(each, next(survives), next(survives)) for key, each in series.items()}


def surviving(series: Iterable[Flags]) -> Iterator[bool]:
    """Yield for each series whether its drift, and then whether its autocorrelation, survives Holm's correction."""
    tests = [trend for each in series for trend in (each.drift, each.autocorrelation)]
    adjusted: Sequence[float | None] = verdicts.adjusted([None if test is None else test.p_value for test in tests])
    return (p_value is not None and p_value <= verdicts.ALPHA for p_value in adjusted)


# -- the place of a trial in its block -------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class PlaceEffect(HasMetricId):
    """A metric whose value depends on a trial's place in its block."""

    metric_id: MetricId
    per_place: float
    """The typical rise of a value from one place to the next: of its logarithm, or in the metric's unit."""
    logs: bool
    adjusted_p: float
    blocks: int


def place_effects(trials: Iterable[TrialRow]) -> tuple[PlaceEffect, ...]:
    """Return the metrics of a run that depend on the place; ``trials`` are in chronological order.

    A repeated block is an additional block. Metrics with fewer blocks than a verdict needs are not tested.
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
