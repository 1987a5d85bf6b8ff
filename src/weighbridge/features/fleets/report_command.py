"""`weighbridge fleet`."""

from pathlib import Path

from weighbridge.cli.messages import WRONG_COMMAND_LINE, fail
from weighbridge.cli.output import err, out, print_json
from weighbridge.cli.progress import reading_runs
from weighbridge.errors import RunDirectoryError, WeighbridgeError
from weighbridge.features.fleets.analysis import FleetResult, read_fleet
from weighbridge.features.fleets.changes import compare_fleets
from weighbridge.features.fleets.export import fleet_json
from weighbridge.features.fleets.options import FLEET_PAGE, FleetReportOptions
from weighbridge.features.fleets.report import fleet_document
from weighbridge.features.gate.compare_command import percent
from weighbridge.report.render_page import write_document
from weighbridge.report.render_terminal import print_document


def report(options: FleetReportOptions) -> None:
    """Print the costs over all machines of a fleet, and write its page."""
    limit = _margin(options.margin)
    if options.against is not None and options.against.resolve() == options.folder.resolve():
        fail(f"--against {options.against} is the fleet itself: name an earlier fleet", WRONG_COMMAND_LINE)
    this = _read(options.folder, limit)
    compared = compare_fleets(this, _read(options.against, limit)) if options.against is not None else None
    document = fleet_document(this, compared)
    if options.as_json:
        print_json(fleet_json(this, compared))
        if options.page is not None:
            write_document(document, options.page)
            err().print(f"page: {options.page}", markup=False)
        return
    at, refused = options.page or options.folder / FLEET_PAGE, ""
    try:
        write_document(document, at)
    except PermissionError as error:
        refused = f"{error.filename}: {error.strerror}. No page was written: name another file with --out FILE"
    print_document(document, out(), pages=[] if refused else [f"page: {at}"])
    if refused:
        fail(refused, WeighbridgeError.exit_code)


def _margin(text: str | None) -> float | None:
    if text is None:
        return None
    if (fraction := percent("--margin", text)) == 0:
        fail("--margin 0% makes every significant distance an outlier: use a margin such as 3%", WRONG_COMMAND_LINE)
    return fraction


def _read(folder: Path, margin: float | None) -> FleetResult:
    if not folder.is_dir():
        what = "is not a folder" if folder.exists() else "does not exist"
        raise RunDirectoryError(f"{folder} {what}: name the folder of a fleet, or a folder with run directories")
    with reading_runs() as progress:
        return read_fleet(folder, margin=margin, progress=progress)
