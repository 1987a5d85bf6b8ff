"""`weighbridge export`."""

from weighbridge.analysis.analyse import analyse
from weighbridge.cli.commands.results import ExportOptions
from weighbridge.cli.messages import WRONG_COMMAND_LINE, fail
from weighbridge.cli.output import out
from weighbridge.cli.runs import run_directory
from weighbridge.report.export.csv import write_csv, write_programs
from weighbridge.store.run import RunStore


def export(options: ExportOptions) -> None:
    """Write the tables of a run."""
    if options.csv is None:
        fail("name an output folder with --csv FOLDER", WRONG_COMMAND_LINE)
    with RunStore(run_directory(options.run)) as store:
        analysis = analyse(store)
        for path in (*write_csv(store, options.csv, analysis), write_programs(store, options.csv, analysis)):
            out().print(str(path), markup=False, soft_wrap=True)
