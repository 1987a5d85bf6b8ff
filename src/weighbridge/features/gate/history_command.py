"""`weighbridge history`."""

from weighbridge.cli.output import err, out, print_json
from weighbridge.cli.progress import reading_runs
from weighbridge.errors import RunDirectoryError
from weighbridge.features.gate.compare_text import why_skipped
from weighbridge.features.gate.history_document import history_document
from weighbridge.features.gate.history_json import history_json
from weighbridge.features.gate.options import HistoryOptions
from weighbridge.features.gate.past_runs import history as read_history
from weighbridge.report.render_page import write_document
from weighbridge.report.render_terminal import print_document


def history(options: HistoryOptions) -> None:
    """Print the costs of all runs in a folder."""
    if not options.directory.is_dir():
        what = "is not a folder" if options.directory.exists() else "does not exist"
        raise RunDirectoryError(f"{options.directory} {what}: name a folder with run directories")
    with reading_runs() as progress:
        folder = read_history(options.directory, progress)
    for each in folder.skipped:
        err().print(f"skipped {each.name}: {why_skipped(each)}", markup=False)
    if not folder.runs:
        raise RunDirectoryError(
            f"{options.directory} has no readable run: name a folder with run directories or kept files"
        )
    document = history_document(folder)
    if options.page is not None:
        write_document(document, options.page)
    if options.as_json:
        print_json(history_json(folder))
    else:
        print_document(document, out(), full=True, details=False)
    if options.page is not None:
        err().print(f"page: {options.page}", markup=False)
