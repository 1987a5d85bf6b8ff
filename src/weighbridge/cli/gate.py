"""`weighbridge gate`: what it is asked, its looks at a run, more blocks where it cannot decide, and what it writes.

A look is kept with the run before anybody hears what it came to.
"""

import contextlib
import json
import os
import secrets
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import typer

from weighbridge.cli.output import (
    WRONG_COMMAND_LINE,
    BesideOthersOption,
    EnvOption,
    JsonFlag,
    err,
    examples,
    fail,
    out,
    print_json,
    without_values,
)
from weighbridge.errors import (
    Interrupted,
    LimitExceeded,
    LimitUndecided,
    RunDirectoryError,
    TrialsFailed,
    Untrusted,
    WeighbridgeError,
)

if TYPE_CHECKING:
    from weighbridge.analysis.compared_run import ComparedRun
    from weighbridge.analysis.gate import Gate
    from weighbridge.analysis.gate_looks import GatePlan, Spending
    from weighbridge.analysis.requirement import Requirement
    from weighbridge.analysis.results import Analysis
    from weighbridge.model.decisions import ComparedArm
    from weighbridge.report.text.gate import GateRow
    from weighbridge.store.run import RunStore

T = TypeVar("T")
EXAMPLES = (
    "weighbridge gate RUN --budget 'bridge.tcp.throughput<=35%' --budget '*.latency_p99<=10%'",
    "weighbridge gate RUN --budget '*.throughput<=35%' --extend 10min --yes",
    "weighbridge gate RUN --budget '*.throughput<=35%' --extend 10min --env API_TOKEN",
    "weighbridge gate RUN --against OLD-RUN --margin 3%",
    "weighbridge gate RUN --budget '*.throughput<=35%' --junit gate.xml --markdown gate.md --annotations github",
)


GATE_STYLES = {"failed": "bold red", "undecided": "yellow", "passed": "green"}
"""How a finding is shown by its outcome, the gravest first."""


class Annotations(StrEnum):
    """Whose remarks beside the code are made."""

    GITHUB = "github"
    GITLAB = "gitlab"


def register(app: typer.Typer) -> None:
    """Add the command."""

    @app.command(epilog=examples(*EXAMPLES))
    def gate(
        run: Path = typer.Argument(help="A run directory."),
        budget: list[str] = typer.Option(
            [],
            "--budget",
            metavar="BUDGET",
            help="A cost limit: ENVIRONMENT.WORKLOAD.METRIC<=35%, with * for any part. Repeatable.",
        ),
        against: Path | None = typer.Option(
            None, "--against", help="An earlier run; no headline cost may have risen above it by more than --margin."
        ),
        margin: str | None = typer.Option(
            None, "--margin", metavar="PERCENT", help="Allowed rise for --against, such as 3%."
        ),
        extend: str | None = typer.Option(
            None,
            "--extend",
            metavar="TIME",
            help="If undecided, run more blocks for at most this long (10min).",
        ),
        yes: bool = typer.Option(False, "--yes", "-y", help="Run more blocks without asking."),
        env: list[str] = EnvOption,
        beside_others: bool = BesideOthersOption,
        junit: Path | None = typer.Option(None, "--junit", help="Write a JUnit report."),
        markdown: Path | None = typer.Option(None, "--markdown", help="Append a Markdown summary to this file."),
        annotations: Annotations | None = typer.Option(
            None,
            "--annotations",
            help="github: also print workflow commands; gitlab: print only a code quality report.",
        ),
        bmf: Path | None = typer.Option(None, "--bmf", help="Write the costs in Bencher Metric Format."),
        as_json: bool = JsonFlag,
    ) -> None:
        """Check a run's costs against budgets: passed (exit code 0), failed (11), undecided (12), untrusted (10).

        A cost passes if its whole interval is within the budget, fails if all of it is above, and is undecided in
        between. A gate that is undecided because trials failed ends with 9.
        """
        from weighbridge.cli.runs import run_directory
        from weighbridge.store.run import RunStore

        outputs = Outputs(junit, markdown, annotations, bmf, as_json)
        outputs.require_possible()
        questions, limit_s = _questions(budget, against, margin), _seconds(extend)
        run, ended = run_directory(run), None
        with _opened_to_look(run) as (store, keeps):
            judged = questions.judge(store, limit_s)
            _keep_first_look(store, judged.spending, judged.gate.open, keeps=keeps)
            extends = limit_s is not None and bool(judged.gate.open)
            refused = [] if extends else outputs.write(judged, store)
        if extends and limit_s is not None:
            ended = _extend(run, questions, judged, limit_s, yes=yes, beside_others=beside_others)
            with RunStore(run) as store:
                judged = questions.judge(store)
                refused = outputs.write(judged, store)
        for sentence in refused:
            err().print(sentence, markup=False)
        if ended is not None:
            raise ended
        _end(judged, refused, run)


def _seconds(extend: str | None) -> float | None:
    """The time for more blocks; a wrong one ends the command."""
    from weighbridge.model.quantity import TIME_UNITS, parse_quantity

    if extend is None:
        return None
    try:
        return parse_quantity(extend, TIME_UNITS, "a time")
    except ValueError as wrong:
        fail(f"--extend: {wrong}", WRONG_COMMAND_LINE)


def _end(judged: "JudgedRun", refused: list[str], run: Path) -> None:
    """Raise what the gate comes to, unless it has passed and everything is written."""
    if judged.gate.answer == "undecided" and (failed := judged.failed):
        why = f"no block of {', '.join(failed)} is complete, as trials failed: 'weighbridge report {run}' says why"
        raise TrialsFailed(f"{judged.answer} But {why}")
    ends = {"failed": LimitExceeded, "undecided": LimitUndecided, "untrusted": Untrusted}
    if (end := ends.get(judged.gate.answer)) is not None:
        raise end(judged.answer)
    if refused:
        raise WeighbridgeError(f"{judged.answer} But some output could not be written: see above")


@dataclass(frozen=True, slots=True)
class JudgedRun:
    """A run as a gate sees it at a look. ``plan``: this look and those to come, where it may be extended."""

    gate: "Gate"
    analysis: "Analysis"
    against: "Analysis | None"
    """The earlier run."""
    spending: "Spending"
    plan: "GatePlan | None" = None

    @property
    def rows(self) -> "tuple[GateRow, ...]":
        """Every finding in words."""
        from weighbridge.report.text.gate import gate_rows

        return gate_rows(self.gate, self.analysis)

    @property
    def disturbance(self) -> str:
        """What others took of the machine in both runs, in a sentence; empty where they took nothing."""
        from weighbridge.report.text.gate import disturbance_sentence

        return "" if self.against is None else disturbance_sentence(self.analysis, self.against)

    @property
    def failed(self) -> list[str]:
        """The workloads that a finding is about without a complete block, as their trials failed."""
        from weighbridge.analysis.gate import failed_workloads

        return failed_workloads(self.gate.findings, self.analysis)

    @property
    def notes(self) -> list[str]:
        """What stands below the findings for people: why intervals are at another level, and what to do next."""
        from weighbridge.report.text.gate import intervals_sentence, next_sentence

        return [*filter(None, (intervals_sentence(self.gate), next_sentence(self.gate)))]

    @property
    def answer(self) -> str:
        """The answer in a sentence."""
        from weighbridge.report.text.gate import gate_answer

        return gate_answer(self.gate)


@dataclass(frozen=True, slots=True)
class Questions:
    """The budgets, and the earlier run with its margin."""

    budgets: "tuple[Requirement, ...]"
    margin: "Requirement | None" = None
    against: "ComparedRun | None" = None

    def judge(self, store: "RunStore", limit_s: float | None = None) -> JudgedRun:
        """Judge a run; ``limit_s``: as the first look of those that so much more time is planned to have.

        What the budgets name and the run does not have ends the command.
        """
        from weighbridge.analysis.gate_looks import plan_gate, spending_of

        spending = spending_of(store)
        if limit_s is None:
            return self.judge_at(store, spending)
        plan = plan_gate(store, limit_s, spending)
        if plan.goes_on and spending.now is not None:
            spending = replace(spending, now=plan.shares[0])
        return replace(self.judge_at(store, spending), plan=plan)

    def judge_at(self, store: "RunStore", spending: "Spending") -> JudgedRun:
        """Judge a run with so much of the error to spend."""
        from weighbridge.analysis.analyse import analyse
        from weighbridge.analysis.compared_run import read_run
        from weighbridge.analysis.gate import judge_gate
        from weighbridge.analysis.gate_changes import judge_changes
        from weighbridge.analysis.gate_looks import looks_of_both

        if self.against is None or self.margin is None:
            analysis = analyse(store)
            gate = checked(lambda: judge_gate(self.budgets, store, analysis, spending))
            return JudgedRun(gate, analysis, None, spending)
        now, against, margin = read_run(store), self.against, self.margin
        if now.analysis.run_id == against.analysis.run_id:
            fail(f"--against: {against.name} is the run to check: name an earlier one", WRONG_COMMAND_LINE)
        plan = against.analysis.context.plan if against.analysis.context else None
        looks = looks_of_both(store, plan)
        changes = checked(lambda: judge_changes(margin, now, against, spending, looks))
        gate = checked(lambda: judge_gate(self.budgets, store, now.analysis, spending, changes))
        return JudgedRun(gate, now.analysis, against.analysis, spending)


def _questions(budgets: Sequence[str], against: Path | None, margin: str | None) -> Questions:
    """What the command line asks; what is wrong with it ends the command."""
    from weighbridge.analysis.compared_run import read_run
    from weighbridge.analysis.requirement import BUDGET, MARGIN, parse_requirement
    from weighbridge.cli.runs import run_directory
    from weighbridge.store.run import RunStore

    if not budgets and against is None and margin is None:
        message = "give a budget: --budget 'ENVIRONMENT.WORKLOAD.METRIC<=35%', or --against RUN --margin 3%"
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
    """Return what is made of requirements; a wrong one is a wrong command line."""
    from weighbridge.analysis.compared_run import OtherQuestionError
    from weighbridge.analysis.requirement import RequirementError
    from weighbridge.model.text import printable

    try:
        return judge()
    except OtherQuestionError as error:
        raise RunDirectoryError(f"--against: {printable(str(error))}") from None
    except RequirementError as error:
        fail(f"{prefix}{printable(str(error))}", WRONG_COMMAND_LINE)


@contextmanager
def _opened_to_look(run: Path) -> "Iterator[tuple[RunStore, bool]]":
    """Open a run that is judged, and yield with it whether a new look can be stored with the run.

    The run is opened to write only if this look is new. RunDirectoryError if a process writes a run that has grown
    since its last look: it has not come to a look yet.
    """
    from weighbridge.analysis.gate_looks import spending_of
    from weighbridge.store.run import DATABASE, RunStore

    with RunStore(run) as store:
        is_new = spending_of(store).now is not None
        keeps = is_new and os.access(run, os.W_OK) and os.access(run / DATABASE, os.W_OK)
        if not keeps:
            yield store, False
            return
    with RunStore(run, writable=True) as store:
        yield store, True


def _keep_look(
    store: "RunStore", spending: "Spending", still_open: "tuple[ComparedArm, ...]", until: int | None
) -> None:
    """Keep the present look with the run; ``until``: how many blocks it asks for.

    Of one that was kept before, only what it asks for is new.
    """
    from weighbridge.analysis.gate_looks import look_of
    from weighbridge.model.decisions import gate_looks_text
    from weighbridge.store.reader import GATE_LOOKS

    look = look_of(store, spending, still_open).model_copy(update={"until": until})
    store.set_info(GATE_LOOKS, gate_looks_text((*spending.earlier, look)))


def _keep_first_look(
    store: "RunStore", spending: "Spending", still_open: "tuple[ComparedArm, ...]", *, keeps: bool
) -> None:
    """Keep a new look with the run; nothing where it is the last one again. Tells where that cannot be done."""
    if spending.now is None:
        return
    if keeps:
        _keep_look(store, spending, still_open, None)
    else:
        message = f"{store.directory} is not writable, so this look is not stored. A later gate on a longer copy"
        err().print(f"note: {message} will not count it, and may err more often", markup=False)


def _extend(
    run: Path, questions: Questions, judged: JudgedRun, limit_s: float, *, yes: bool, beside_others: bool
) -> WeighbridgeError | Interrupted | None:
    """Run more blocks; what ended that too soon, so that the gate tells first what it knows by then."""
    from weighbridge.cli.approval import confirm_continued
    from weighbridge.cli.progress import show
    from weighbridge.cli.runs import continuable
    from weighbridge.runner.living import require_alone
    from weighbridge.runner.run import run_study
    from weighbridge.runner.session import BlockExtender
    from weighbridge.runner.signals import interruptible

    if judged.plan is None or not judged.plan.goes_on:
        err().print("no block fits into --extend: give it more time", markup=False)
        return None
    try:
        confirm_continued(run, yes=yes)
    except (typer.Abort, KeyboardInterrupt):
        err().print("running no more blocks", markup=False)
        return None
    looks = ", ".join(map(str, judged.plan.looks[1:]))
    err().print(f"undecided: running more blocks, and judging again after {looks}", markup=False)
    extension = GateExtender(questions, limit_s, judged.plan)
    extender = BlockExtender(limit_s, extension.total_blocks)
    try:
        require_alone(beside_others=beside_others)
        with interruptible(), show() as progress, continuable(run, *without_values(sys.argv[1:])):
            run_study(None, run, progress, _write_page, extender=extender)
    except TrialsFailed:
        pass  # the gate says of each comparison what there is of it
    except (WeighbridgeError, Interrupted) as ended:
        extension.finish(run, interrupted=True)  # what was looked at is spent
        return ended
    extension.finish(run)
    return None


def _write_page(store: "RunStore") -> None:
    """Write the run's page anew."""
    from weighbridge.analysis.analyse import analyse
    from weighbridge.report.html import write_html

    write_html(store, store.directory / "report.html", analyse(store))


@dataclass(slots=True)
class GateExtender:
    """Judges a run at each look, keeps the look with the run, and asks for the blocks up to the next one.

    ``plan`` is that of the look at what there was. Where the run comes to another number of blocks first (it was not
    finished), the looks are planned anew, by what is left then.
    """

    questions: Questions
    limit_s: float
    plan: "GatePlan"

    def total_blocks(self, store: "RunStore") -> int | None:
        """Look at the run; how many blocks it is to have at the next look, None if nothing is left to decide."""
        from weighbridge.analysis.gate_looks import blocks_of, plan_gate, spending_of

        blocks, spending = blocks_of(store), spending_of(store)
        completed = spending.now is not None and not self.plan.share(blocks)  # a half block, since the last look
        if completed or not self.plan.plans(blocks):
            self.plan = plan_gate(store, self.limit_s, spending)
        if spending.now is not None:
            spending = replace(spending, now=self.plan.share(blocks))
        return self._look(store, spending, self.plan.following(blocks))

    def _look(self, store: "RunStore", spending: "Spending", following: int | None) -> int | None:
        gate = self.questions.judge_at(store, spending).gate
        until = following if gate.open else None
        _keep_look(store, spending, gate.open, until)
        return until

    def finish(self, run: Path, *, interrupted: bool = False) -> None:
        """Look at what there is where the session was over before the next look.

        Where the time was over, that look has what the plan has left; after an interruption what the next one was to
        have, so that there is enough for whoever goes on.
        """
        from weighbridge.analysis.gate_looks import blocks_of, share_of_end, spending_of
        from weighbridge.runner.run import study_of
        from weighbridge.store.extensions import extend
        from weighbridge.store.run import RunStore

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
                extend(store, study_of(store).file.repetitions, blocks)


@dataclass(frozen=True, slots=True)
class Outputs:
    """What is written for CI, and what is printed. A file that cannot be written loses nothing else."""

    junit: Path | None = None
    markdown: Path | None = None
    annotations: Annotations | None = None
    bmf: Path | None = None
    as_json: bool = False

    def require_possible(self) -> None:
        """End the command, before anything is measured, where two outputs have one place or a folder is missing."""
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

    def write(self, judged: JudgedRun, store: "RunStore") -> list[str]:
        """Print and write everything; a sentence for each file that could not be written."""
        from weighbridge.report.export.gate import bmf, gate_markdown, junit_xml

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

    def _print(self, judged: JudgedRun, store: "RunStore") -> None:
        from weighbridge.report.export.gate import gate_json, github_commands, gitlab_code_quality

        if self.as_json:
            print_json(gate_json(judged.gate, judged.analysis, judged.against))
        elif self.annotations is Annotations.GITLAB:
            print(gitlab_code_quality(judged.rows, _path_in_project(store.directory)), end="", flush=True)
        else:
            stopped = secrets.token_hex(16)  # no name in a run gives orders to GitHub's runner, which reads this
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
    """Print a line for each finding, as logs keep them."""
    answer = judged.answer if judged.gate.answer == "passed" else ""  # what has not passed ends the command with it
    sentences = (judged.disturbance, *(row.sentence for row in judged.rows), *judged.notes, answer)
    for sentence in filter(None, sentences):
        out().print(sentence, markup=False, soft_wrap=True)


def _print_screen(judged: JudgedRun) -> None:
    """Print what fits on a screen, failed findings first, and how many more there are."""
    from weighbridge.report.screen import print_screen
    from weighbridge.report.terminal_layout import styled

    rows = sorted(judged.rows, key=lambda row: [*GATE_STYLES].index(row.outcome))
    print_screen(
        out(),
        [styled(judged.disturbance, "yellow")] if judged.disturbance else [],
        [()],
        [styled(row.sentence, GATE_STYLES[row.outcome]) for row in rows],
        lambda hidden: [
            *(styled(note, "dim") for note in judged.notes),
            *([styled(f"{hidden} more: --json or --markdown FILE has all", "dim")] if hidden else []),
            *([styled(judged.answer, "bold green")] if judged.gate.answer == "passed" else []),
        ],
    )


def _path_in_project(run: Path) -> str:
    """The run's place below the folder of the job, as GitLab wants paths; its name where it is elsewhere."""
    project = Path(os.environ.get("CI_PROJECT_DIR") or Path.cwd())
    with contextlib.suppress(ValueError, OSError):
        return run.resolve().relative_to(project.resolve()).as_posix()
    return run.resolve().name
