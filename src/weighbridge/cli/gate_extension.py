"""More blocks of a run that a gate cannot decide on: it looks at them as they come, at looks that are planned."""

from dataclasses import dataclass, replace
from pathlib import Path

from weighbridge.analysis.analyse import analyse
from weighbridge.analysis.gate_plan import GatePlan, plan_gate
from weighbridge.analysis.gate_spending import Spending, blocks_of, spending_of
from weighbridge.cli.gate_looks import keep_look
from weighbridge.cli.gate_questions import Questions
from weighbridge.report.html import write_html
from weighbridge.runner.run import study_of
from weighbridge.runner.session import Further
from weighbridge.store.extensions import extend
from weighbridge.store.run import RunStore


@dataclass(slots=True)
class Extension:
    """Judges a run at each look, keeps the look with the run, and asks for the blocks up to the next one.

    ``plan`` is that of the look at what there was. Where the run comes to another number of blocks first (it was not
    finished), the looks are planned anew, by what is left then.
    """

    asked: Questions
    limit_s: float
    plan: GatePlan

    @property
    def further(self) -> Further:
        """What the run asks whether it is to go on."""
        return Further(self.limit_s, self.wanted)

    def wanted(self, store: RunStore) -> int | None:
        """Look at the run; how many blocks it is to have at the next look, None if nothing is left to decide."""
        done, spending = blocks_of(store), spending_of(store)
        completed = spending.now is not None and not self.plan.share(done)  # a half block, since the last look
        if completed or not self.plan.plans(done):
            self.plan = plan_gate(store, self.limit_s, spending)
        if spending.now is not None:
            spending = replace(spending, now=self.plan.share(done))
        return self._look(store, spending, self.plan.following(done))

    def _look(self, store: RunStore, spending: Spending, following: int | None) -> int | None:
        gate = self.asked.at(store, spending).gate
        until = following if gate.open else None
        keep_look(store, spending, gate.open, until)
        return until

    def finish(self, run: Path, *, interrupted: bool = False) -> None:
        """Look at what there is where the session was over before the next look.

        Where the time was over, that look has what the plan has left; after an interruption what the next one was to
        have, so that there is enough for whoever goes on.
        """
        with RunStore(run, writable=True) as store:
            looks, done, spending = store.gate_looks(), blocks_of(store), spending_of(store)
            pending = bool(looks) and looks[-1].until is not None
            if spending.now is not None and looks:
                share = self.plan.next_share if interrupted else self.plan.left
                spending = replace(spending, now=share(looks[-1].blocks) or spending.now)
            if spending.now is not None or pending:
                self._look(store, spending, None)
            if pending:
                extend(store, study_of(store).file.repetitions, done)

    def write_page(self, store: RunStore) -> None:
        """Write the run's page anew."""
        write_html(store, store.directory / "report.html", analyse(store))
