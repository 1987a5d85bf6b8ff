"""Families: comparisons whose verdicts are corrected together (Holm), so that none is a chance among many.

A headline answers the question that a study asks; its percentiles and deviations, and what it cost, answer further
ones. In one family a headline would be demoted by what is only said beside it. So there are three, of the comparisons
with the baseline: the headlines of all workloads and levels, their further metrics, and resource use. The steps of a
ladder are a fourth (`weighbridge.analysis.ladder`). In each the chance of any false "different" is at most 5 %: of a
whole report it can be more, which the page says.
"""

from collections.abc import Sequence
from enum import StrEnum

from weighbridge.analysis.results import MetricReport
from weighbridge.statistics import verdicts


class Family(StrEnum):
    """What is corrected together."""

    HEADLINES = "headlines"
    FURTHER = "further metrics"
    RESOURCE_USE = "resource use"


def family_of(report: MetricReport) -> Family:
    """Give the family of a metric's comparisons with the baseline."""
    if report.resource_use:
        return Family.RESOURCE_USE
    return Family.HEADLINES if report.headline else Family.FURTHER


def after_holm(reports: Sequence[MetricReport], p_values: Sequence[float | None]) -> list[float | None]:
    """Give the adjusted p-values of all comparisons of reports, in their order; None stays None."""
    families = [family_of(report) for report in reports for _ in report.comparisons]
    found: list[float | None] = [None] * len(families)
    for family in Family:
        places = [place for place, each in enumerate(families) if each is family]
        for place, p_value in zip(places, verdicts.adjusted([p_values[each] for each in places]), strict=True):
            found[place] = p_value
    return found
