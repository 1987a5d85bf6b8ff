"""The rounds and the time that would decide what a run left undecided."""

from collections.abc import Sequence
from dataclasses import dataclass

from weighbridge.analysis.remarks.cost import TargetMissed, Unproven
from weighbridge.analysis.remarks.network import NoPath
from weighbridge.analysis.results import EXTENDED_ERROR, Analysis, Comparison, MetricReport
from weighbridge.model.address import CellId
from weighbridge.model.flag import FlagCode
from weighbridge.report.text.formatting import level, margin, whole
from weighbridge.report.text.verdicts import duration_text
from weighbridge.statistics.precision import MOST_BLOCKS
from weighbridge.statistics.sample_size import MIN_BLOCKS_SIGNED_RANK
from weighbridge.statistics.verdicts import ALPHA

_NEVER = {Unproven.code: "the control failed", NoPath.code: "the network path is unknown"}
"""Why no number of rounds decides a cost, by the code of its remark."""


@dataclass(frozen=True, slots=True)
class NextBlocks:
    """A number of ``blocks`` in all, and a sentence about their use."""

    blocks: int
    sentence: str
    """``Next: about 24 rounds (2 min more) would probably decide every undecided comparison.``"""


def continuing(command: str, directory: str, *, yes: bool, variables: Sequence[str] = ()) -> tuple[str, ...]:
    """Return the words of the command that continues the run in ``directory``.

    ``variables``: the environment variables that hold the secrets of its study.
    """
    options = (word for name in variables for word in ("--env", name))
    return (command, "--out", directory, *options, *(("--yes",) if yes else ()))


def first_set(variables: Sequence[str]) -> str:
    """Return which environment variables the user has to set before a run can continue."""
    values = "value" if len(variables) == 1 else "values"
    listed = " and ".join(filter(None, (", ".join(variables[:-1]), variables[-1])))
    return f"First set {listed} in your environment to the {values} that this run used."


def next_blocks(analysis: Analysis) -> NextBlocks | None:
    """Return how many rounds would decide what is open in the primary metrics; None if no number would.

    An unfinished run has none, because it comes to its own end. Exploratory verdicts come first, then undecided ones
    (unless more rounds would decide less than half of them), then a target precision that was missed.
    """
    rows = [(report, row) for report in analysis.headlines for row in report.comparisons if not row.aa]
    if analysis.unfinished or analysis.trust.trusted is False or not any(row.cost is not None for _, row in rows):
        return None
    if analysis.exploratory:
        planned = analysis.plan.planned_blocks
        blocks = max(MIN_BLOCKS_SIGNED_RANK, planned or 0)
        more = _more(analysis, [(*each, blocks) for each in rows])
        verdicts = "a reliable verdict" if len(rows) == 1 else "reliable verdicts"
        return NextBlocks(blocks, f"Next: {blocks} rounds{more} give {verdicts}.{_price(analysis)}")
    undecided = [
        (report, row, row.visible.blocks)
        for report, row in rows
        if row.visible is not None and row.visible.blocks is not None
    ]
    imprecise = [
        (report, row, remark.predicted_rounds)
        for report, row in rows
        for remark in row.remarks
        if isinstance(remark, TargetMissed) and remark.predicted_rounds is not None
    ]
    open_ = sum(row.visible is not None and row.shown_as == "inconclusive" for _, row in rows)
    if undecided and 2 * len(undecided) < open_:
        return None
    needed = undecided or imprecise
    blocks = max((each for _, _, each in needed), default=MOST_BLOCKS + 1)
    if blocks > MOST_BLOCKS:
        return None
    end = _settles(open_, len(undecided)) if undecided else f"would probably reach {margin(analysis.target or 0.0)}"
    return NextBlocks(blocks, f"Next: about {blocks} rounds{_more(analysis, needed)} {end}.{_price(analysis)}")


def weigh_again(open_: NextBlocks) -> str:
    """Return the next step for a run that cannot be continued."""
    return f"Next: weigh again with --rounds {open_.blocks}, which would probably decide more."


def nothing_settles(analysis: Analysis) -> str:
    """Return why no number of rounds is named for an undecided primary metric; empty if none is, or one is named."""
    rows = [row for report in analysis.headlines for row in report.comparisons if row.shown_as == "inconclusive"]
    if not rows or analysis.unfinished or next_blocks(analysis) is not None:
        return ""
    if analysis.trust.trusted is False:
        return ""
    seen = [row for row in rows if row.visible is not None]
    if not seen:
        return _hindrance(analysis, rows)
    decided = sum(row.visible is not None and row.visible.blocks is not None for row in seen)
    if 0 < decided < len(seen):
        return f"More rounds would decide only {decided} of {len(seen)} undecided comparisons."
    if analysis.equivalence and all(
        row.cost and row.cost.scale == "ratio" and not row.never_equivalent for row in seen
    ):
        return f"{whole(MOST_BLOCKS)} rounds would not decide it. Longer trials or a quieter machine might."
    return "More rounds narrow the interval; how many would decide it is not known."


def _hindrance(analysis: Analysis, rows: Sequence[Comparison]) -> str:
    """Return why no number of rounds is known for these undecided comparisons."""
    if analysis.disturbance.heavy:
        who = "other programs" if analysis.disturbance.took(FlagCode.OTHER_WORK) else "the hypervisor"
        return f"More rounds would not help, because {who} disturbed the run."
    codes = {remark.code for row in rows for remark in row.remarks}
    why = next((words for code, words in _NEVER.items() if code in codes), "")
    if why:
        return f"More rounds would not decide it, because {why}."
    if all(row.cost is None for row in rows):
        return "More rounds would help only if their trials succeed."
    return "More rounds might decide it; how many is not known."


def _price(analysis: Analysis) -> str:
    """Return the effect of added rounds on false alarms; empty without an earlier look, or after an extension."""
    if analysis.extended or not analysis.plan.next_looks.further:
        return ""
    return (
        f" Adding rounds after seeing results raises the false-alarm rate from {level(ALPHA)} to about "
        f"{level(EXTENDED_ERROR)}."
    )


def _settles(undecided: int, number: int) -> str:
    """Return how many of the undecided comparisons are decided, if each needs a number of rounds that is known."""
    if number < undecided:
        return f"would probably decide {number} of {undecided} undecided comparisons"
    if undecided == 1:
        return "would probably decide the undecided comparison"
    return f"would probably decide {'both' if undecided == 2 else f'all {undecided}'} undecided comparisons"


def _more(analysis: Analysis, needed: list[tuple[MetricReport, Comparison, int]]) -> str:
    """Return the time that the workloads need for further rounds; empty if it is not known."""
    seconds: dict[CellId, float] = {}
    for report, row, blocks in needed:
        further_s = (blocks - row.blocks) * analysis.context.block_s(report.cell)
        seconds[report.cell] = max(seconds.get(report.cell, 0.0), further_s)
    total = sum(seconds.values())
    return f" ({duration_text(total)} more)" if total > 0 else ""
