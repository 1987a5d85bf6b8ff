"""What would decide the things that a run left open: more rounds, or the reason why no number of rounds is named."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from weighbridge.analysis.remarks.cost import TargetMissed, Unproven
from weighbridge.analysis.remarks.network import NoPath
from weighbridge.analysis.results import Analysis, Comparison, MetricReport
from weighbridge.model.address import CellId
from weighbridge.statistics.precision import MOST_BLOCKS
from weighbridge.statistics.sample_size import MIN_BLOCKS_SIGNED_RANK

Aim = Literal["reliable-verdicts", "undecided", "target-missed"]
ObstacleCode = Literal[
    "some-undecided", "too-close", "narrower-interval", "unknown-rounds", "disturbed", "control-failed", "unproven",
    "no-path", "failed-trials",
]  # fmt: skip
_NEVER: Sequence[tuple[str, ObstacleCode]] = ((Unproven.code, "unproven"), (NoPath.code, "no-path"))
"""The remarks on a cost that no number of rounds decides."""


@dataclass(frozen=True, slots=True)
class MoreRounds:
    """A number of rounds for which a run should be continued, and their ``aim``."""

    aim: Aim
    rounds: int
    """The total number of rounds."""
    seconds: float | None
    """The expected time of the further rounds; None if it is not known."""
    compared: int
    """The number of primary costs."""
    undecided: int = 0
    """The number of undecided primary costs whose needed rounds can be estimated."""
    decided: int = 0
    """The number of these that the rounds would probably decide."""


@dataclass(frozen=True, slots=True)
class Obstacle:
    """Why no number of rounds is named for undecided primary costs."""

    code: ObstacleCode
    undecided: int = 0
    decided: int = 0
    """The number of ``undecided`` costs that more rounds would decide."""


def more_rounds(analysis: Analysis) -> MoreRounds | None:
    """Return how many rounds would decide what is open in the primary metrics; None if no number would.

    An unfinished run has none, because it comes to its own end. Exploratory verdicts come first, then undecided ones
    (unless more rounds would decide less than half of them), then a target precision that was missed.
    """
    rows = [(report, row) for report in analysis.headlines for row in report.comparisons if not row.aa]
    if analysis.unfinished or analysis.trust.trusted is False or not any(row.cost is not None for _, row in rows):
        return None
    if analysis.exploratory:
        rounds = max(MIN_BLOCKS_SIGNED_RANK, analysis.plan.planned_blocks or 0)
        seconds = _seconds(analysis, [(*each, rounds) for each in rows])
        return MoreRounds("reliable-verdicts", rounds, seconds, len(rows))
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
    rounds = max((each for _, _, each in needed), default=MOST_BLOCKS + 1)
    if rounds > MOST_BLOCKS:
        return None
    aim: Aim = "undecided" if undecided else "target-missed"
    return MoreRounds(aim, rounds, _seconds(analysis, needed), len(rows), open_, len(undecided))


def obstacle(analysis: Analysis) -> Obstacle | None:
    """Return why `more_rounds` has no number for an undecided primary metric, or that the control failed."""
    if analysis.trust.trusted is False:
        return Obstacle("control-failed")
    rows = [row for report in analysis.headlines for row in report.comparisons if row.shown_as == "inconclusive"]
    if not rows or analysis.unfinished or more_rounds(analysis) is not None:
        return None
    seen = [row for row in rows if row.visible is not None]
    if not seen:
        return Obstacle(_hindrance(analysis, rows), len(rows))
    decided = sum(row.visible is not None and row.visible.blocks is not None for row in seen)
    if 0 < decided < len(seen):
        return Obstacle("some-undecided", len(seen), decided)
    if analysis.equivalence and all(
        row.cost and row.cost.scale == "ratio" and not row.never_equivalent for row in seen
    ):
        return Obstacle("too-close", len(seen))
    return Obstacle("narrower-interval", len(seen))


def _hindrance(analysis: Analysis, rows: Sequence[Comparison]) -> ObstacleCode:
    """Return why the needed rounds of these undecided comparisons cannot be estimated."""
    if analysis.disturbance.heavy:
        return "disturbed"
    codes = {remark.code for row in rows for remark in row.remarks}
    for remark, code in _NEVER:
        if remark in codes:
            return code
    return "failed-trials" if all(row.cost is None for row in rows) else "unknown-rounds"


def _seconds(analysis: Analysis, needed: list[tuple[MetricReport, Comparison, int]]) -> float | None:
    """Return the time that the workloads need for further rounds; None if it is not known."""
    seconds: dict[CellId, float] = {}
    for report, row, blocks in needed:
        further_s = (blocks - row.blocks) * analysis.context.block_s(report.cell)
        seconds[report.cell] = max(seconds.get(report.cell, 0.0), further_s)
    total = sum(seconds.values())
    return total if total > 0 else None
