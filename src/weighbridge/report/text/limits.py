"""What became of limits on costs, in words."""

from weighbridge.analysis.gate import Finding, Reason
from weighbridge.analysis.results import Analysis
from weighbridge.report.text.environments import layers_of_environment
from weighbridge.report.text.formatting import NO_INTERVAL, SPACE, difference_interval, percent_interval, plain
from weighbridge.report.text.verdicts import broke_instead
from weighbridge.statistics.sample_size import MIN_BLOCKS_VERDICT

WHY: dict[Reason, str] = {
    "interval": "the limit is inside the interval",
    "blocks": f"fewer than {MIN_BLOCKS_VERDICT} blocks",
    "no-cost": "no complete block",
    "broke": "trials broke under their load",
    "hidden": "a bottleneck hides the cost",
    "no-ratio": "a value was zero, so there is no percentage",
    "noise": "no larger than the noise floor",
    "failed": "more than one trial in ten failed or broke",
    "untrusted": "the A/A arm makes the session untrusted",
    "path": "the network path is not known",
    "durability": "it keeps less of what it acknowledges after a power cut",
    "other-unit": "its unit or its better direction is another in the earlier run",
    "spent": "earlier gates of this run have spent all of the error: measure a new run",
    "many": "above the limit by its own interval, but not among so many comparisons",
}
"""Why it cannot be told whether a cost is above its limit."""


def finding_sentence(finding: Finding, analysis: Analysis) -> str:
    """Give a finding in words: the comparison, its cost, the limit, and why it cannot be told."""
    target, limit = finding.target, f"{finding.limit.amount:g}{SPACE}{finding.limit.unit}".strip()
    cost = f"{cost_words(finding)}, " if finding.cost is not None else ""
    within = layers_of_environment(target.environment, analysis)
    text = f"{target.name}{f' {within}' if within else ''}: {cost}limit {limit}"
    if finding.outcome != "undecided":
        return f"limit {finding.outcome}: {text}"
    why = broke_instead(target.row) if finding.reason == "broke" and target.row else WHY.get(finding.reason, "")
    return f"cannot tell: {text}, {why}"


def cost_words(finding: Finding) -> str:
    """Give a finding's cost with its interval, as tables have it."""
    cost, row, report = finding.cost, finding.target.row, finding.target.report
    if cost is None or report is None or row is None or row.cost is None:
        return "no cost"
    if row.cost.scale == "difference":
        return difference_interval(cost, report.unit)
    return percent_interval(cost) if finding.blocks > 1 else f"{plain(cost.estimate)} % {NO_INTERVAL}"
