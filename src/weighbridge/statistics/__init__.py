"""Statistics for benchmarks on noisy machines, as pure functions over sequences of floats.

The package works without the rest of Weighbridge. It reads and writes no files, keeps no state and drops no values.
The unit is one fresh run. Two environments are compared block by block: value *i* with value *i*.
"""

from weighbridge.statistics.contrast import LOOKS_SHARE, Contrast, Looks, compare, looks_share
from weighbridge.statistics.cost import Better, Cost, Interval, Scale, Verdict, cost_difference, cost_percent
from weighbridge.statistics.diagnostics import Flags, Placed, Trend, flags, place_p_value, place_slopes
from weighbridge.statistics.histogram import Histogram, compare_percentiles, merge_histograms, percentile, percentiles
from weighbridge.statistics.one_sample import (
    SLOW,
    SlowRuns,
    has_median_interval,
    median_interval,
    slow_run_rate,
    typical_interval,
)
from weighbridge.statistics.parametric import Sample
from weighbridge.statistics.precision import (
    LOOKS,
    Contender,
    Decision,
    allotted,
    blocks_needed,
    blocks_to_settle,
    blocks_to_target,
    decided,
    deciding_half_width,
    error_at,
    expected_half_width,
    half_width_after,
    next_look,
    planned_looks,
    shared,
    smallest_visible_cost,
    visible_effect,
    widened,
)
from weighbridge.statistics.quantiles import fewest_values, sample_percentile
from weighbridge.statistics.verdicts import holm

__all__ = [
    "LOOKS",
    "LOOKS_SHARE",
    "SLOW",
    "Better",
    "Contender",
    "Contrast",
    "Cost",
    "Decision",
    "Flags",
    "Histogram",
    "Interval",
    "Looks",
    "Placed",
    "Sample",
    "Scale",
    "SlowRuns",
    "Trend",
    "Verdict",
    "allotted",
    "blocks_needed",
    "blocks_to_settle",
    "blocks_to_target",
    "compare",
    "compare_percentiles",
    "cost_difference",
    "cost_percent",
    "decided",
    "deciding_half_width",
    "error_at",
    "expected_half_width",
    "fewest_values",
    "flags",
    "half_width_after",
    "has_median_interval",
    "holm",
    "looks_share",
    "median_interval",
    "merge_histograms",
    "next_look",
    "percentile",
    "percentiles",
    "place_p_value",
    "place_slopes",
    "planned_looks",
    "sample_percentile",
    "shared",
    "slow_run_rate",
    "smallest_visible_cost",
    "typical_interval",
    "visible_effect",
    "widened",
]
