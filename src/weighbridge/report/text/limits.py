"""A cost that was held against a limit, a budget or a margin, in words."""

from weighbridge.analysis.comparisons import difference_unit
from weighbridge.analysis.limits import Finding, Reason
from weighbridge.analysis.requirement import unit_of_bound
from weighbridge.analysis.results import Analysis
from weighbridge.model.text import printable
from weighbridge.report.text.environments import layers_of_environment
from weighbridge.report.text.formatting import (
    NO_INTERVAL,
    difference_interval,
    level,
    percent_interval,
    percentage,
    with_unit,
)
from weighbridge.report.text.verdicts import broke_instead
from weighbridge.statistics.sample_size import MIN_BLOCKS_VERDICT

_WHY: dict[Reason, str] = {
    "blocks": f"fewer than {MIN_BLOCKS_VERDICT} rounds",
    "no-cost": "no complete round",
    "broke": "the server was overloaded",
    "hidden": "a bottleneck hides the cost",
    "no-ratio": "a value was zero or negative: no percentage",
    "noise": "within the noise floor",
    "failed": "more than one trial in ten failed or was overloaded",
    "untrusted": "the control failed",
    "path": "the network path is unknown",
    "durability": "the environment is less durable",
    "other-unit": "its unit or direction differs in the earlier run",
    "disturbed": "other load on the machine differed between the runs",
    "own-budget": "compared in another unit: give it its own budget",
    "spent": "earlier gates used up this run's error budget: measure a new run",
}
"""Reasons why a requirement is undecided, for every kind of requirement."""
_WHY_BY_WORD: dict[str, dict[Reason, str]] = {
    "limit": {"interval": "the limit is inside the interval"},
    "budget": {
        "above": "over its budget",
        "within": "within its budget",
        "interval": "the budget is inside the interval",
        "many": "over its budget, but not significant after Holm's correction",
    },
    "margin": {
        "above": "beyond the margin",
        "within": "within the margin",
        "interval": "the margin is inside the interval",
        "many": "beyond the margin, but not significant after Holm's correction",
    },
}
"""Reasons as in `_WHY` that depend on the kind of requirement."""


def limit_sentence(finding: Finding, analysis: Analysis) -> str:
    """Return a limit's outcome in words: the comparison, its cost, the limit, and why it is undecided."""
    cost = f"{cost_words(finding)}, " if finding.cost is not None else ""
    text = f"{finding_name(finding, analysis)}: {cost}limit {bound_words(finding)}"
    if finding.outcome != "undecided":
        return f"limit {finding.outcome}: {text}"
    return f"undecided: {text}, {why_words(finding)}"


def finding_name(finding: Finding, analysis: Analysis) -> str:
    """Return the comparison as a requirement writes it, with the hypervisors that its environment was measured in."""
    return f"{finding.target.name} {layers_of_environment(finding.target.environment, analysis)}".strip()


def bound_words(finding: Finding) -> str:
    """Return the bound of a finding with its unit."""
    return with_unit(f"{finding.requirement.bound:g}", printable(finding.requirement.unit))


def cost_words(finding: Finding) -> str:
    """Return a finding's cost with its interval and the interval's level, which a report does not share."""
    cost, row, report = finding.cost, finding.target.row, finding.target.report
    if cost is None or report is None or row is None or row.cost is None:
        return "no cost"
    difference = row.cost.scale == "difference"
    if finding.blocks < 2 or finding.confidence is None:
        return difference_interval(cost, report.unit) if difference else f"{percentage(cost.estimate)} {NO_INTERVAL}"
    text = difference_interval(cost, report.unit) if difference else percent_interval(cost)
    return f"{text} ({level(finding.confidence)} interval)"


def why_words(finding: Finding) -> str:
    """Return the reason of an outcome."""
    row = finding.target.row
    if finding.reason == "broke" and row is not None and row.broke_instead:
        return broke_instead(row)
    if finding.reason == "no-ratio" and finding.requirement.operand == "cost" and row is not None:
        unit = difference_unit(finding.target.report.unit) if finding.target.report is not None else ""
        return f"{_WHY['no-ratio']}; write '{finding.target.name}{finding.requirement.sign}1 {unit}'"
    if finding.reason == "own-budget" and (report := finding.target.report) is not None:
        return f"{_WHY['own-budget']}, such as '{finding.target.name}<=5{unit_of_bound(report)}'"
    return _WHY_BY_WORD[finding.requirement.spelling.word].get(finding.reason) or _WHY[finding.reason]
