"""More blocks of a run that a gate cannot decide on: it looks at them as they come, at looks that are planned."""

from dataclasses import dataclass, field
from pathlib import Path

from weighbridge.analysis.analyse import analyse
from weighbridge.analysis.gate_answer import Spending, blocks_of, spending_of
from weighbridge.analysis.gate_plan import GatePlan, plan_gate
from weighbridge.cli.gate_questions import Questions
from weighbridge.model.gate_look import GateLook, gate_looks_text
from weighbridge.report.html import write_html
from weighbridge.runner.further import Further
from weighbridge.runner.run import study_of
from weighbridge.store.extensions import extend
from weighbridge.store.reader import GATE_LOOKS
from weighbridge.store.run import RunStore


@dataclass(slots=True)
class Extension:
    """Judges a run at each look, keeps the look with the run, and asks for the blocks up to the next one."""

    asked: Questions
    limit_s: float
    _plan: GatePlan | None = field(default=None, init=False)

    @property
    def further(self) -> Further:
        """What the run asks whether it is to go on."""
        return Further(self.limit_s, self.wanted)

    def wanted(self, store: RunStore) -> int | None:
        """Look at the run; how many blocks it is to have at the next look, None if nothing is left to decide."""
        done = blocks_of(store)
        before = spending_of(store).looks
        if self._plan is None:
            self._plan = plan_gate(store, self.limit_s, Spending(before).left)
        return self._look(store, Spending(before, self._plan.share(done)), done, self._plan.following(done))

    def _look(self, store: RunStore, spending: Spending, done: int, following: int | None) -> int | None:
        gate = self.asked.at(store, spending).gate
        until = following if gate.open else None
        look = GateLook(blocks=done, share=spending.now or 0.0, open=gate.open, until=until)
        store.set_info(GATE_LOOKS, gate_looks_text((*spending.looks, look)))
        return until

    def finish(self, run: Path) -> None:
        """Look at what there is where the time was over before the next look, which has what the plan has left."""
        with RunStore(run, writable=True) as store:
            looks, done = store.gate_looks(), blocks_of(store)
            if self._plan is None or not looks or looks[-1].until is None:
                return
            self._look(store, Spending(looks, self._plan.left(looks[-1].blocks)), done, None)
            extend(store, study_of(store).file.repetitions, done)

    def write_page(self, store: RunStore) -> None:
        """Write the run's page anew."""
        write_html(store, store.directory / "report.html", analyse(store))
