"""What a gate says, in words: a line for each comparison, and the answer."""

from dataclasses import dataclass
from typing import Literal

from weighbridge.analysis.gate import Finding, Reason
from weighbridge.analysis.gate_answer import Gate
from weighbridge.analysis.results import Analysis
from weighbridge.model.text import one_line
from weighbridge.report.text.environments import layers_of_environment
from weighbridge.report.text.formatting import SPACE
from weighbridge.report.text.limits import WHY, cost_words
from weighbridge.report.text.verdicts import broke_instead
from weighbridge.statistics.sample_size import MIN_BLOCKS_VERDICT

Outcome = Literal["passed", "failed", "undecided"]
OUTCOMES: dict[str, Outcome] = {"kept": "passed", "exceeded": "failed", "undecided": "undecided"}
"""What a gate calls what becomes of a limit."""
_BUDGET: dict[Reason, str] = {
    "above": "over its budget",
    "within": "within its budget",
    "interval": "the budget is inside the interval",
    "blocks": f"fewer than {MIN_BLOCKS_VERDICT} blocks",
    "many": "over its budget by its own interval, but not among so many comparisons",
}
_MARGIN: dict[Reason, str] = {
    "above": "worse than the margin",
    "within": "no worse than the margin",
    "interval": "the margin is inside the interval",
    "many": "worse than the margin by its own interval, but not among so many comparisons",
}


@dataclass(frozen=True, slots=True)
class GateRow:
    """One comparison against one budget, as people read it."""

    name: str
    """``bridge.tcp.throughput``, with the hypervisors that the environment was measured in."""
    budget: str
    """``<= 35 %``."""
    outcome: Outcome
    cost: str
    """With its interval; empty where there is none."""
    why: str
    blocks: int
    change: bool = False
    """Whether it is the change against another run."""

    @property
    def sentence(self) -> str:
        """All of it in a line."""
        change = "change " if self.change else ""
        blocks = f" ({self.blocks} blocks)" if self.blocks > 1 else ""
        cost = f"{change}{self.cost}{blocks}, " if self.cost else ""
        return f"{self.outcome}: {self.name}: {cost}{'margin' if self.change else 'budget'} {self.budget}: {self.why}"


def gate_rows(gate: Gate, analysis: Analysis) -> tuple[GateRow, ...]:
    """Give every finding of a gate in words, without control characters."""
    return tuple(_row(finding, analysis) for finding in gate.findings)


def _row(finding: Finding, analysis: Analysis) -> GateRow:
    target, limit = finding.target, finding.limit
    within = layers_of_environment(target.environment, analysis)
    return GateRow(
        name=one_line(f"{target.name} {within}".strip()),
        budget=f"{limit.sign}{SPACE}{limit.amount:g}{SPACE}{one_line(limit.unit)}".strip(),
        outcome=OUTCOMES[finding.outcome],
        cost=cost_words(finding) if finding.cost is not None else "",
        why=one_line(_why(finding)),
        blocks=finding.blocks,
        change=finding.change,
    )


def _why(finding: Finding) -> str:
    row = finding.target.row
    if finding.reason == "broke" and row is not None and row.broke_instead:
        return broke_instead(row)
    own = _MARGIN if finding.change else _BUDGET
    return own.get(finding.reason) or WHY[finding.reason]


def gate_answer(gate: Gate) -> str:
    """Give the answer in one sentence: ``Gate failed: 1 of 3 comparisons is over budget, 1 is undecided.``"""
    count = dict.fromkeys(OUTCOMES, 0)
    for finding in gate.findings:
        count[finding.outcome] += 1
    whole = len(gate.findings)
    looks = f", after {gate.looks} looks" if gate.looks > 1 else ""
    if gate.answer == "untrusted":
        return "Gate untrusted: the A/A arm of a session shows a cost where there is none, which tells nothing."
    if gate.answer == "passed":
        what = "comparison is" if whole == 1 else "comparisons are all"
        return f"Gate passed: {whole} {what} within budget{looks}."
    parts = [f"{count['exceeded']} of {whole} over budget"] if count["exceeded"] else []
    parts += [f"{count['undecided']} of {whole} undecided"] if count["undecided"] else []
    return f"Gate {gate.answer}: {', '.join(parts)}{looks}."
