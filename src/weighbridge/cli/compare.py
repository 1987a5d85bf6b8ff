"""`weighbridge compare`."""

import contextlib
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from weighbridge.cli.help import MEASURE, OUTPUT
from weighbridge.cli.options import JsonFlag
from weighbridge.cli.output import WRONG_COMMAND_LINE, err, examples, fail, out, print_json

if TYPE_CHECKING:
    from weighbridge.analysis.between_runs import RunsCompared
    from weighbridge.analysis.compared_run import ComparedRun


def register(app: typer.Typer) -> None:
    """Add the command."""

    @app.command(
        epilog=examples(
            "weighbridge compare runs/before runs/after",
            "weighbridge compare runs/before runs/after --html changes.html",
            'weighbridge compare runs/before runs/after --markdown >> "$GITHUB_STEP_SUMMARY"',
            "weighbridge compare runs/before runs/after --changed sysctl:vm.swappiness",
            "weighbridge compare runs/docker-20 runs/docker-27 runs/docker-29 --json",
        )
    )
    def compare(
        runs: list[Path] = typer.Argument(
            metavar="RUN...", help="Two or more run directories. Each is compared with the first."
        ),
        as_json: bool = JsonFlag,
        as_markdown: bool = typer.Option(
            False,
            "--markdown",
            help="Print Markdown to standard output, and nothing else.",
            rich_help_panel=OUTPUT,
        ),
        page: Path | None = typer.Option(
            None, "--html", metavar="FILE", help="Write a page with all runs in every chart.", rich_help_panel=OUTPUT
        ),
        all_metrics: bool = typer.Option(
            False, "--all", help="Show the table of every metric, not only the first.", rich_help_panel=OUTPUT
        ),
        margin: str | None = typer.Option(
            None,
            "--margin",
            metavar="PERCENT",
            help="Changes within this margin are equivalent, for example 3%. Default: the study's margin.",
            rich_help_panel=MEASURE,
        ),
        allowance: str = typer.Option(
            "1%",
            "--allowance",
            metavar="PERCENT",
            help="How much a cost can differ between two identical sessions.",
            rich_help_panel=MEASURE,
        ),
        changed: list[str] = typer.Option(
            [],
            "--changed",
            metavar="FACT",
            help="A fact that you changed on purpose, for example sysctl:vm.swappiness. Absolute rates are still "
            "compared. Repeatable.",
            rich_help_panel=MEASURE,
        ),
    ) -> None:
        """Compare runs of one study: what changed, and how much each cost changed."""
        from weighbridge.report.compare import compare_document

        if as_json and as_markdown:
            fail("--json and --markdown both use standard output: choose one", WRONG_COMMAND_LINE)
        within = None if margin is None else percent("--margin", margin)
        if within == 0:
            fail("--margin 0% can never be met: use a margin such as 3%", WRONG_COMMAND_LINE)
        comparison = compared(runs, percent("--allowance", allowance), within, changed)
        document = compare_document(comparison)
        if page is not None:
            from weighbridge.report.render_page import write_document

            write_document(document, page)
        if as_json:
            from weighbridge.report.export.compare import compare_json

            print_json(compare_json(comparison))
        elif as_markdown:
            from weighbridge.report.render_markdown import markdown

            print(markdown(document, details=all_metrics), end="", flush=True)
        else:
            from weighbridge.report.render_terminal import print_document

            print_document(document, out(), full=all_metrics, pages=[] if page is None else [f"page: {page}"])
            return
        if page is not None:
            err().print(f"page: {page}", markup=False)


def compared(runs: "list[Path]", allowance: float, margin: float | None, on_purpose: list[str]) -> "RunsCompared":
    """Read and compare runs. Exit with a message if they cannot be compared."""
    from weighbridge.analysis.between_runs import compare_runs
    from weighbridge.analysis.compared_run import FactNotChangedError, OtherQuestionError
    from weighbridge.cli.runs import run_directory
    from weighbridge.errors import RunDirectoryError

    if len(runs) < 2:
        fail(f"name at least two runs, not just {runs[0]}", WRONG_COMMAND_LINE)
    places = [run_directory(each) for each in runs]
    for number, each in enumerate(places):
        if each.resolve() in [other.resolve() for other in places[:number]]:
            fail(f"{each} is named twice: name different runs", WRONG_COMMAND_LINE)
    read = [_read(each, str(name)) for each, name in zip(places, runs, strict=True)]
    try:
        return compare_runs(*read, allowance=allowance, margin=margin, on_purpose=on_purpose)
    except FactNotChangedError as error:
        fail(f"--changed: {error}", WRONG_COMMAND_LINE)
    except OtherQuestionError as error:
        raise RunDirectoryError(str(error)) from None


def percent(option: str, text: str) -> float:
    """Return a percentage as a fraction. Exit with a message if it is not a percentage below 100%."""
    from weighbridge.model.quantity import parse_percent

    with contextlib.suppress(ValueError):
        if (percentage := parse_percent(text)) < 100:
            return percentage / 100
    fail(f"{option} '{text}' is not a percentage below 100%: write {option} 3%", WRONG_COMMAND_LINE)


def _read(directory: Path, name: str) -> "ComparedRun":
    from weighbridge.analysis.compared_run import read_run
    from weighbridge.errors import RunDirectoryError
    from weighbridge.store.run import RunStore

    with RunStore(directory) as store:
        run = read_run(store, name)
    if not run.analysis.metrics:
        raise RunDirectoryError(f"{directory} has nothing to compare, because none of its trials succeeded")
    return run
