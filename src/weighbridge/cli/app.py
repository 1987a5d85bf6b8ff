"""The commands put together, and every failure turned into one sentence and an exit code."""

import errno
import sys

import typer

from weighbridge.cli import calibrate, clean, doctor, export, init, plan, report, run, schema, studies
from weighbridge.cli.output import fail
from weighbridge.errors import DiskFull, Interrupted, WeighbridgeError

app = typer.Typer(
    name="weighbridge",
    help="What does isolation cost? The same programs natively, in containers and in virtual machines.\n\n"
    "Start with: weighbridge doctor, then: weighbridge run first-look",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
)
for module in (doctor, studies, init, plan, run, report, export, calibrate, clean, schema):
    module.register(app)


def main() -> None:
    """Run the command line and exit with its code."""
    if sys.platform != "linux":
        fail("Weighbridge measures Linux isolation (control groups, namespaces, engines): it runs on Linux only", 4)
    try:
        app(standalone_mode=True)
    except WeighbridgeError as error:
        fail(str(error), error.exit_code)
    except Interrupted as interrupted:
        fail(
            "interrupted; every finished trial is kept. Run the same command again to continue", interrupted.exit_code
        )
    except BrokenPipeError:
        sys.stderr.close()  # the reader of our output has gone: nobody is left to tell
        sys.exit(141)
    except OSError as error:  # a report, a page or a table that cannot be written
        code = DiskFull.exit_code if error.errno in (errno.ENOSPC, errno.EDQUOT) else WeighbridgeError.exit_code
        fail(f"{error.filename}: {error.strerror}" if error.filename else str(error), code)
