"""`weighbridge gate`: its questions, its interim looks at a run, more rounds if it is undecided, and its output.

Every interim look is stored with the run before its result is printed.
"""

import contextlib
import json
import os
import secrets
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeVar

import typer

from weighbridge.analysis.analyse import analyse
from weighbridge.analysis.compared_run import ComparedRun, OtherQuestionError, read_run
from weighbridge.analysis.gate import Gate, failed_workloads, judge_gate
from weighbridge.analysis.gate_changes import judge_changes
from weighbridge.analysis.gate_looks import (
    GatePlan,
    Spending,
    blocks_of,
    look_of,
    looks_of_both,
    plan_gate,
    share_of_end,
    spending_of,
)
from weighbridge.analysis.requirement import BUDGET, MARGIN, Requirement, RequirementError, parse_requirement
from weighbridge.analysis.results import Analysis
from weighbridge.cli import approval
from weighbridge.cli.commands.results import Annotations, GateOptions
from weighbridge.cli.messages import WRONG_COMMAND_LINE, fail
from weighbridge.cli.output import err, out, print_json
from weighbridge.cli.progress import show
from weighbridge.cli.runs import continuable, run_directory
from weighbridge.cli.variables import without_values
from weighbridge.errors import (
    Interrupted,
    LimitExceeded,
    LimitUndecided,
    RunDirectoryError,
    TrialsFailed,
    Untrusted,
    WeighbridgeError,
)
from weighbridge.model.address import ArmId
from weighbridge.model.decisions import gate_looks_text
from weighbridge.model.quantity import TIME_UNITS, parse_quantity
from weighbridge.model.text import printable
from weighbridge.report import html
from weighbridge.report.export.gate import (
    bmf,
    gate_json,
    gate_markdown,
    github_commands,
    gitlab_code_quality,
    junit_xml,
)
from weighbridge.report.screen import print_screen
from weighbridge.report.terminal_layout import styled
from weighbridge.report.text.gate import (
    GateRow,
    disturbance_sentence,
    gate_answer,
    gate_rows,
    intervals_sentence,
    next_sentence,
)
from weighbridge.runner import living
from weighbridge.runner import run as running
from weighbridge.runner.signals import interruptible
from weighbridge.runner.stopper import BlockExtender
from weighbridge.store.extensions import extend
from weighbridge.store.reader import GATE_LOOKS
from weighbridge.store.run import DATABASE, RunStore

T = TypeVar("T")
GATE_STYLES = {"failed": "bold red", "undecided": "yellow", "passed": "green"}
"""The style of each outcome, worst first."""


def gate(options: GateOptions) -> None:
    """Judge a run, with more rounds if it is undecided. Raises the answer unless the gate has passed."""
    outputs = Outputs(options.junit, options.markdown, options.annotations, options.bmf, options.as_json)
    outputs.require_possible()
    questions, limit_s = _questions(options.budget, options.against, options.margin), _seconds(options.extend)
    run, ended = run_directory(options.run), None
    with _opened_to_look(run) as (store, keeps):
        judged = questions.judge(store, limit_s)
        _keep_first_look(store, judged.spending, judged.gate.open, keeps=keeps)
        extends = limit_s is not None and bool(judged.gate.open)
        refused = [] if extends else outputs.write(judged, store)
    if extends and limit_s is not None:
        ended = _extend(run, questions, judged, limit_s, yes=options.yes, allow_concurrent=options.allow_concurrent)
        with RunStore(run) as store:
            judged = questions.judge(store)
            refused = outputs.write(judged, store)
    for sentence in refused:
        err().print(sentence, markup=False)
    if ended is not None:
        raise ended
    _end(judged, refused, run)


def _seconds(extend: str | None) -> float | None:
    """Return the time for more rounds in seconds. Exit with a message if it is wrong."""
    if extend is None:
        return None
    try:
        return parse_quantity(extend, TIME_UNITS, "a time")
    except ValueError as wrong:
        fail(f"--extend: {wrong}", WRONG_COMMAND_LINE)


def _end(judged: "JudgedRun", refused: list[str], run: Path) -> None:
    """Raise the result of the gate as an error, unless the gate has passed and all output is written."""
    if judged.gate.answer == "undecided" and (failed := judged.failed):
        why = f"No round of {', '.join(failed)} is complete, because trials failed: see 'weighbridge report {run}'"
        raise TrialsFailed(f"{judged.answer} {why}")
    ends = {"failed": LimitExceeded, "undecided": LimitUndecided, "untrusted": Untrusted}
    if (end := ends.get(judged.gate.answer)) is not None:
        raise end(judged.answer)
    if refused:
        raise WeighbridgeError(f"{judged.answer} But some output could not be written: see the messages above")


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
        """Judge a run; with ``limit_s``, as the first of the interim looks that fit into that many more seconds.

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
            gate = checked(lambda: judge_gate(self.budgets, store, analysis, spending))
            return JudgedRun(gate, analysis, None, spending)
        now, against, margin = read_run(store), self.against, self.margin
        if now.analysis.run_id == against.analysis.run_id:
            fail(f"--against: {against.name} is the checked run itself: name an earlier run", WRONG_COMMAND_LINE)
        plan = against.analysis.context.plan if against.analysis.context else None
        looks = looks_of_both(store, plan)
        changes = checked(lambda: judge_changes(margin, now, against, spending, looks))
        gate = checked(lambda: judge_gate(self.budgets, store, now.analysis, spending, changes))
        return JudgedRun(gate, now.analysis, against.analysis, spending)


def _questions(budgets: Sequence[str], against: Path | None, margin: str | None) -> Questions:
    """Return the questions of the command line. Exit with a message if they are wrong."""
    if not budgets and against is None and margin is None:
        message = "a gate needs --budget 'ENVIRONMENT.WORKLOAD.METRIC<=35%', or --against RUN --margin 3%"
        fail(message, WRONG_COMMAND_LINE)
    if margin is not None and against is None:
        fail("--margin needs the earlier run: --against RUN", WRONG_COMMAND_LINE)
    if against is not None and margin is None:
        fail("--against needs a margin, such as --margin 3%", WRONG_COMMAND_LINE)
    required = checked(lambda: tuple(parse_requirement(each, BUDGET) for each in budgets))
    if against is None or margin is None:
        return Questions(required)
    most = checked(lambda: parse_requirement(margin, MARGIN), "--margin: ")
    with RunStore(run_directory(against)) as store:
        return Questions(required, most, read_run(store, str(against)))


def checked(judge: Callable[[], T], prefix: str = "--budget: ") -> T:
    """Return the result of ``judge``. A wrong requirement exits as a wrong command line."""
    try:
        return judge()
    except OtherQuestionError as error:
        raise RunDirectoryError(f"--against: {printable(str(error))}") from None
    except RequirementError as error:
        fail(f"{prefix}{printable(str(error))}", WRONG_COMMAND_LINE)


@contextmanager
def _opened_to_look(run: Path) -> Iterator[tuple[RunStore, bool]]:
    """Open a run to judge it, and yield with it whether a new interim look can be stored with the run.

    The run is opened for writing only if this look is new. Raises RunDirectoryError if another process is writing a
    run that has grown since its last look.
    """
    with RunStore(run) as store:
        is_new = spending_of(store).now is not None
        keeps = is_new and os.access(run, os.W_OK) and os.access(run / DATABASE, os.W_OK)
        if not keeps:
            yield store, False
            return
    with RunStore(run, writable=True) as store:
        yield store, True


def _keep_look(store: RunStore, spending: Spending, still_open: tuple[ArmId, ...], until: int | None) -> None:
    """Store the present interim look with the run; ``until`` is the number of rounds that it requests.

    If the look was stored before, only ``until`` changes.
    """
    look = look_of(store, spending, still_open).model_copy(update={"until": until})
    store.set_info(GATE_LOOKS, gate_looks_text((*spending.earlier, look)))


def _keep_first_look(store: RunStore, spending: Spending, still_open: tuple[ArmId, ...], *, keeps: bool) -> None:
    """Store an interim look with the run if it is new. Print a note if the run is not writable."""
    if spending.now is None:
        return
    if keeps:
        _keep_look(store, spending, still_open, None)
    else:
        message = (
            f"{store.directory} is not writable, so this interim look is not stored. A later gate on a longer copy"
        )
        err().print(f"note: {message} does not count it, so its error rate can be higher", markup=False)


def _extend(
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
        living.require_alone(beside_others=allow_concurrent)
        with interruptible(), show() as progress, continuable(run, *without_values(sys.argv[1:])):
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
        if completed or not self.plan.plans(blocks):
            self.plan = plan_gate(store, self.limit_s, spending)
        if spending.now is not None:
            spending = replace(spending, now=self.plan.share(blocks))
        return self._look(store, spending, self.plan.following(blocks))

    def _look(self, store: RunStore, spending: Spending, following: int | None) -> int | None:
        gate = self.questions.judge_at(store, spending).gate
        until = following if gate.open else None
        _keep_look(store, spending, gate.open, until)
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


@dataclass(frozen=True, slots=True)
class Outputs:
    """The output for CI and for the terminal. If one file cannot be written, the others still are."""

    junit: Path | None = None
    markdown: Path | None = None
    annotations: Annotations | None = None
    bmf: Path | None = None
    as_json: bool = False

    def require_possible(self) -> None:
        """Exit before anything is measured if two outputs share a destination or a folder is missing."""
        if self.as_json and self.annotations is not None:
            fail("--json and --annotations both use standard output: choose one", WRONG_COMMAND_LINE)
        paths = [path for path in (self.junit, self.markdown, self.bmf) if path is not None]
        if len({path.absolute() for path in paths}) < len(paths):
            fail("--junit, --markdown and --bmf need different files", WRONG_COMMAND_LINE)
        for path in paths:
            why = (
                "is a folder: name a file in it" if path.is_dir()
                else "cannot be written: its folder is missing" if not path.parent.is_dir()
                else "cannot be written" if not os.access(path if path.exists() else path.parent, os.W_OK)
                else ""
            )  # fmt: skip
            if why:
                fail(f"{path} {why}", WeighbridgeError.exit_code)

    def write(self, judged: JudgedRun, store: RunStore) -> list[str]:
        """Print and write everything. Return a sentence for each file that could not be written."""
        self._print(judged, store)
        study, rows = judged.analysis.study, judged.rows
        files: list[tuple[Path | None, str, Callable[[], bytes]]] = [
            (self.junit, "wb", lambda: junit_xml(study, rows, judged.answer)),
            (self.markdown, "ab", lambda: gate_markdown(study, judged.answer, rows).encode()),
            (self.bmf, "wb", lambda: json.dumps(bmf(judged.analysis), indent=2, allow_nan=False).encode() + b"\n"),
        ]
        refused = []
        for path, mode, content in files:
            if path is None:
                continue
            try:
                with path.open(mode) as file:
                    file.write(content())
            except OSError as error:
                refused.append(f"{path} cannot be written: {error.strerror}")
        return refused

    def _print(self, judged: JudgedRun, store: RunStore) -> None:
        if self.as_json:
            print_json(gate_json(judged.gate, judged.analysis, judged.against))
        elif self.annotations is Annotations.GITLAB:
            print(gitlab_code_quality(judged.rows, _path_in_project(store.directory)), end="", flush=True)
        else:
            stopped = secrets.token_hex(16)  # so that GitHub's runner cannot read commands in names of the run
            if self.annotations is Annotations.GITHUB:
                print(f"::stop-commands::{stopped}", flush=True)
            if out().is_terminal and self.annotations is None:
                _print_screen(judged)
            else:
                _print_lines(judged)
            if self.annotations is Annotations.GITHUB:
                print(f"::{stopped}::", flush=True)
                print(github_commands(judged.rows), end="", flush=True)


def _print_lines(judged: JudgedRun) -> None:
    """Print one line per finding, for logs."""
    answer = judged.answer if judged.gate.answer == "passed" else ""  # any other answer is the final message
    sentences = (judged.disturbance, *judged.sentences, *judged.notes, answer)
    for sentence in filter(None, sentences):
        out().print(sentence, markup=False, soft_wrap=True)


def _print_screen(judged: JudgedRun) -> None:
    """Print the findings that fit on the screen, failed ones first, and the number of hidden ones."""
    rows = zip(judged.rows, judged.sentences, strict=True)
    ordered = sorted(rows, key=lambda each: [*GATE_STYLES].index(each[0].outcome))
    print_screen(
        out(),
        [styled(judged.disturbance, "yellow")] if judged.disturbance else [],
        [()],
        [styled(sentence, GATE_STYLES[row.outcome]) for row, sentence in ordered],
        lambda hidden: [
            *(styled(note, "dim") for note in judged.notes),
            *([styled(f"{hidden} more findings: use --json or --markdown FILE", "dim")] if hidden else []),
            *([styled(judged.answer, "bold green")] if judged.gate.answer == "passed" else []),
        ],
    )


def _path_in_project(run: Path) -> str:
    """Return the run's path within the folder of the GitLab job, or its name if it is outside of that folder."""
    project = Path(os.environ.get("CI_PROJECT_DIR") or Path.cwd())
    with contextlib.suppress(ValueError, OSError):
        return run.resolve().relative_to(project.resolve()).as_posix()
    return run.resolve().name
