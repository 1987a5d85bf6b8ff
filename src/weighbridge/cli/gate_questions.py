"""What a gate is asked, and its judgement of a run at a look."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeVar

from weighbridge.analysis.analyse import analyse
from weighbridge.analysis.budget import parse_budget, parse_margin
from weighbridge.analysis.compared_run import ComparedRun, OtherQuestionError, read_run
from weighbridge.analysis.gate_answer import Gate, judge_gate, looks_beside
from weighbridge.analysis.gate_changes import judge_changes
from weighbridge.analysis.gate_plan import GatePlan, plan_gate
from weighbridge.analysis.gate_spending import Spending, spending_of
from weighbridge.analysis.limit import Limit, LimitError
from weighbridge.analysis.results import Analysis
from weighbridge.cli.output import WRONG_COMMAND_LINE, fail
from weighbridge.cli.runs import run_directory
from weighbridge.errors import RunDirectoryError
from weighbridge.model.text import printable
from weighbridge.report.text.gate import GateRow, gate_answer, gate_rows
from weighbridge.store.run import RunStore

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Judged:
    """A run as a gate sees it at a look. ``plan``: this look and those to come, where it may be extended."""

    gate: Gate
    analysis: Analysis
    against: str | None
    """The id of the earlier run."""
    spending: Spending
    plan: GatePlan | None = None

    @property
    def rows(self) -> tuple[GateRow, ...]:
        """Every finding in words."""
        return gate_rows(self.gate, self.analysis)

    @property
    def answer(self) -> str:
        """The answer in a sentence."""
        return gate_answer(self.gate)


@dataclass(frozen=True, slots=True)
class Questions:
    """The budgets, and the earlier run with its margin."""

    budgets: tuple[Limit, ...]
    margin: Limit | None = None
    against: ComparedRun | None = None

    def judged(self, store: RunStore, limit_s: float | None = None) -> Judged:
        """Judge a run; ``limit_s``: as the first look of those that so much more time is planned to have.

        What the budgets name and the run does not have ends the command.
        """
        spending = spending_of(store)
        if limit_s is None:
            return self.at(store, spending)
        plan = plan_gate(store, limit_s, spending)
        if plan.goes_on and spending.now is not None:
            spending = replace(spending, now=plan.shares[0])
        return replace(self.at(store, spending), plan=plan)

    def at(self, store: RunStore, spending: Spending) -> Judged:
        """Judge a run with so much of the error to spend."""
        if self.against is None or self.margin is None:
            analysis = analyse(store)
            return Judged(
                _checked(lambda: judge_gate(self.budgets, store, analysis, spending)), analysis, None, spending
            )
        now, against, margin = read_run(store), self.against, self.margin
        if now.analysis.run_id == against.analysis.run_id:
            fail(f"--against: {against.name} is the run that is judged: name an earlier one", WRONG_COMMAND_LINE)
        plan = against.analysis.context.plan if against.analysis.context else None
        looks = max(looks_beside(store), plan.looks if plan else 1)
        changes = _checked(lambda: judge_changes(margin, now, against, spending, looks))
        gate = _checked(lambda: judge_gate(self.budgets, store, now.analysis, spending, changes))
        return Judged(gate, now.analysis, against.analysis.run_id, spending)


def questions(budgets: Sequence[str], against: Path | None, margin: str | None) -> Questions:
    """Give what the command line asks; what is wrong with it ends the command."""
    if not budgets and against is None and margin is None:
        told = "say what costs may be: --budget 'ENVIRONMENT.WORKLOAD.METRIC<=35%', or --against RUN --margin 3%"
        fail(told, WRONG_COMMAND_LINE)
    if margin is not None and against is None:
        fail(
            "--margin is by what costs may have become worse: name the earlier run, --against RUN", WRONG_COMMAND_LINE
        )
    if against is not None and margin is None:
        fail("--against needs a margin: by what costs may have become worse, like --margin 3%", WRONG_COMMAND_LINE)
    asked = _checked(lambda: tuple(parse_budget(each) for each in budgets))
    if against is None or margin is None:
        return Questions(asked)
    most = _checked(lambda: parse_margin(margin), "--margin")
    with RunStore(run_directory(against)) as store:
        return Questions(asked, most, read_run(store, str(against)))


def _checked(judge: Callable[[], T], told: str = "--budget") -> T:
    """What is made of an expression; a wrong one is a wrong command line."""
    try:
        return judge()
    except OtherQuestionError as error:
        raise RunDirectoryError(f"--against: {printable(str(error))}") from None
    except LimitError as error:
        fail(f"{told}: {printable(str(error))}", WRONG_COMMAND_LINE)
