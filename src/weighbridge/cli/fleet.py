"""`weighbridge fleet`."""

import gc
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from weighbridge.cli import fleet_runs
from weighbridge.cli.help import MEASURE, OUTPUT, WHAT, App
from weighbridge.cli.options import JsonFlag
from weighbridge.cli.output import WRONG_COMMAND_LINE, err, examples, fail, out, print_json

if TYPE_CHECKING:
    from weighbridge.analysis.fleet import Fleet

PAGE = "fleet.html"
"""The name of a fleet's page in its folder."""


def register(app: typer.Typer) -> None:
    """Add the group of commands."""
    fleet = App(help="Run one study on many machines, or on pairs of machines.", rich_markup_mode=None)
    app.add_typer(fleet, name="fleet")
    fleet_runs.register(fleet)

    @fleet.command(
        epilog=examples(
            "weighbridge fleet report fleet/",
            "weighbridge fleet report this-month/ --against last-month/",
            "weighbridge fleet report fleet/ --margin 5% --json",
        )
    )
    def report(
        folder: Path = typer.Argument(
            metavar="DIR", help="The folder of a fleet, or any folder with runs of one study."
        ),
        against: Path | None = typer.Option(
            None,
            "--against",
            metavar="DIR",
            help="An earlier fleet. The report then also shows which machines changed since.",
            rich_help_panel=WHAT,
        ),
        as_json: bool = JsonFlag,
        margin: str | None = typer.Option(
            None,
            "--margin",
            metavar="PERCENT",
            help="A machine closer to the others than this is never an outlier, for example 3%. Default: the study's "
            "margin.",
            rich_help_panel=MEASURE,
        ),
        page: Path | None = typer.Option(
            None,
            "--out",
            metavar="FILE",
            help=f"Write the page here instead of to DIR/{PAGE}.",
            rich_help_panel=OUTPUT,
        ),
    ) -> None:
        """Show a study's costs over all machines, and which machines are outliers.

        Runs that are unreadable or belong to another study are skipped and listed.
        """
        from weighbridge.analysis.fleet_changes import compare_fleets
        from weighbridge.errors import WeighbridgeError
        from weighbridge.report.export.fleet_json import fleet_json
        from weighbridge.report.fleet import fleet_document
        from weighbridge.report.render_page import write_document
        from weighbridge.report.render_terminal import print_document

        gc.set_threshold(100_000)  # the data of hundreds of runs is needed until the end
        limit = _margin(margin)
        if against is not None and against.resolve() == folder.resolve():
            fail(f"--against {against} is the fleet itself: name an earlier fleet", WRONG_COMMAND_LINE)
        this = _read(folder, limit)
        compared = compare_fleets(this, _read(against, limit)) if against is not None else None
        document = fleet_document(this, compared)
        if as_json:
            print_json(fleet_json(this, compared))
            if page is not None:
                write_document(document, page)
                err().print(f"page: {page}", markup=False)
            return
        at, refused = page or folder / PAGE, ""
        try:
            write_document(document, at)
        except PermissionError as error:
            refused = f"{error.filename}: {error.strerror}. No page was written: name another file with --out FILE"
        print_document(document, out(), pages=[] if refused else [f"page: {at}"])
        if refused:
            fail(refused, WeighbridgeError.exit_code)


def _margin(text: str | None) -> float | None:
    from weighbridge.cli.compare import percent

    if text is None:
        return None
    if (fraction := percent("--margin", text)) == 0:
        fail("--margin 0% makes every significant distance an outlier: use a margin such as 3%", WRONG_COMMAND_LINE)
    return fraction


def _read(folder: Path, margin: float | None) -> "Fleet":
    from weighbridge.analysis.fleet import read_fleet
    from weighbridge.errors import RunDirectoryError

    if not folder.is_dir():
        what = "is not a folder" if folder.exists() else "does not exist"
        raise RunDirectoryError(f"{folder} {what}: name the folder of a fleet, or a folder with run directories")
    return read_fleet(folder, margin=margin)
