"""The published figures of each row of a table, and the proof of a comparison by its own spread.

The proof is an interval, and different, equivalent or inconclusive. The rule applies to every row alone, without a
correction for their number:

- if each run's own mean is printed: Welch's t interval at 95% on the logarithms (for a difference: on the values);
- if only mean and deviation (or coefficient of variation) of the runs are printed: the same, with deviation / mean as
  the deviation of the logarithm (delta method), and the study's number of runs;
- if neither is printed, or only the ratio of two environments: the sign of the difference only.

*Different*: the interval excludes no difference. *Equivalent*: the 90% interval lies within the margin (two one-sided
tests at 5%), which takes precedence over *different*, as in a run's own report.
"""

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from weighbridge.features.replication.published import PAIRED, Compared, Figure, PairTable, Published, SpreadTable
from weighbridge.statistics import Contrast, Interval, Sample

Proof = Literal["different", "equivalent", "inconclusive", "sign only"]


@dataclass(frozen=True, slots=True)
class PublishedRow:
    """One published comparison of an environment with the baseline, with values in the comparison's shown unit."""

    compared: Compared
    environment: str
    """The environment, as the bundled study names it."""
    level: Mapping[str, str]
    """The measured factors; empty if nothing is swept."""
    baseline: float | None
    value: float | None
    """The environment's value; None if only their ratio is printed."""
    effect: float
    """Value / baseline (from each run's mean if printed), or the difference."""
    interval: Interval | None
    """The effect with its 95% limits; None if no spread is published."""
    proof: Proof
    against: str = ""
    """The environment that it is compared with, as the bundled study names it; empty for the run's baseline."""

    @property
    def sign(self) -> int:
        """Return 1 if the value is larger than the baseline's, -1 if it is smaller, 0 if they are equal."""
        none = 1.0 if self.compared.scale == "ratio" else 0.0
        return (self.effect > none) - (self.effect < none)


def rows(study: Published, compared: Compared, margin: float | None) -> Iterator[PublishedRow]:
    """Yield the published rows of one comparison; ``margin`` is the equivalence margin, as a fraction."""
    if compared.statistic == "ratio":
        yield from _ratios(study, compared)
        return
    for printed, measured in (compared.environments or study.environments).items():
        for level in _levels(study, compared, printed) if printed != study.baseline else ():
            names = {compared.levels[factor]: value for factor, value in level.items()}
            sides = [_side(study, compared, environment, level) for environment in (study.baseline, printed)]
            for environment in measured:
                if (row := _row(compared, environment, names, sides, margin)) is not None:
                    yield row


def _ratios(study: Published, compared: Compared) -> Iterator[PublishedRow]:
    """Yield the rows of printed ratios, for each environment that is measured instead of the published ones."""
    measured = compared.environments or study.environments
    baselines = measured.get(study.baseline, ())
    for figure in study.ratios(compared):
        names, bases = (measured[printed] for printed in figure.environment.split(" / "))
        for name, base in itertools.product(names, bases):
            against = "" if base in baselines else base
            yield PublishedRow(compared, name, {}, None, None, figure.value, None, "sign only", against)


def _levels(study: Published, compared: Compared, environment: str) -> list[dict[str, str]]:
    """Return every published level of the swept factors; one empty level if nothing is swept."""
    if not compared.levels:
        return [{}]
    levels = []
    for figure in study.figures:
        level = {factor: value for factor, value in figure.levels.items() if factor in compared.levels}
        subject = (figure.environment, figure.workload, figure.metric)
        matches = subject == (environment, compared.workload, compared.metric) and figure.table in compared.labels
        if matches and len(level) == len(compared.levels) and level not in levels:
            levels.append(level)
    return levels


@dataclass(frozen=True, slots=True)
class _Side:
    value: float | None
    deviation: float | None
    tests: tuple[float, ...]
    runs: int


def _side(study: Published, compared: Compared, environment: str, level: Mapping[str, str]) -> _Side:
    mean = study.find(compared, environment, level, "mean")
    deviation = study.find(compared, environment, level, "stdev")
    tests = tuple(_shown(compared, figure) for figure in study.tests(compared, environment, level))
    value = _shown(compared, mean) if mean else sum(tests) / len(tests) if tests else None
    variation = study.variation(compared, environment) if compared.spread == "cv" else None
    if variation is not None and value is not None:
        return _Side(value, value * variation, tests, study.runs)
    return _Side(value, abs(compared.times) * deviation.value if deviation else None, tests, study.runs)


def _shown(compared: Compared, figure: Figure) -> float:
    return compared.times * figure.value + compared.plus


def _row(
    compared: Compared, environment: str, level: Mapping[str, str], sides: Sequence[_Side], margin: float | None
) -> PublishedRow | None:
    baseline, value = (side.value for side in sides)
    if baseline is None or value is None:
        return None
    ratio = compared.scale == "ratio" and baseline > 0 and value > 0
    samples = [_sample(compared, side, ratio=ratio) for side in sides]
    interval: Interval | None = None
    proof: Proof = "sign only"
    contrast = Contrast.between(environment, compared.against)
    usable_samples = [sample for sample in samples if sample is not None]
    if (
        len(usable_samples) == len(contrast.arms)
        and (interval := contrast.unblocked(usable_samples, 0.95)) is not None
    ):
        narrow = contrast.unblocked(usable_samples, 0.90)
        limit = math.log1p(margin) if ratio and margin else 0.0
        within = narrow is not None and -limit < narrow.low and narrow.high < limit
        proof = "equivalent" if within else "inconclusive" if interval.low <= 0 <= interval.high else "different"
        if ratio:
            interval = Interval(*(math.exp(end) for end in (interval.estimate, interval.low, interval.high)))
    plain = value / baseline if compared.scale == "ratio" and baseline else value - baseline
    effect = interval.estimate if interval else plain
    return PublishedRow(compared, environment, level, baseline, value, effect, interval, proof, compared.against)


def _sample(compared: Compared, side: _Side, *, ratio: bool) -> Sample | None:
    """Return the runs of one environment on the comparison's scale; None if their spread is not published."""
    if compared.spread == "tests" and len(side.tests) > 1 and not (ratio and min(side.tests) <= 0):
        values = [math.log(test) for test in side.tests] if ratio else list(side.tests)
        mean = sum(values) / len(values)
        return Sample(mean, math.sqrt(sum((each - mean) ** 2 for each in values) / (len(values) - 1)), len(values))
    if compared.spread in ("runs", "cv") and side.deviation is not None and side.value is not None:
        if ratio:
            return Sample(math.log(side.value), side.deviation / side.value, side.runs)
        return Sample(side.value, side.deviation, side.runs)
    return None


# -- spreads and paired differences ----------------------------------------------------------------

SHARES = {"%": 0.01, "1": 1.0}
"""The units of a printed coefficient of variation."""


@dataclass(frozen=True, slots=True)
class PublishedSpread:
    """One environment's figures as a source prints them, in its own unit, with derived ones."""

    published_as: str
    environment: str
    """The environment, as the bundled study names it."""
    mean: float | None
    deviation: float | None
    variation: float | None
    """The coefficient of variation, as a fraction."""
    derived: tuple[str, ...] = ()
    """The names of the derived figures: "deviation", "variation"."""


def spread_rows(study: Published, table: SpreadTable) -> Iterator[PublishedSpread]:
    """Yield each environment's printed figures, and derived ones: deviation = mean x coefficient of variation."""
    for published_as, names in (table.environments or study.environments).items():
        figures: dict[str, Figure] = {}
        for figure in study.figures:
            if table.fits(figure) and figure.environment == published_as:
                figures.setdefault(figure.statistic, figure)
        mean, deviation = (figures[name].value if name in figures else None for name in ("mean", "stdev"))
        printed = figures.get("cv")
        variation = printed.value * SHARES[printed.unit] if printed is not None else None
        derived: tuple[str, ...] = ()
        if deviation is None and mean is not None and variation is not None:
            deviation, derived = mean * variation, ("deviation",)
        elif variation is None and mean and deviation is not None:
            variation, derived = deviation / mean, ("variation",)
        for name in names:
            yield PublishedSpread(published_as, name, mean, deviation, variation, derived)


@dataclass(frozen=True, slots=True)
class PublishedPair:
    """A source's printed figures of the difference first - second: mean and standard deviation, t and p."""

    first: str
    second: str
    """The subtracted environment; both are named as in the bundled study."""
    mean: float
    deviation: float
    t: float
    p: float


def pair_rows(study: Published, table: PairTable) -> Iterator[PublishedPair]:
    """Yield the printed figures of each difference (``docker-volume - nfs-sync``). KeyError if one is missing."""
    for printed, (first, second) in table.pairs.items():
        figures = {f.statistic: f.value for f in study.figures if table.fits(f) and f.environment == printed}
        mean, deviation, t, p = (figures[statistic] for statistic in PAIRED)
        yield PublishedPair(first, second, mean, deviation, t, p)
