"""The cells of the matrix in words, for the terminal and the page."""

from weighbridge.analysis.remarks import NotAfterHolm, WithinNoise
from weighbridge.analysis.results import Analysis
from weighbridge.report.text.effect import effect
from weighbridge.report.text.formatting import SPACE, TOO_FEW, percent_short, percent_text, quantities, quantity
from weighbridge.report.text.matrix import Cell, MatrixRow
from weighbridge.report.text.units import value_unit
from weighbridge.report.text.verdicts import broke_instead, resolved_text
from weighbridge.statistics.sample_size import MIN_BLOCKS_VERDICT

WORDS = {
    "equivalent": "no difference",
    "inconclusive": "cannot tell yet",
    "few": TOO_FEW,
    "none": "no complete block",
}
"""What a cell says where it shows no cost. A verdict that is not here is said as it is."""

ABSENT = "–"
"""What stands where an environment was not measured in a workload."""


def verdict_words(shown_as: str) -> str:
    """Return what a cell, or a count of cells, is called: "no difference", "cannot tell yet"."""
    return WORDS.get(shown_as, shown_as)


def large(row: MatrixRow, cell: Cell | None) -> str:
    """Return what stands in a cell in large letters: a cost that is different, a value of few blocks, or words."""
    if cell is None:
        return ABSENT
    compared = [each for _, each in cell.rows]
    name = cell.environment if cell.shown_as == "few" else next((n for each in compared for n in each.unresolved), "")
    return resolved_text(_large(row, cell), name, *compared)


def _large(row: MatrixRow, cell: Cell) -> str:
    if cell.shown_as == "few" and row.levels == 1:
        report, compared = cell.rows[0]
        return quantity(compared.value, report.unit, value_unit(report))
    found = [effect(report, compared) for report, compared in cell.different]
    known = [each for each in found if each is not None]
    if cell.shown_as != "different" or not known:
        return verdict_words(cell.shown_as)
    if row.levels == 1:
        return f"{known[0].short} {known[0].relation}"
    percents = [c.cost.percent.estimate for _, c in cell.different if c.cost and c.cost.percent]
    if not percents or len({each.word for each in known}) > 1:
        return "different"
    low, high = min(map(abs, percents)), max(map(abs, percents))
    spread = percent_short(high)
    if len(percents) > 1 and percent_short(low) != spread:
        least, unit = percent_short(low).rsplit(SPACE, 1)
        spread = f"{least if spread.endswith(unit) else percent_short(low)} to {spread}"
    return f"{spread} {known[0].word}"


def small(row: MatrixRow, cell: Cell | None) -> str:
    """Return what stands below it: the interval, at how many levels, or that the blocks are too few."""
    if cell is None:
        return ""
    if row.levels > 1:
        at = len(cell.different) if cell.shown_as == "different" else 0
        broke = sum(compared.broke is not None for _, compared in cell.rows)
        told = [f"at {at} of {row.levels} levels"] if at else []
        return ", ".join([*told, *([f"broke at {broke}"] if broke else [])])
    report, compared = cell.rows[0]
    if cell.shown_as == "few":
        return TOO_FEW
    if cell.shown_as == "broke":
        return broke_instead(compared)
    found = effect(report, compared)
    if found is None:
        return ""
    return found.interval if cell.shown_as == "different" else whole(row, cell)


def whole(row: MatrixRow, cell: Cell) -> str:
    """Return the cost with its interval and direction: ``0.4 % [-1.0, 1.9] slower``; empty of many levels."""
    if row.levels > 1:
        return ""
    found = effect(*cell.rows[0])
    return f"{found.amount} {found.relation}" if found else ""


WHY = {WithinNoise.code: "within the noise floor", NotAfterHolm.code: "not after Holm"}
"""Why an interval without zero decides nothing, by the code of its remark."""


def cost_range(row: MatrixRow, cell: Cell) -> str:
    """Return how much it may cost, below 0 a gain, where that is not decided: ``cost [-1.0, 1.9]``; else nothing."""
    compared = cell.rows[0][1]
    cost = compared.cost if cell.shown_as == "inconclusive" and row.levels == 1 else None
    if cost is None or cost.percent is None or cost.blocks < MIN_BLOCKS_VERDICT:
        return ""
    text = percent_text(cost.percent, cost.blocks)
    why = [words for code, words in WHY.items() if code in {remark.code for remark in compared.remarks}]
    return "\n".join([f"cost {text[text.index('[') :]}", *why[:1]])


def native(analysis: Analysis, row: MatrixRow) -> str:
    """Return the baseline's absolute value: ``native 16.9 Gbit/s``; of many levels from the lowest to the highest."""
    values = [report.baseline_value for report in row.reports if report.baseline_value is not None]
    unit = row.reports[0].unit
    if not values:
        return f"{analysis.baseline} {ABSENT}"
    ends = [min(values), max(values)] if len(values) > 1 else values
    text = f"{analysis.baseline} {quantities(ends, unit, ' to ', value_unit(*row.reports))}"
    return resolved_text(text, analysis.baseline, *(each for report in row.reports for each in report.comparisons))
