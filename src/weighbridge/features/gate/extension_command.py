"""More rounds for `weighbridge gate`, with further interim looks. Only an undecided gate imports this."""

import sys
from dataclasses import dataclass, replace
from pathlib import Path

import typer

from weighbridge.analysis.analyse import analyse
from weighbridge.cli import approval
from weighbridge.cli.output import err
from weighbridge.cli.progress import show
from weighbridge.cli.runs import continuable
from weighbridge.cli.variables import without_values
from weighbridge.errors import Interrupted, TrialsFailed, WeighbridgeError
from weighbridge.features.gate.gate_looks import GatePlan, Spending, blocks_of, plan_gate, share_of_end, spending_of
from weighbridge.features.gate.questions import JudgedRun, Questions, keep_look
from weighbridge.report import html
from weighbridge.runner import living
from weighbridge.runner import run as running
from weighbridge.runner.signals import interruptible
from weighbridge.runner.stopper import BlockExtender
from weighbridge.store.extensions import extend
from weighbridge.store.run import RunStore


def extend_run(
    run: Path, questions: Questions, judged: JudgedRun, limit_s: float, *, yes: bool, allow_concurrent: bool
) -> WeighbridgeError | Interrupted | None:
    """Run more rounds. Return the error that ended them early, so that the gate can first print its answer."""
    if judged.plan is None or not judged.plan.goes_on:
        err().print("no round fits into the time of --extend: allow more time", markup=False)
        return None
    try:
        approval.confirm_continued(run, yes=yes)
    except (typer.Abort, KeyboardInterrupt):
        err().print("no more rounds will run", markup=False)
        return None
    looks = ", ".join(map(str, judged.plan.looks[1:]))
    err().print(f"undecided: running more rounds, with further looks after {looks} rounds", markup=False)
    extension = GateExtender(questions, limit_s, judged.plan)
    extender = BlockExtender(limit_s, extension.total_blocks)
    try:
        living.require_alone(allow_concurrent=allow_concurrent)
        with interruptible(), show(run) as progress, continuable(run, *without_values(sys.argv[1:])):
            running.run_study(None, run, progress, _write_page, extender=extender)
    except TrialsFailed:
        pass  # the gate reports each comparison as far as it was measured
    except (WeighbridgeError, Interrupted) as ended:
        extension.finish(run, interrupted=True)  # the error rate of the looks so far is spent
        return ended
    extension.finish(run)
    return None


def _write_page(store: RunStore) -> None:
    """Rewrite the run's page."""
    html.write_html(store, store.directory / "report.html", analyse(store))


@dataclass(slots=True)
class GateExtender:
    """Judges a run at each interim look, stores the look, and requests the rounds up to the next look.

    ``plan`` was made at the first look. If the run was unfinished and reaches another number of rounds first, the
    remaining looks are planned again.
    """

    questions: Questions
    limit_s: float
    plan: GatePlan

    def total_blocks(self, store: RunStore) -> int | None:
        """Judge the run. Return the total of rounds at the next look, or None if nothing is left to decide."""
        blocks, spending = blocks_of(store), spending_of(store)
        completed = spending.now is not None and not self.plan.share(blocks)  # part of a round since the last look
        if completed or blocks not in self.plan.looks:
            self.plan = plan_gate(store, self.limit_s, spending)
        if spending.now is not None:
            spending = replace(spending, now=self.plan.share(blocks))
        return self._look(store, spending, self.plan.following(blocks))

    def _look(self, store: RunStore, spending: Spending, following: int | None) -> int | None:
        gate = self.questions.judge_at(store, spending).gate
        until = following if gate.open else None
        keep_look(store, spending, gate.open, until)
        return until

    def finish(self, run: Path, *, interrupted: bool = False) -> None:
        """Judge the run once more if the session ended before the next planned look.

        At the end of the time, this look gets the remaining error rate of the plan. After an interruption it gets
        only the share of the next look, so that enough remains for a continued run.
        """
        with RunStore(run, writable=True) as store:
            looks, blocks, spending = store.gate_looks(), blocks_of(store), spending_of(store)
            pending = bool(looks) and looks[-1].until is not None
            if spending.now is not None and looks:
                share = self.plan.next_share if interrupted else self.plan.left
                now = share(looks[-1].blocks) * share_of_end(store)
                spending = replace(spending, now=now or spending.now)
            if spending.now is not None or pending:
                self._look(store, spending, None)
            if pending:
                extend(store, running.study_of(store).file.repetitions, blocks)
