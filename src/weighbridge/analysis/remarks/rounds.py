"""Remarks about the rounds of a comparison: how many there are, and whether the run is finished."""

from collections.abc import Iterator
from dataclasses import dataclass

from weighbridge.analysis.context import Context
from weighbridge.analysis.remarks.rules import ComparisonInRun, about_comparison, about_run
from weighbridge.analysis.results import Remark, RemarkPlace
from weighbridge.model.address import ArmId
from weighbridge.statistics.sample_size import MIN_BLOCKS_VERDICT


@dataclass(frozen=True, slots=True)
class AAArm(Remark):
    """The comparison is between the baseline and itself."""

    code = "control"
    baseline: str


@about_comparison(10)
def _aa_arm(comparison: ComparisonInRun) -> Iterator[Remark]:
    if comparison.row.aa:
        yield AAArm(comparison.context.baseline)


@dataclass(frozen=True, slots=True)
class NoBlocks(Remark):
    """No block has a value of both sides."""

    code = "no-rounds"


@about_comparison(40)
def _no_blocks(comparison: ComparisonInRun) -> Iterator[Remark]:
    if comparison.row.cost is None and not comparison.row.broke_instead:
        yield NoBlocks()


@dataclass(frozen=True, slots=True)
class OneBlock(Remark):
    """A single block gives no interval."""

    code = "one-round"
    placement = RemarkPlace.COST


@about_comparison(50)
def _one_block(comparison: ComparisonInRun) -> Iterator[Remark]:
    if comparison.row.blocks == 1:
        yield OneBlock()


@dataclass(frozen=True, slots=True)
class Exploratory(Remark):
    """There are fewer than ten blocks."""

    code = "exploratory"
    placement = RemarkPlace.COST
    rounds: int


@about_comparison(60)
def _exploratory(comparison: ComparisonInRun) -> Iterator[Remark]:
    if comparison.row.blocks != 1 and comparison.row.exploratory:
        yield Exploratory(comparison.row.blocks)


@dataclass(frozen=True, slots=True)
class Incomplete(Remark):
    """There are fewer blocks than were planned or tried."""

    code = "incomplete"
    rounds: int
    planned: int


@about_comparison(70)
def _incomplete(comparison: ComparisonInRun) -> Iterator[Remark]:
    row, report, context = comparison.row, comparison.report, comparison.context
    if row.cost is None:
        return
    baseline, other = (context.of_arm(ArmId(report.cell, each)) for each in comparison.sides)
    planned = context.plan.planned_blocks or len({trial.block for trial in other})
    broke = {trial.block for trial in (*baseline, *other) if trial.broke}
    if row.blocks + len(broke) < planned:
        yield Incomplete(row.blocks, planned)


@dataclass(frozen=True, slots=True)
class Extended(Remark):
    """The number of blocks was changed; ``looked_after`` has the number of finished blocks at each change.

    ``rounds`` is how many ran, or the target of an unfinished run. ``by_gate`` is whether a gate asked for some.
    """

    code = "extended"
    planned: int
    rounds: int
    looked_after: tuple[int, ...]
    by_gate: bool = False


@about_run(40)
def _extended(context: Context) -> Iterator[Remark]:
    looked = [change for change in context.plan.changes if change.after >= MIN_BLOCKS_VERDICT]
    if looked:
        plan = context.plan
        blocks = looked[-1].blocks if plan.unfinished else plan.blocks
        by_gate = bool(plan.changes_of_gates)
        yield Extended(looked[0].planned, blocks, tuple(change.after for change in looked), by_gate)


@dataclass(frozen=True, slots=True)
class Unfinished(Remark):
    """The run has not reached its end. ``rounds`` have run; ``planned`` is None if it stops on precision."""

    code = "unfinished"
    placement = RemarkPlace.SCREEN
    rounds: int
    planned: int | None


@about_run(50)
def _unfinished(context: Context) -> Iterator[Remark]:
    plan = context.plan
    if plan.unfinished and plan.blocks:
        yield Unfinished(plan.blocks, plan.planned_blocks)


@about_comparison(80)
def _unfinished_run(comparison: ComparisonInRun) -> Iterator[Remark]:
    yield from _unfinished(comparison.context)


@about_comparison(90)
def _extended_run(comparison: ComparisonInRun) -> Iterator[Remark]:
    yield from _extended(comparison.context)
