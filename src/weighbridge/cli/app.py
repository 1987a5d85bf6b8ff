"""The program: all commands, and the conversion of every failure into a message and an exit code."""

import errno
import sys
from typing import Any

import typer

from weighbridge.cli.declared import App, later
from weighbridge.cli.feature import with_features
from weighbridge.cli.messages import (
    ANSWER,
    WRONG_COMMAND_LINE,
    answering_as,
    fail,
    reader_gone,
    take_any_character,
)
from weighbridge.errors import DiskFull, Interrupted, WeighbridgeError
from weighbridge.secret_values import take_over

app = App(
    "weighbridge",
    "Measure what isolation costs: run the same programs natively and isolated, and compare.\n\n"
    "Start with 'weighbridge weigh -- ./prog'. Run 'weighbridge doctor' to see what this machine can measure.",
    with_features(
        {
            "weigh": "weighbridge.cli.commands.weigh:WEIGH",
            "doctor": "weighbridge.cli.commands.machine:DOCTOR",
            "studies": "weighbridge.cli.commands.studies:STUDIES",
            "init": "weighbridge.cli.commands.studies:INIT",
            "plan": "weighbridge.cli.commands.studies:PLAN",
            "run": "weighbridge.cli.commands.measurements:RUN",
            "report": "weighbridge.cli.commands.results:REPORT",
            "export": "weighbridge.cli.commands.results:EXPORT",
            "userland": "weighbridge.cli.commands.studies:USERLAND",
            "clean": "weighbridge.cli.commands.machine:CLEAN",
            "schema": "weighbridge.cli.commands.studies:SCHEMA",
            "skill": "weighbridge.cli.commands.agents:SKILL",
        }
    ),
)
_UsageError: Any = typer.BadParameter.__base__
"""The error of every command line that cannot be parsed; typer has no public name for it."""


def _print_version(version: bool) -> None:
    if version:
        later("weighbridge.cli.version:print_version")(as_json=ANSWER.json)
        raise typer.Exit


def _only_with_version(as_json: bool) -> None:
    if as_json:
        fail("put --json after the command", WRONG_COMMAND_LINE)


@app.callback()
def _options(
    version: bool = typer.Option(
        False,
        "--version",
        help="Print the version and the launcher's digest, and exit.",
        is_eager=True,
        callback=_print_version,
    ),
    as_json: bool = typer.Option(
        False,
        "--json",
        help="With --version: print JSON. Every command has its own --json.",
        callback=_only_with_version,
    ),
) -> None:
    """Options of every command."""


def main() -> None:
    """Run the command line and exit with its code."""
    take_any_character()
    take_over()
    with answering_as(sys.argv[1:]):
        if ANSWER.events:
            later("weighbridge.runner.signals:be_silent")()
        code = _exit_code()
        if ANSWER.events:
            later("weighbridge.cli.events:emit_end")(code)
        if code:
            sys.exit(code)


def _exit_code() -> int:
    """Run the command and return its exit code. A failure exits with a message."""
    if sys.platform != "linux":
        fail("Weighbridge measures isolation on Linux (cgroups, namespaces, engines), so it needs Linux", 4)
    try:
        code = app(prog_name="weighbridge", standalone_mode=False)
    except _UsageError as error:
        problem = later("weighbridge.cli.usage:usage_problem")(error)
        fail(problem, error.exit_code, help_with=later("weighbridge.cli.usage:help_words")(error))
    except typer.Abort:
        fail("not started", 1, kind="not-started")
    except (WeighbridgeError, Interrupted) as ended:
        fail(str(ended), ended.exit_code, kind=ended.kind, continue_with=ended.continue_with)
    except BrokenPipeError:
        reader_gone()
    except OSError as error:  # for example a page that cannot be written
        full = error.errno in (errno.ENOSPC, errno.EDQUOT)
        kind = DiskFull if full else WeighbridgeError
        message = f"{error.filename}: {error.strerror}" if error.filename else error.strerror or str(error)
        fail(message, kind.exit_code, kind=kind.kind)
    return code if isinstance(code, int) else 0  # a command can also return another value
