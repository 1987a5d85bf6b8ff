"""How large a cost the usual order of a published study would have shown on this machine: first all A, then all B.

    python benchmarks/sequential_order.py RUN [RUN ...]

A run of Weighbridge has every environment in every round, so each environment has trials over the whole time. The
trials of A from the first half and the trials of B from the second half make a study that measured A before B. For
each primary metric this prints four things.

- The interleaved cost of each environment, with the interval of the run's own report.
- The cost in both sequential orders, with Welch's 95% interval, as published studies compute it.
- The *false cost*: native trials of the first half against native trials of the second half. Its true value is 0.
- The largest false cost of all pairs of adjacent windows of ten native trials, and the number of pairs that a t-test
  at 5% calls significant. A published study with ten runs of each environment is one such pair.

The native trials belong to the baseline and to the control.
"""

import argparse
import math
import statistics
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from weighbridge.analysis.analyse import analyse
from weighbridge.analysis.results import Analysis, Comparison, MetricReport
from weighbridge.model.measurement import Better
from weighbridge.statistics import Interval, Sample
from weighbridge.statistics.cost import exp_interval
from weighbridge.statistics.parametric import welch_interval
from weighbridge.store.run import RunStore

CONFIDENCE = 0.95
RUNS = 10
"""The runs of each environment in most published studies."""
LEAST = 3
"""The fewest trials of a side: two have an interval that says nothing."""
NO_COST = 1.0


@dataclass(frozen=True)
class Timed:
    """The value of a trial, and when the trial started, in seconds."""

    at: float
    value: float


@dataclass(frozen=True)
class Windows:
    """All pairs of adjacent windows of one arm's trials. ``largest`` is the ratio that is farthest from 1."""

    pairs: int
    significant: int
    largest: float


def ratio_of(first: Sequence[float], second: Sequence[float]) -> Interval | None:
    """Return second / first as a ratio of geometric means, with Welch's 95% interval.

    This is the comparison of a study that measured all of ``first`` and then all of ``second``. Return None
    without any spread, with fewer than `LEAST` trials on a side, or with a value that is not positive.
    """
    if min(len(first), len(second)) < LEAST or min(*first, *second) <= 0:
        return None
    logs = [[math.log(value) for value in side] for side in (first, second)]
    samples = [Sample(statistics.fmean(side), statistics.stdev(side), len(side)) for side in logs]
    interval = welch_interval(samples, (-1.0, 1.0), CONFIDENCE)
    return None if interval is None else exp_interval(interval)


def one_after_the_other(first: Sequence[Timed], second: Sequence[Timed]) -> Interval | None:
    """Return second / first from the trials of ``first`` in the first half of the time, and of ``second`` after it.

    The halves meet at the median start of all trials. With the same trials on both sides, the true ratio is 1, and
    the result is the machine's drift.
    """
    middle = statistics.median(each.at for each in (*first, *second))
    return ratio_of(
        [each.value for each in first if each.at < middle], [each.value for each in second if each.at >= middle]
    )


def windows(trials: Sequence[Timed], runs: int = RUNS) -> Windows | None:
    """Return the false costs of all pairs of adjacent windows of ``runs`` trials; None with too few trials."""
    values = [each.value for each in sorted(trials, key=lambda each: each.at)]
    found = [
        ratio
        for start in range(len(values) - 2 * runs + 1)
        if (ratio := ratio_of(values[start : start + runs], values[start + runs : start + 2 * runs])) is not None
    ]
    if not found:
        return None
    largest = max((each.estimate for each in found), key=lambda ratio: abs(math.log(ratio)))
    return Windows(len(found), sum(map(excludes_none, found)), largest)


def excludes_none(ratio: Interval) -> bool:
    """Return whether a ratio's interval excludes no difference."""
    return ratio.low > NO_COST or ratio.high < NO_COST


def cost_of(ratio: float, better: Better) -> float:
    """Return a ratio to the baseline as a cost in percent: positive means worse."""
    return 100 * (ratio - 1 if better == "lower" else 1 - ratio)


def shown(ratio: Interval | None, better: Better) -> str:
    """Return a ratio as a cost with its limits: ``21.3% [14.0, 28.1]``."""
    if ratio is None:
        return "unknown"
    low, high = sorted(cost_of(each, better) for each in (ratio.low, ratio.high))
    return f"{cost_of(ratio.estimate, better):.1f}% [{low:.1f}, {high:.1f}]"


def timed(analysis: Analysis, report: MetricReport, *environments: str) -> list[Timed]:
    """Return the good trials of environments in chronological order."""
    return [
        Timed(trial.started_at, trial.values[report.metric])
        for trial in analysis.trials_of.get(report.label, ())
        if trial.environment in environments and report.metric in trial.values
    ]


def interleaved(row: Comparison) -> Interval | None:
    """Return the run's own comparison; None without an interval or if it is a difference."""
    cost = row.cost
    return None if cost is None or cost.scale != "ratio" else cost.interval


def lines(analysis: Analysis, report: MetricReport) -> list[str]:
    """Return the text about one metric."""
    native = [analysis.baseline, *([analysis.aa_arm] if analysis.aa_arm else [])]
    trials, better = timed(analysis, report, *native), report.better
    drift = one_after_the_other(trials, trials)
    text = [f"{report.label} {report.metric}: {len(trials)} native trials"]
    text.append(f"  false cost, native after native: {shown(drift, better)}{_alarm(drift)}")
    if (every := windows(trials)) is not None:
        text.append(
            f"  {every.pairs} pairs of {RUNS} and {RUNS} native trials: largest false cost "
            f"{cost_of(every.largest, better):.1f}%, significant in {every.significant}"
        )
    for row in report.comparisons:
        own = timed(analysis, report, row.environment)
        after = one_after_the_other(timed(analysis, report, analysis.baseline), own)
        before = one_after_the_other(own, timed(analysis, report, analysis.baseline))
        reversed_order = None if before is None else _inverse(before)
        text.append(
            f"  {row.environment}: interleaved {shown(interleaved(row), better)}; after native "
            f"{shown(after, better)}; before native {shown(reversed_order, better)}"
        )
    return text


def _alarm(ratio: Interval | None) -> str:
    return ", a false alarm" if ratio is not None and excludes_none(ratio) else ""


def _inverse(ratio: Interval) -> Interval:
    return Interval(1 / ratio.estimate, 1 / ratio.high, 1 / ratio.low)


def main() -> int:
    """Print the costs of both orders for every run."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("runs", nargs="+", type=Path)
    for directory in parser.parse_args().runs:
        with RunStore(directory) as store:
            analysis = analyse(store)
        print(f"{analysis.study}:")
        for report in analysis.metrics:
            if report.headline:
                print("\n".join(lines(analysis, report)), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
