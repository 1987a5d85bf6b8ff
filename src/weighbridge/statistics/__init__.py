"""Statistics for benchmarks on noisy machines: pure functions over sequences of floats.

Usable without the rest of Weighbridge. Nothing here reads or writes anything, keeps state or drops a value.
The unit is one fresh run; two environments are compared block by block (value *i* with value *i*).
"""

from weighbridge.statistics.allotment import Contender, allotted, shared
from weighbridge.statistics.comparison import LOOKS_SHARE, compare
from weighbridge.statistics.cost import (
    Better,
    Cost,
    Interval,
    Scale,
    Verdict,
    cost_difference,
    cost_percent,
    scale_of,
)
from weighbridge.statistics.diagnostics import Flags, Trend, flags
from weighbridge.statistics.histogram import Histogram
from weighbridge.statistics.latency import compare_percentiles, merge_histograms, percentile, percentiles
from weighbridge.statistics.multiplicity import holm
from weighbridge.statistics.one_sample import has_median_interval, median_interval, typical_interval
from weighbridge.statistics.parametric import Sample, t_test_p_value, welch_interval
from weighbridge.statistics.power import blocks_needed, expected_half_width, smallest_visible_cost
from weighbridge.statistics.precision import LOOKS, Decision, next_look, planned_looks
from weighbridge.statistics.sequential import decision_looks, limit_p_value, look_shares
from weighbridge.statistics.slow_runs import SLOW, SlowRuns, slow_run_rate

__all__ = [
    "LOOKS",
    "LOOKS_SHARE",
    "SLOW",
    "Better",
    "Contender",
    "Cost",
    "Decision",
    "Flags",
    "Histogram",
    "Interval",
    "Sample",
    "Scale",
    "SlowRuns",
    "Trend",
    "Verdict",
    "allotted",
    "blocks_needed",
    "compare",
    "compare_percentiles",
    "cost_difference",
    "cost_percent",
    "decision_looks",
    "expected_half_width",
    "flags",
    "has_median_interval",
    "holm",
    "limit_p_value",
    "look_shares",
    "median_interval",
    "merge_histograms",
    "next_look",
    "percentile",
    "percentiles",
    "planned_looks",
    "scale_of",
    "shared",
    "slow_run_rate",
    "smallest_visible_cost",
    "t_test_p_value",
    "typical_interval",
    "welch_interval",
]
