"""Requirements on costs in words: a sentence for each limit, the rows and the answer of a gate."""

from dataclasses import dataclass
from typing import Literal

from weighbridge.analysis.comparisons import difference_unit
from weighbridge.analysis.gate import Finding, Gate, Reason
from weighbridge.analysis.requirement import unit_of_bound
from weighbridge.analysis.results import Analysis
from weighbridge.model.text import one_line, printable
from weighbridge.report.text.environments import layers_of_environment
from weighbridge.report.text.formatting import (
    NO_INTERVAL,
    SPACE,
    difference_interval,
    level,
    percent_interval,
    percent_limits,
    percentage,
    plural,
    with_unit,
)
from weighbridge.report.text.trust import others_words
from weighbridge.report.text.verdicts import broke_instead
from weighbridge.statistics.sample_size import MIN_BLOCKS_SIGNED_RANK, MIN_BLOCKS_VERDICT

RequirementOutcome = Literal["passed", "failed", "undecided"]
OUTCOMES: dict[str, RequirementOutcome] = {"kept": "passed", "exceeded": "failed", "undecided": "undecided"}
"""Outcomes of requirements in the words of a gate."""
_WHY: dict[Reason, str] = {
    "blocks": f"fewer than {MIN_BLOCKS_VERDICT} rounds",
    "no-cost": "no complete round",
    "broke": "the server was overloaded",
    "hidden": "a bottleneck hides the cost",
    "no-ratio": "a value was zero or negative: no percentage",
    "noise": "within the noise floor",
    "failed": "more than one trial in ten failed or was overloaded",
    "untrusted": "the control failed",
    "path": "the network path is unknown",
    "durability": "the environment is less durable",
    "other-unit": "its unit or direction differs in the earlier run",
    "disturbed": "other load on the machine differed between the runs",
    "own-budget": "compared in another unit: give it its own budget",
    "spent": "earlier gates used up this run's error budget: measure a new run",
}
"""Reasons why a requirement is undecided, for every kind of requirement."""
_WHY_BY_WORD: dict[str, dict[Reason, str]] = {
    "limit": {"interval": "the limit is inside the interval"},
    "budget": {
        "above": "over its budget",
        "within": "within its budget",
        "interval": "the budget is inside the interval",
        "many": "over its budget, but not significant after Holm's correction",
    },
    "margin": {
        "above": "beyond the margin",
        "within": "within the margin",
        "interval": "the margin is inside the interval",
        "many": "beyond the margin, but not significant after Holm's correction",
    },
}
"""Reasons as in `_WHY` that depend on the kind of requirement."""


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
    why: str
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
        return f"{self.figures}: {self.why}"

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
            name=one_line(_name(finding, analysis)),
            budget=f"{finding.requirement.sign}{SPACE}{_bound(finding)}",
            outcome=OUTCOMES[finding.outcome],
            cost=_cost(finding) if finding.cost is not None else "",
            why=one_line(_why(finding)),
            blocks=finding.blocks,
            change=finding.requirement.about == "change",
        )
        for finding in gate.findings
    )


def limit_sentence(finding: Finding, analysis: Analysis) -> str:
    """Return a limit's outcome in words: the comparison, its cost, the limit, and why it is undecided."""
    cost = f"{_cost(finding)}, " if finding.cost is not None else ""
    text = f"{_name(finding, analysis)}: {cost}limit {_bound(finding)}"
    if finding.outcome != "undecided":
        return f"limit {finding.outcome}: {text}"
    return f"undecided: {text}, {_why(finding)}"


def _name(finding: Finding, analysis: Analysis) -> str:
    """The comparison as a requirement writes it, with the hypervisors that its environment was measured in."""
    return f"{finding.target.name} {layers_of_environment(finding.target.environment, analysis)}".strip()


def _bound(finding: Finding) -> str:
    return with_unit(f"{finding.requirement.bound:g}", printable(finding.requirement.unit))


def _cost(finding: Finding) -> str:
    """Return a finding's cost with its interval and the interval's level, which a report does not share."""
    cost, row, report = finding.cost, finding.target.row, finding.target.report
    if cost is None or report is None or row is None or row.cost is None:
        return "no cost"
    difference = row.cost.scale == "difference"
    if finding.blocks < 2 or finding.confidence is None:
        return difference_interval(cost, report.unit) if difference else f"{percentage(cost.estimate)} {NO_INTERVAL}"
    text = difference_interval(cost, report.unit) if difference else percent_interval(cost)
    return f"{text} ({level(finding.confidence)} interval)"


def _why(finding: Finding) -> str:
    row = finding.target.row
    if finding.reason == "broke" and row is not None and row.broke_instead:
        return broke_instead(row)
    if finding.reason == "no-ratio" and finding.requirement.about == "cost" and row is not None:
        unit = difference_unit(finding.target.report.unit) if finding.target.report is not None else ""
        return f"{_WHY['no-ratio']}; write '{finding.target.name}{finding.requirement.sign}1 {unit}'"
    if finding.reason == "own-budget" and (report := finding.target.report) is not None:
        return f"{_WHY['own-budget']}, such as '{finding.target.name}<=5{unit_of_bound(report)}'"
    return _WHY_BY_WORD[finding.requirement.spelling.word].get(finding.reason) or _WHY[finding.reason]


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
        "intervals differ."
    )


def next_sentence(gate: Gate) -> str:
    """Return the command that would decide an undecided gate; empty if more rounds would not, or it is decided."""
    return "Next: repeat the command with --extend 10min to run more rounds." if gate.open else ""


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
        return f"{name}, {one_line(_why(finding))}"
    return f"the interval of {name}, {percent_limits(finding.cost)}, includes the {spelling} of {_bound(finding)}"
