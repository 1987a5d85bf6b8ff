"""Remarks: facts that a reader should know about a number, with one theme per module.

A remark is a class with the rule that finds it below. It has a code, and its fields hold names and figures, which
``report --json`` contains unchanged. Its `RemarkPlace` says where a report shows it. The sentences are in
`weighbridge.report.text.remarks`. Remarks never change a number.

The rank of a rule decides the order of remarks; the most important have the lowest. The subject of a rule is a
comparison, an environment's values of a metric, its trials, the facts of a site, or the whole run.
"""

from weighbridge.analysis.context import Context
from weighbridge.analysis.remarks import confounders, cost, entry, flags, hypervisors, meters, network, rounds, trials
from weighbridge.analysis.remarks.confounders import Confounder, confounders_of
from weighbridge.analysis.remarks.rules import (
    ArmTrials,
    ArmValues,
    ComparisonInRun,
    about_comparison,
    about_trials,
    about_values,
)
from weighbridge.analysis.results import Comparison, MetricReport, Remark
from weighbridge.analysis.trends import NOTHING_WRONG, run_trends
from weighbridge.model.address import ArmId
from weighbridge.model.isolation import OUTSIDE

THEMES = (rounds, cost, entry, network, meters, trials, flags, hypervisors, confounders)
"""The modules with the remarks; importing them adds their rules."""


def kinds() -> list[type[Remark]]:
    """Return the classes of all remarks that a report can have."""
    known = (each for theme in THEMES for each in vars(theme).values() if isinstance(each, type))
    return [*dict.fromkeys(each for each in known if issubclass(each, Remark) and hasattr(each, "code"))]


def remarks_about(report: MetricReport, row: Comparison, context: Context) -> tuple[Remark, ...]:
    """Return all remarks about one comparison, the most important first."""
    comparison = ComparisonInRun(report, row, context)
    remarks = about_comparison.remarks(comparison)
    for environment in comparison.sides:
        remarks += _arm_remarks(comparison, environment)
    names = {*comparison.sides, OUTSIDE}
    confounding = (each for each in confounders_of(context) if isinstance(each, Confounder))
    remarks += [each for each in confounding if each.environment in names]
    return tuple(remarks)


def _arm_remarks(comparison: ComparisonInRun, environment: str) -> list[Remark]:
    """Return remarks about an environment's own values of a metric and about its trials."""
    report, context = comparison.report, comparison.context
    arm = ArmId(report.cell, environment)

    def of_values() -> list[Remark]:
        values = [trial.values[report.metric] for trial in context.of_arm(arm) if report.metric in trial.values]
        trends = context.once("trends", lambda: run_trends(context.trials))
        series = trends.get((arm, report.metric), NOTHING_WRONG)
        return about_values.remarks(ArmValues(environment, report.metric, values, series))

    def of_trials() -> list[Remark]:
        return about_trials.remarks(ArmTrials(environment, context.of_arm(arm), context.broken.get(arm)))

    return context.once((arm, report.metric), of_values) + context.once(arm, of_trials)
