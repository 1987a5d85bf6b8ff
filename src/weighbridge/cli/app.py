"""The program: all commands, and the conversion of every failure into a message and an exit code."""

import errno
import sys
from typing import Any

import typer

from weighbridge.cli.declared import App, later
from weighbridge.cli.feature import with_features
from weighbridge.cli.messages import fail, reader_gone, take_any_character
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
        }
    ),
)
_UsageError: Any = typer.BadParameter.__base__
"""The error of every command line that cannot be parsed; typer has no public name for it."""


def _print_version(version: bool) -> None:
    if version:
        print(later("weighbridge.cli.version:version_text")())
        raise typer.Exit


@app.callback()
def _options(
    version: bool = typer.Option(
        False,
        "--version",
        help="Print the version and the launcher's digest, and exit.",
        is_eager=True,
        callback=_print_version,
    ),
) -> None:
    """Options of every command."""


def _with_advice(sentence: str, ended: WeighbridgeError | Interrupted) -> str:
    return f"{sentence}\nto continue: {ended.continue_with}" if ended.continue_with else sentence


def main() -> None:
    """Run the command line and exit with its code."""
    take_any_character()
    take_over()
    if sys.platform != "linux":
        fail("Weighbridge measures isolation on Linux (cgroups, namespaces, engines), so it needs Linux", 4)
    try:
        code = app(prog_name="weighbridge", standalone_mode=False)
        if isinstance(code, int) and code:  # a command can also return another value
            sys.exit(code)
    except _UsageError as error:
        fail(later("weighbridge.cli.usage:usage_problem")(error), error.exit_code)
    except typer.Abort:
        fail("not started", 1)
    except WeighbridgeError as error:
        fail(_with_advice(str(error), error), error.exit_code)
    except Interrupted as interrupted:
        fail(_with_advice(str(interrupted), interrupted), interrupted.exit_code)
    except BrokenPipeError:
        reader_gone()
    except OSError as error:  # for example a page that cannot be written
        code = DiskFull.exit_code if error.errno in (errno.ENOSPC, errno.EDQUOT) else WeighbridgeError.exit_code
        fail(f"{error.filename}: {error.strerror}" if error.filename else str(error), code)
