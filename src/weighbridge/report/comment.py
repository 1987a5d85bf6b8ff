"""A run as a comment on a pull request: the verdict, the costs, what they could have shown, and what else differed.

All names and texts of the run are escaped, because a run can come from a stranger. Nothing in them becomes markup, a
link or a mention. A text of our own is at most `MOST_CHARACTERS` long, whatever is in the run.
"""

import re
from collections.abc import Iterator

from weighbridge.analysis.comparisons import difference_unit
from weighbridge.analysis.results import Analysis, Comparison, MetricReport
from weighbridge.model.stored_study import BASE, HEAD
from weighbridge.report.markdown import escaped, markdown_table
from weighbridge.report.text.answer import answer
from weighbridge.report.text.conditions import left_out_lines
from weighbridge.report.text.environments import display_name, names_of, use_display_names
from weighbridge.report.text.formatting import level, percent_short, plural, quantity
from weighbridge.report.text.metric_names import metric_title
from weighbridge.report.text.remarks import remark_text, remark_texts
from weighbridge.report.text.summary import exploratory_sentence
from weighbridge.report.text.trust import trust_sentence
from weighbridge.report.text.verdicts import judged_cost_text, reasoned_verdict

MOST_CHARACTERS = 60_000
"""The most characters of a comment; GitHub's limit is 65,536."""
MOST_ROWS, MOST_REMARKS = 100, 20
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,59}")
"""The name of a comment."""
URL = re.compile(r"https?://[A-Za-z0-9.:\[\]-]{1,255}(/[A-Za-z0-9._~:/?#@!$&'*+,;=%-]{0,1000})?")
"""An address that a comment can link to: no character of it ends a link in Markdown."""
_FROM_STRANGER = (
    "The author of this pull request can change the job that measured this. Do not take these figures as proof."
)
_DETECTABLE = (
    "Detectable: such a run would probably find a cost of at least this size significant. It finds smaller costs "
    "less often. In runs with fewer than 20 rounds, slow trials raise this figure."
)
_NOTHING_DIFFERED = "Nothing else that Weighbridge records differed."


def marker(name: str) -> str:
    """Return the hidden line that marks the comment with this name."""
    return f"<!-- weighbridge-comment: {name} -->"


def comment(analysis: Analysis, *, page: str = "", stranger: bool = False) -> str:
    """Return a run as Markdown, with its verdict in the first line.

    ``page`` is the address of the report. ``stranger`` is whether another user could have changed the run. Raises
    ValueError for an address with characters that an address does not need.
    """
    if page and not URL.fullmatch(page):
        raise ValueError("the address of the page must begin with http:// or https:// and have no special characters")
    with use_display_names(names_of(analysis)):
        verdict = f"**{escaped(answer(analysis))}**"
        lines = [*_lines(analysis, page=page, stranger=stranger)]
    text = "\n".join([verdict, "", *lines, ""])
    if len(text) > MOST_CHARACTERS:
        link = [f"[Report]({page})", ""] if page else []
        warning = [_FROM_STRANGER, ""] if stranger else []
        return "\n".join([verdict[:1000], "", *warning, "The rest is too long for a comment.", "", *link])
    return text


def _lines(analysis: Analysis, *, page: str, stranger: bool) -> Iterator[str]:
    if stranger:
        yield from (_FROM_STRANGER, "")
    yield from (escaped(analysis.question), "")
    rows = [(report, row) for report in analysis.headlines for row in report.comparisons if not row.aa]
    if rows:
        yield from markdown_table(_heads(analysis), [_cells(*each) for each in rows[:MOST_ROWS]])
        yield from ("", _DETECTABLE, "")
    if len(rows) > MOST_ROWS:
        yield from (f"The report has {plural(len(rows) - MOST_ROWS, 'more comparison')}.", "")
    if analysis.metrics and (sentence := trust_sentence(analysis)):
        yield from (escaped(sentence), "")
    remarks = [*left_out_lines(analysis), *map(remark_text, analysis.notices), exploratory_sentence(analysis)]
    yield from _listed([each for each in remarks if each])
    differing = remark_texts(analysis.confounders)
    yield from ("What else differed:" if differing else _NOTHING_DIFFERED, "")
    yield from _listed(differing)
    if page:
        yield from (f"[Report]({page})", "")


def _listed(texts: list[str]) -> Iterator[str]:
    if texts:
        more = [f"and {len(texts) - MOST_REMARKS} more in the report"] if len(texts) > MOST_REMARKS else []
        yield from (*(f"- {escaped(each)}" for each in (*texts[:MOST_REMARKS], *more)), "")


def _heads(analysis: Analysis) -> tuple[str, ...]:
    before, after = (BASE, HEAD) if analysis.plan.pairs else (display_name(analysis.baseline), "value")
    cost = f"cost [{level(analysis.confidence)}]"
    return "metric", "environment", before, after, cost, "rounds", "verdict", "detectable"


def _cells(report: MetricReport, row: Comparison) -> tuple[str, ...]:
    values = (quantity(value, report.unit) for value in (row.baseline_value, row.value))
    return (
        metric_title(report), display_name(row.environment), *values, judged_cost_text(row, report.unit),
        str(row.blocks), reasoned_verdict(row), _visible(report, row),
    )  # fmt: skip


def _visible(report: MetricReport, row: Comparison) -> str:
    """Return the smallest cost that the comparison would have shown in four of five runs; a dash if it is unknown."""
    if row.visible is None or row.cost is None:
        return "–"
    if row.cost.scale == "ratio":
        return f"{percent_short(row.visible.cost)} or more"
    return f"{quantity(row.visible.cost, difference_unit(report.unit))} or more"
