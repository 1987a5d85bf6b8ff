"""What more of a run would decide: the blocks that it takes, and the time."""

from collections.abc import Sequence
from dataclasses import dataclass

from weighbridge.analysis.remarks import TargetMissed
from weighbridge.analysis.results import EXTENDED_ERROR, Analysis, Comparison, MetricReport
from weighbridge.report.text.formatting import level, margin
from weighbridge.report.text.verdicts import duration_text
from weighbridge.statistics.precision import MOST_BLOCKS
from weighbridge.statistics.sample_size import MIN_BLOCKS_SIGNED_RANK


@dataclass(frozen=True, slots=True)
class NextBlocks:
    """So many ``blocks`` in all, and a sentence on what they would give."""

    blocks: int
    sentence: str
    """``next: about 24 blocks (2 min more) would likely settle what is undecided``."""


def continuing(command: str, directory: str, *, yes: bool, variables: Sequence[str] = ()) -> tuple[str, ...]:
    """Return the words of the command that continues the run in ``directory``.

    ``variables``: those from which the secrets of its study take their values.
    """
    options = (word for name in variables for word in ("--env", name))
    return (command, "--out", directory, *options, *(("--yes",) if yes else ()))


def first_set(variables: Sequence[str]) -> str:
    """Say which environment variables the user has to set before a run can continue."""
    values = "value" if len(variables) == 1 else "values"
    listed = " and ".join(filter(None, (", ".join(variables[:-1]), variables[-1])))
    return f"First set {listed} in your environment to the {values} that this run used."


def next_blocks(analysis: Analysis) -> NextBlocks | None:
    """Return how many blocks would decide what is open in the headlines; None where nothing is, or no number would.

    Nor of an unfinished run, which comes to its own end. First come blocks too few to be sure of, then what is
    undecided, then a precision that was not reached.
    """
    rows = [(report, row) for report in analysis.headlines for row in report.comparisons if not row.aa]
    if analysis.unfinished or analysis.trust.trusted is False or not any(row.cost is not None for _, row in rows):
        return None
    if analysis.exploratory:
        planned = analysis.context.plan.planned_blocks if analysis.context is not None else None
        blocks, end = max(MIN_BLOCKS_SIGNED_RANK, planned or 0), "give verdicts that are not exploratory"
        more = _more(analysis, [(*each, blocks) for each in rows])
        return NextBlocks(blocks, f"next: {blocks} blocks{more} {end}{_price(analysis)}")
    undecided = [
        (report, row, row.visible.blocks)
        for report, row in rows
        if row.visible is not None and row.visible.blocks is not None
    ]
    imprecise = [
        (report, row, remark.predicted_blocks)
        for report, row in rows
        for remark in row.remarks
        if isinstance(remark, TargetMissed) and remark.predicted_blocks is not None
    ]
    needed = undecided or imprecise
    blocks = max((each for _, _, each in needed), default=MOST_BLOCKS + 1)
    if blocks > MOST_BLOCKS:
        return None
    end = _settles(rows, len(undecided)) if undecided else f"would likely reach {margin(analysis.target or 0.0)}"
    return NextBlocks(blocks, f"next: about {blocks} blocks{_more(analysis, needed)} {end}{_price(analysis)}")


def nothing_settles(analysis: Analysis) -> str:
    """Return why no number of blocks is named where a headline is undecided; empty where none is, or one is named."""
    rows = [row for report in analysis.headlines for row in report.comparisons if row.shown_as == "inconclusive"]
    if not rows or analysis.unfinished or next_blocks(analysis) is not None:
        return ""
    if analysis.trust.trusted is False:
        return "next: measure again; no number of blocks settles an untrusted run"
    seen = [row for row in rows if row.visible is not None]
    if not seen:
        return "next: more blocks would not settle it; the remarks say why"
    if analysis.equivalence and all(
        row.cost and row.cost.scale == "ratio" and not row.never_equivalent for row in seen
    ):
        return f"next: {MOST_BLOCKS} blocks would not settle it; longer trials or a quieter machine may"
    return "next: more blocks narrow it; how many would settle it is not known"


def _price(analysis: Analysis) -> str:
    """What more blocks of a run that was looked at do to its false alarms; empty of one that was extended before."""
    plan = analysis.context.plan if analysis.context is not None else None
    if plan is None or analysis.extended or not plan.next_looks.further:
        return ""
    return f", with up to about {level(EXTENDED_ERROR)} false alarms instead of {level(0.05)}"


def _settles(rows: Sequence[tuple[MetricReport, Comparison]], number: int) -> str:
    """What so many blocks do for the comparisons that are undecided (of four, about three)."""
    undecided = sum(row.visible is not None for _, row in rows)
    return f"would likely settle {f'{number} of {undecided}' if number < undecided else 'what is'} undecided"


def _more(analysis: Analysis, needed: list[tuple[MetricReport, Comparison, int]]) -> str:
    """The further time, as each workload needs it; empty where it is not known."""
    if analysis.context is None:
        return ""
    seconds: dict[object, float] = {}
    for report, row, blocks in needed:
        block_s = analysis.context.block_s(report.workload, report.level)
        key = report.workload, report.level
        seconds[key] = max(seconds.get(key, 0.0), (blocks - row.blocks) * block_s)
    total = sum(seconds.values())
    return f" ({duration_text(total)} more)" if total > 0 else ""
