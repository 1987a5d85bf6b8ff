"""The runs of a folder, in words."""

from weighbridge.analysis.history import Skipped
from weighbridge.analysis.results import Comparison, MetricReport
from weighbridge.report.text.metric_names import metric_phrase
from weighbridge.report.text.verdicts import cost_text


def cost_words(report: MetricReport, row: Comparison) -> str:
    """Return one cost: ``bridge tcp throughput 27.4 % [25.9, 28.8]``."""
    return f"{row.environment} {metric_phrase(report)} {cost_text(row, report.unit)}"


def why_skipped(skipped: Skipped) -> str:
    """Return why a folder was skipped."""
    return skipped.why or "there is no run in it"
