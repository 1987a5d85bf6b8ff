"""`weighbridge compare`."""

import contextlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from weighbridge.cli.messages import WRONG_COMMAND_LINE, fail
from weighbridge.cli.output import err, out, print_json
from weighbridge.cli.runs import run_directory
from weighbridge.errors import RunDirectoryError
from weighbridge.features.gate.between_runs import RunsCompared, compare_runs
from weighbridge.features.gate.compare_document import compare_document
from weighbridge.features.gate.compare_json import compare_json
from weighbridge.features.gate.compared_run import ComparedRun, FactNotChangedError, OtherQuestionError, read_run
from weighbridge.features.gate.options import CompareOptions
from weighbridge.model.quantity import parse_percent
from weighbridge.report.render_markdown import markdown
from weighbridge.report.render_page import write_document
from weighbridge.report.render_terminal import print_document
from weighbridge.store.run import RunStore


def compare(options: CompareOptions) -> None:
    """Compare the runs, and print the result in the chosen format."""
    if options.as_json and options.as_markdown:
        fail("--json and --markdown both use standard output: choose one", WRONG_COMMAND_LINE)
    within = None if options.margin is None else percent("--margin", options.margin)
    if within == 0:
        fail("--margin 0% can never be met: use a margin such as 3%", WRONG_COMMAND_LINE)
    comparison = compared(options.runs, percent("--allowance", options.allowance), within, options.changed)
    document = compare_document(comparison)
    if options.page is not None:
        write_document(document, options.page)
    if options.as_json:
        print_json(compare_json(comparison))
    elif options.as_markdown:
        print(markdown(document, details=options.all_metrics), end="", flush=True)
    else:
        pages = [] if options.page is None else [f"page: {options.page}"]
        print_document(document, out(), full=options.all_metrics, pages=pages)
        return
    if options.page is not None:
        err().print(f"page: {options.page}", markup=False)


def compared(runs: list[Path], allowance: float, margin: float | None, on_purpose: list[str]) -> RunsCompared:
    """Read and compare runs. Exit with a message if they cannot be compared."""
    if len(runs) < 2:
        fail(f"name at least two runs, not just {runs[0]}", WRONG_COMMAND_LINE)
    places = [run_directory(each) for each in runs]
    for number, each in enumerate(places):
        if each.resolve() in [other.resolve() for other in places[:number]]:
            fail(f"{each} is named twice: name different runs", WRONG_COMMAND_LINE)
    read = [_read(each, str(name)) for each, name in zip(places, runs, strict=True)]
    try:
        return comparison_of(read, allowance=allowance, margin=margin, on_purpose=on_purpose)
    except FactNotChangedError as error:
        fail(f"--changed: {error}", WRONG_COMMAND_LINE)


def comparison_of(runs: Sequence[ComparedRun], **settings: Any) -> RunsCompared:
    """Compare runs with the first one. Raises RunDirectoryError if they answer different questions."""
    try:
        return compare_runs(*runs, **settings)
    except OtherQuestionError as error:
        raise RunDirectoryError(str(error)) from None


def percent(option: str, text: str) -> float:
    """Return a percentage as a fraction. Exit with a message if it is not a percentage below 100%."""
    with contextlib.suppress(ValueError):
        if (percentage := parse_percent(text)) < 100:
            return percentage / 100
    fail(f"{option} '{text}' is not a percentage below 100%: write {option} 3%", WRONG_COMMAND_LINE)


def _read(directory: Path, name: str) -> ComparedRun:
    with RunStore(directory) as store:
        return readable(store, name)


def readable(store: RunStore, name: str) -> ComparedRun:
    """Read a run to compare it. Raises RunDirectoryError if none of its trials succeeded."""
    run = read_run(store, name)
    if not run.analysis.metrics:
        raise RunDirectoryError(f"{store.directory} has nothing to compare, because none of its trials succeeded")
    return run
