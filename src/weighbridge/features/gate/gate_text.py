"""Requirements on costs in words: a sentence for each limit, the rows and the answer of a gate."""

from dataclasses import dataclass
from typing import Literal

from weighbridge.analysis.limits import Finding
from weighbridge.analysis.results import Analysis
from weighbridge.features.gate.gate_analysis import Gate
from weighbridge.model.text import one_line
from weighbridge.report.text.formatting import SPACE, level, percent_limits, plural
from weighbridge.report.text.limits import bound_words, cost_words, finding_name, why_words
from weighbridge.report.text.next_step import VERSIONS_GONE
from weighbridge.report.text.trust import others_words
from weighbridge.statistics.sample_size import MIN_BLOCKS_SIGNED_RANK

RequirementOutcome = Literal["passed", "failed", "undecided"]
OUTCOMES: dict[str, RequirementOutcome] = {"kept": "passed", "exceeded": "failed", "undecided": "undecided"}
"""Outcomes of requirements in the words of a gate."""
EXTENSION_S = 600.0
"""The time for more rounds that an undecided gate suggests."""


@dataclass(frozen=True, slots=True)
class GateRow:
    """One comparison against one budget, as people read it."""

    name: str
    """``bridge.tcp.throughput``, with the hypervisors that the environment was measured in."""
    budget: str
    """``<= 35%``."""
    outcome: RequirementOutcome
    cost: str
    """With its interval and the level of the interval; empty without a cost."""
    reason: str
    blocks: int
    change: bool = False
    """Whether it is the change against another run."""

    @property
    def block_count(self) -> str:
        """``12``; ``6, exploratory``, because fewer than ten rounds give only exploratory verdicts."""
        return f"{self.blocks}, exploratory" if 1 < self.blocks < MIN_BLOCKS_SIGNED_RANK else str(self.blocks)

    @property
    def sentence(self) -> str:
        """The whole row in one line."""
        return f"{self.figures}: {self.reason}"

    @property
    def figures(self) -> str:
        """The row without its reason, in one line."""
        change = "change " if self.change else ""
        few = ", exploratory" if self.blocks < MIN_BLOCKS_SIGNED_RANK else ""
        rounds = f" ({self.blocks} rounds{few})" if self.blocks > 1 else ""
        cost = f"{change}{self.cost}{rounds}, " if self.cost else ""
        return f"{self.outcome}: {self.name}: {cost}{'margin' if self.change else 'budget'} {self.budget}"


def gate_rows(gate: Gate, analysis: Analysis) -> tuple[GateRow, ...]:
    """Return every finding of a gate in words, without control characters."""
    return tuple(
        GateRow(
            name=one_line(finding_name(finding, analysis)),
            budget=f"{finding.requirement.sign}{SPACE}{bound_words(finding)}",
            outcome=OUTCOMES[finding.outcome],
            cost=cost_words(finding) if finding.cost is not None else "",
            reason=one_line(why_words(finding)),
            blocks=finding.blocks,
            change=finding.requirement.operand == "change",
        )
        for finding in gate.findings
    )


def disturbance_sentence(now: Analysis, earlier: Analysis) -> str:
    """Return the load of other programs in both runs; empty if there was none in either."""
    if not now.disturbances and not earlier.disturbances:
        return ""
    return f"other load: earlier run {others_words(earlier)}; this run {others_words(now)}"


def intervals_sentence(gate: Gate) -> str:
    """Return why a gate's intervals are not at 95%, unlike the report's; empty if they are."""
    levels = sorted({finding.confidence for finding in gate.findings} - {None, 0.95}, key=lambda each: each or 0.0)
    if not levels:
        return ""
    ends = " to ".join(dict.fromkeys(level(each) for each in (levels[0], levels[-1]) if each is not None))
    return (
        f"This gate uses {ends} intervals, because repeated gates on one run share a 5% error rate. The report's "
        "intervals can differ."
    )


def next_sentence(gate: Gate) -> str:
    """Return what would decide an undecided gate; empty if more rounds would not, or it is decided."""
    if not gate.open:
        return ""
    if gate.is_kept_file:
        return "A kept file cannot get more rounds: measure again, or judge the run's folder with --extend."
    if not gate.lasting:
        return f"This run cannot get more rounds: {VERSIONS_GONE}."
    return f"Next: repeat the command with --extend {EXTENSION_S / 60:g}min to run more rounds."


def gate_answer(gate: Gate) -> str:
    """Return the answer in one sentence: ``Gate failed: 1 of 3 comparisons over budget, 1 of 3 undecided.``"""
    count = dict.fromkeys(OUTCOMES, 0)
    for finding in gate.findings:
        count[finding.outcome] += 1
    total = len(gate.findings)
    looks = f", after {gate.looks} interim looks" if gate.looks > 1 else ""
    costs = f"{gate.not_judged} {'cost' if gate.not_judged == 1 else 'costs'}"
    left_out = f" Not judged: {costs} in other units." if gate.not_judged else ""
    if gate.answer == "untrusted":
        return "The control failed: two copies of the baseline differ, so the gate cannot judge any cost."
    if gate.answer == "passed":
        what = "comparison is" if total == 1 else "comparisons are all"
        return f"Gate passed: {total} {what} within budget{looks}.{left_out}"
    if total == 1 and gate.answer == "undecided":
        return f"Gate undecided{looks}: {_undecided(gate.findings[0])}.{left_out}"
    parts = [f"{count['exceeded']} of {plural(total, 'comparison')} over budget"] if count["exceeded"] else []
    parts += [f"{count['undecided']} of {plural(total, 'comparison')} undecided"] if count["undecided"] else []
    return f"Gate {gate.answer}: {', '.join(parts)}{looks}.{left_out}"


def _undecided(finding: Finding) -> str:
    """Return why a comparison is undecided: ``the interval of a.b.c, 31% to 38%, includes the budget of 35%``."""
    name, spelling = one_line(finding.target.name), finding.requirement.spelling.word
    if finding.reason != "interval" or finding.cost is None or finding.unit != "%":
        return f"{name}, {one_line(why_words(finding))}"
    limits = percent_limits(finding.cost)
    return f"the interval of {name}, {limits}, includes the {spelling} of {bound_words(finding)}"
