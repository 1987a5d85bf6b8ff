"""The charts of the report page, with one definition per chart."""

from weighbridge.report.charts.base import AA_ARM, BASELINE, PALETTE, Chart, styles
from weighbridge.report.charts.costs import caption, forest, overview
from weighbridge.report.charts.curves import curve_caption, load_curve
from weighbridge.report.charts.explanation import CAPTION as EXPLANATION_CAPTION
from weighbridge.report.charts.explanation import explained
from weighbridge.report.charts.ladder import ladder_caption, waterfall
from weighbridge.report.charts.latency import percentile_curve
from weighbridge.report.charts.trials import distribution, runs

__all__ = [
    "AA_ARM",
    "BASELINE",
    "EXPLANATION_CAPTION",
    "PALETTE",
    "Chart",
    "caption",
    "curve_caption",
    "distribution",
    "explained",
    "forest",
    "ladder_caption",
    "load_curve",
    "overview",
    "percentile_curve",
    "runs",
    "styles",
    "waterfall",
]
