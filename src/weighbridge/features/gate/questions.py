"""The questions of `weighbridge gate`, and a run as judged by them."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from weighbridge.analysis.analyse import analyse
from weighbridge.analysis.limits import failed_workloads
from weighbridge.analysis.requirement import BUDGET, MARGIN, Requirement, parse_requirement
from weighbridge.analysis.results import Analysis
from weighbridge.cli.limits import checked
from weighbridge.cli.messages import WRONG_COMMAND_LINE, fail
from weighbridge.cli.runs import run_directory
from weighbridge.errors import RunDirectoryError
from weighbridge.features.gate.compared_run import ComparedRun, OtherQuestionError, read_run
from weighbridge.features.gate.gate_analysis import Gate, judge_gate
from weighbridge.features.gate.gate_changes import judge_changes
from weighbridge.features.gate.gate_looks import GatePlan, Spending, look_of, looks_of_both, plan_gate, spending_of
from weighbridge.features.gate.gate_text import (
    GateRow,
    disturbance_sentence,
    gate_answer,
    gate_rows,
    intervals_sentence,
    next_sentence,
)
from weighbridge.model.address import ArmId
from weighbridge.model.decisions import gate_looks_text
from weighbridge.model.text import printable
from weighbridge.store.reader import GATE_LOOKS
from weighbridge.store.run import RunStore

BUDGET_OPTION = "--budget: "
"""The beginning of a message about a budget."""
_COMMENT = re.compile(r"(?:^|\s)#")
_LARGEST_FILE = 2**20


@dataclass(frozen=True, slots=True)
class JudgedRun:
    """A run as judged at an interim look. ``plan`` has this and the following looks if the run can be extended."""

    gate: Gate
    analysis: Analysis
    against: Analysis | None
    """The earlier run."""
    spending: Spending
    plan: GatePlan | None = None

    @property
    def rows(self) -> tuple[GateRow, ...]:
        """Every finding as a sentence."""
        return gate_rows(self.gate, self.analysis)

    @property
    def sentences(self) -> list[str]:
        """Every row in one line; an undecided row without its reason if the answer gives that."""
        alone = len(self.rows) == 1 and self.gate.answer == "undecided"
        return [row.figures if alone else row.sentence for row in self.rows]

    @property
    def disturbance(self) -> str:
        """A sentence about the load of other programs in both runs; empty if there was none."""
        return "" if self.against is None else disturbance_sentence(self.analysis, self.against)

    @property
    def failed(self) -> list[str]:
        """The workloads of findings without a complete round, because trials failed."""
        return failed_workloads(self.gate.findings, self.analysis)

    @property
    def notes(self) -> list[str]:
        """The sentences below the findings: the reason for another interval level, and the next step."""
        return [*filter(None, (intervals_sentence(self.gate), next_sentence(self.gate)))]

    @property
    def answer(self) -> str:
        """The answer as a sentence."""
        return gate_answer(self.gate)


@dataclass(frozen=True, slots=True)
class Questions:
    """The budgets, and the earlier run with its margin."""

    budgets: tuple[Requirement, ...]
    margin: Requirement | None = None
    against: ComparedRun | None = None

    def judge(self, store: RunStore, limit_s: float | None = None) -> JudgedRun:
        """Judge a run. With ``limit_s``, this is the first of the interim looks that fit into that many more seconds.

        Exits with a message if a budget names something that the run does not have.
        """
        spending = spending_of(store)
        if limit_s is None:
            return self.judge_at(store, spending)
        plan = plan_gate(store, limit_s, spending)
        if plan.goes_on and spending.now is not None:
            spending = replace(spending, now=plan.shares[0])
        return replace(self.judge_at(store, spending), plan=plan)

    def judge_at(self, store: RunStore, spending: Spending) -> JudgedRun:
        """Judge a run with a given share of the error rate."""
        if self.against is None or self.margin is None:
            analysis = analyse(store)
            gate = checked(lambda: judge_gate(self.budgets, store, analysis, spending), BUDGET_OPTION)
            return JudgedRun(gate, analysis, None, spending)
        now, against, margin = read_run(store), self.against, self.margin
        if now.analysis.run_id == against.analysis.run_id:
            fail(f"--against: {against.name} is the checked run itself: name an earlier run", WRONG_COMMAND_LINE)
        looks = looks_of_both(store, against.analysis.plan)
        try:
            changes = judge_changes(margin, now, against, spending, looks)
        except OtherQuestionError as error:
            raise RunDirectoryError(f"--against: {printable(str(error))}") from None
        gate = checked(lambda: judge_gate(self.budgets, store, now.analysis, spending, changes), BUDGET_OPTION)
        return JudgedRun(gate, now.analysis, against.analysis, spending)


def questions_of(
    budgets: Sequence[str], against: Path | None, margin: str | None, budget_file: Path | None = None
) -> Questions:
    """Return the questions of the command line. Exit with a message if they are wrong."""
    if not budgets and budget_file is None and against is None and margin is None:
        message = "a gate needs --budget 'ENVIRONMENT.WORKLOAD.METRIC<=35%', or --against RUN --margin 3%"
        fail(message, WRONG_COMMAND_LINE)
    if margin is not None and against is None:
        fail("--margin needs the earlier run: --against RUN", WRONG_COMMAND_LINE)
    if against is not None and margin is None:
        fail("--against needs a margin, such as --margin 3%", WRONG_COMMAND_LINE)
    required = checked(lambda: tuple(parse_requirement(each, BUDGET) for each in budgets), BUDGET_OPTION)
    required += tuple(_budgets_in(budget_file)) if budget_file is not None else ()
    if against is None or margin is None:
        return Questions(required)
    most = checked(lambda: parse_requirement(margin, MARGIN), "--margin: ")
    with RunStore(run_directory(against)) as store:
        return Questions(required, most, read_run(store, str(against)))


def _budgets_in(file: Path) -> Iterator[Requirement]:
    """Yield the budgets of a file, one per line. Exit with a message if it has none, or if a line is not a budget."""
    try:
        with file.open(errors="replace") as lines:
            text = lines.read(_LARGEST_FILE + 1)
    except OSError as error:
        fail(f"--budget-file: {file} cannot be read: {error.strerror}", WRONG_COMMAND_LINE)
    if len(text) > _LARGEST_FILE:
        fail(f"--budget-file: {file} has more than {_LARGEST_FILE:,} characters", WRONG_COMMAND_LINE)
    written = {number: _COMMENT.split(line)[0].strip() for number, line in enumerate(text.splitlines(), 1)}
    if not any(written.values()):
        fail(f"--budget-file: {file} has no budget", WRONG_COMMAND_LINE)
    for number, budget in written.items():
        if budget:
            yield checked(partial(parse_requirement, budget, BUDGET), f"{file}:{number}: ")


def keep_look(store: RunStore, spending: Spending, still_open: tuple[ArmId, ...], until: int | None) -> None:
    """Store the present interim look with the run; ``until`` is the number of rounds that it requests.

    If the look was stored before, only ``until`` changes.
    """
    look = look_of(store, spending, still_open).model_copy(update={"until": until})
    store.set_info(GATE_LOOKS, gate_looks_text((*spending.earlier, look)))
