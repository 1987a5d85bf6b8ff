"""`weighbridge gate`: its questions, its interim looks at a run, more rounds if it is undecided, and its output.

Every interim look is stored with the run before its result is printed.
"""

import contextlib
import json
import os
import secrets
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from weighbridge.cli.declared import later
from weighbridge.cli.messages import WRONG_COMMAND_LINE, fail
from weighbridge.cli.output import err, out, print_json
from weighbridge.cli.runs import run_directory
from weighbridge.cli.variables import without_values
from weighbridge.errors import LimitExceeded, LimitUndecided, TrialsFailed, Untrusted, WeighbridgeError
from weighbridge.features.gate.gate_export import (
    bmf,
    gate_json,
    gate_markdown,
    github_commands,
    gitlab_code_quality,
    junit_xml,
)
from weighbridge.features.gate.gate_looks import Spending, spending_of
from weighbridge.features.gate.options import Annotations, GateOptions, GateOutputs
from weighbridge.features.gate.questions import JudgedRun, keep_look, questions_of
from weighbridge.model.address import ArmId
from weighbridge.model.quantity import TIME_UNITS, parse_quantity
from weighbridge.report.screen import print_screen
from weighbridge.report.terminal_layout import styled
from weighbridge.store.run import DATABASE, RunStore
from weighbridge.store.versions import can_continue

GATE_STYLES = {"failed": "bold red", "undecided": "yellow", "passed": "green"}
"""The style of each outcome, worst first."""


def gate(options: GateOptions) -> None:
    """Judge a run, with more rounds if it is undecided. Raises the answer unless the gate has passed."""
    _require_possible(options.outputs)
    questions = questions_of(options.budget, options.against, options.margin, options.budget_file)
    limit_s = _seconds(options.extend)
    run, ended = run_directory(options.run), None
    with _opened_to_look(run) as (store, keeps):
        if limit_s is not None:
            store.require_changeable()
        limit_s = limit_s if can_continue(store) else None
        judged = questions.judge(store, limit_s)
        _keep_first_look(store, judged.spending, judged.gate.open, keeps=keeps)
        extends = limit_s is not None and bool(judged.gate.open)
        refused = [] if extends else _write(options.outputs, judged, store)
    if extends and limit_s is not None:
        extend_run = later("weighbridge.features.gate.extension_command:extend_run")
        ended = extend_run(
            run, questions, judged, limit_s, yes=options.yes, allow_concurrent=options.allow_concurrent
        )
        with RunStore(run) as store:
            judged = questions.judge(store)
            refused = _write(options.outputs, judged, store)
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


def _end(judged: JudgedRun, refused: list[str], run: Path) -> None:
    """Raise the result of the gate as an error, unless the gate has passed and all output is written."""
    if judged.gate.answer == "undecided" and (failed := judged.failed):
        why = f"No round of {', '.join(failed)} is complete, because trials failed: see 'weighbridge report {run}'"
        raise TrialsFailed(f"{judged.answer} {why}")
    ends = {"failed": LimitExceeded, "undecided": LimitUndecided, "untrusted": Untrusted}
    if (end := ends.get(judged.gate.answer)) is not None:
        raise end(judged.answer)
    if refused:
        raise WeighbridgeError(f"{judged.answer} But some output could not be written: see the messages above")


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


def _keep_first_look(store: RunStore, spending: Spending, still_open: tuple[ArmId, ...], *, keeps: bool) -> None:
    """Store an interim look with the run if it is new. Print a note if the run is a kept file or not writable."""
    if spending.now is None:
        return
    if keeps:
        keep_look(store, spending, still_open, None)
    else:
        why, remedy = "is not writable", ""
        if store.is_kept_file:
            why, remedy = "is a kept file, which is opened in memory", ". To store the look, judge the run's folder"
        message = f"{store.directory} {why}, so this interim look is not stored. A later gate on a longer copy"
        err().print(f"note: {message} does not count it, so its error rate can be higher{remedy}", markup=False)


def _require_possible(outputs: GateOutputs) -> None:
    """Exit before anything is measured if two outputs share a destination or a folder is missing."""
    if outputs.as_json and outputs.annotations is not None:
        fail("--json and --annotations both use standard output: choose one", WRONG_COMMAND_LINE)
    paths = [path for path in (outputs.junit, outputs.markdown, outputs.bmf) if path is not None]
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


def _write(outputs: GateOutputs, judged: JudgedRun, store: RunStore) -> list[str]:
    """Print and write everything. Return a sentence for each file that could not be written; the others still are."""
    _print(outputs, judged, store)
    study, rows = judged.analysis.study, judged.rows
    files: list[tuple[Path | None, str, Callable[[], bytes]]] = [
        (outputs.junit, "wb", lambda: junit_xml(study, rows, judged.answer)),
        (outputs.markdown, "ab", lambda: gate_markdown(study, judged.answer, rows).encode()),
        (outputs.bmf, "wb", lambda: json.dumps(bmf(judged.analysis), indent=2, allow_nan=False).encode() + b"\n"),
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


def _print(outputs: GateOutputs, judged: JudgedRun, store: RunStore) -> None:
    if outputs.as_json:
        command = ("weighbridge", *without_values(sys.argv[1:]))
        print_json(gate_json(judged.gate, judged.analysis, judged.against, command))
    elif outputs.annotations is Annotations.GITLAB:
        print(gitlab_code_quality(judged.rows, _path_in_project(store.directory)), end="", flush=True)
    else:
        stopped = secrets.token_hex(16)  # so that GitHub's runner cannot read commands in names of the run
        if outputs.annotations is Annotations.GITHUB:
            print(f"::stop-commands::{stopped}", flush=True)
        if out().is_terminal and outputs.annotations is None:
            _print_screen(judged)
        else:
            _print_lines(judged)
        if outputs.annotations is Annotations.GITHUB:
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
