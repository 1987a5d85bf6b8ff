"""`weighbridge gate`."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from weighbridge.cli.gate_outputs import Annotations, Outputs
from weighbridge.cli.output import WRONG_COMMAND_LINE, JsonFlag, err, examples, fail
from weighbridge.errors import (
    Interrupted,
    LimitExceeded,
    LimitUndecided,
    TrialsFailed,
    Untrusted,
    WeighbridgeError,
)

if TYPE_CHECKING:
    from weighbridge.cli.gate_questions import Judged, Questions

EXAMPLES = (
    "weighbridge gate RUN --budget 'bridge.tcp.throughput<=35%' --budget '*.latency_p99<=10%'",
    "weighbridge gate RUN --budget '*.throughput<=35%' --extend 10min --yes",
    "weighbridge gate RUN --against OLD-RUN --margin 3%",
    "weighbridge gate RUN --budget '*.throughput<=35%' --junit gate.xml --markdown gate.md --annotations github",
)


def register(app: typer.Typer) -> None:
    """Add the command."""

    @app.command(epilog=examples(*EXAMPLES))
    def gate(
        run: Path = typer.Argument(help="A run directory."),
        budget: list[str] = typer.Option(
            [],
            "--budget",
            metavar="BUDGET",
            help="What a cost may be: ENVIRONMENT.WORKLOAD.METRIC<=35%; * is any part of it. Can be repeated.",
        ),
        against: Path | None = typer.Option(
            None, "--against", help="An earlier run: no headline cost may have become worse by more than --margin."
        ),
        margin: str | None = typer.Option(None, "--margin", metavar="PERCENT", help="For --against, like 3%."),
        extend: str | None = typer.Option(
            None,
            "--extend",
            metavar="TIME",
            help="Where it is undecided, run more blocks of that run for so long (10min) at most.",
        ),
        yes: bool = typer.Option(False, "--yes", "-y", help="Do not ask before more blocks are run."),
        junit: Path | None = typer.Option(None, "--junit", help="Write a JUnit report."),
        markdown: Path | None = typer.Option(None, "--markdown", help="Append a summary in Markdown to this file."),
        annotations: Annotations | None = typer.Option(
            None,
            "--annotations",
            help="github: print workflow commands, too; gitlab: print a code quality report, and nothing else.",
        ),
        bmf: Path | None = typer.Option(None, "--bmf", help="Write the run's costs in Bencher's metric format."),
        as_json: bool = JsonFlag,
    ) -> None:
        """Hold the costs of a run against budgets: passed (exit code 0), failed (11), undecided (12), untrusted (10).

        A cost passes where its whole interval is within the budget, and fails where all of it is above; in between it
        is undecided.
        """
        from weighbridge.cli.gate_looks import keep_first_look, opened_to_look
        from weighbridge.cli.gate_questions import questions
        from weighbridge.cli.runs import run_directory
        from weighbridge.store.run import RunStore

        outputs = Outputs(junit, markdown, annotations, bmf, as_json)
        outputs.require_possible()
        asked, limit_s = questions(budget, against, margin), _seconds(extend)
        run, ended = run_directory(run), None
        with opened_to_look(run) as (store, keeps):
            judged = asked.judged(store, limit_s)
            keep_first_look(store, judged.spending, judged.gate.open, keeps=keeps)
            more = limit_s is not None and bool(judged.gate.open)
            refused = [] if more else outputs.write(judged, store)
        if more and limit_s is not None:
            ended = _extend(run, asked, judged, limit_s, yes=yes)
            with RunStore(run) as store:
                judged = asked.judged(store)
                refused = outputs.write(judged, store)
        for sentence in refused:
            err().print(sentence, markup=False)
        if ended is not None:
            raise ended
        _end(judged, refused)


def _seconds(extend: str | None) -> float | None:
    """The time for more blocks; a wrong one ends the command."""
    from weighbridge.model.quantity import TIME_UNITS, parse_quantity

    if extend is None:
        return None
    try:
        return parse_quantity(extend, TIME_UNITS, "a time")
    except ValueError as wrong:
        fail(f"--extend: {wrong}", WRONG_COMMAND_LINE)


def _extend(
    run: Path, asked: "Questions", judged: "Judged", limit_s: float, *, yes: bool
) -> WeighbridgeError | Interrupted | None:
    """Run more blocks; what ended that too soon, so that the gate tells first what it knows by then."""
    from weighbridge.cli.approval import confirm_continued
    from weighbridge.cli.gate_extension import Extension
    from weighbridge.cli.progress import show
    from weighbridge.cli.runs import continuable
    from weighbridge.runner.run import run_study
    from weighbridge.runner.signals import interruptible

    if judged.plan is None or not judged.plan.goes_on:
        err().print("not even one more block fits into the time of --extend", markup=False)
        return None
    try:
        confirm_continued(run, yes=yes)
    except (typer.Abort, KeyboardInterrupt):
        err().print("no more blocks are run", markup=False)
        return None
    looks = ", ".join(map(str, judged.plan.looks[1:]))
    err().print(f"undecided: more blocks are run; it is looked again after {looks} blocks", markup=False)
    extension = Extension(asked, limit_s, judged.plan)
    try:
        with interruptible(), show() as progress, continuable(run, *sys.argv[1:]):
            run_study(None, run, progress, extension.write_page, further=extension.further)
    except TrialsFailed:
        pass  # the gate says of each comparison what there is of it
    except (WeighbridgeError, Interrupted) as ended:
        extension.finish(run, interrupted=True)  # what was looked at is spent
        return ended
    extension.finish(run)
    return None


def _end(judged: "Judged", refused: list[str]) -> None:
    """Raise what the gate comes to, unless it has passed and everything is written."""
    ends = {"failed": LimitExceeded, "undecided": LimitUndecided, "untrusted": Untrusted}
    if (end := ends.get(judged.gate.answer)) is not None:
        raise end(judged.answer)
    if refused:
        raise WeighbridgeError(f"{judged.answer} But not everything that was asked for could be written")
