"""`weighbridge export`."""

from weighbridge.analysis.analyse import analyse
from weighbridge.cli.commands.results import ExportOptions
from weighbridge.cli.files import report_files
from weighbridge.cli.messages import WRONG_COMMAND_LINE, fail
from weighbridge.cli.runs import run_directory
from weighbridge.report.export.csv import write_csv, write_programs
from weighbridge.store.run import RunStore


def export(options: ExportOptions) -> None:
    """Write the tables of a run."""
    if options.csv is None:
        fail("name an output folder with --csv FOLDER", WRONG_COMMAND_LINE)
    with RunStore(run_directory(options.run)) as store:
        analysis = analyse(store)
        files = (*write_csv(store, options.csv, analysis), write_programs(store, options.csv, analysis))
    report_files(files, "\n".join(map(str, files)))
