"""`weighbridge export`."""

from pathlib import Path

from weighbridge.analysis.analyse import analyse
from weighbridge.cli.commands.results import ExportOptions
from weighbridge.cli.files import report_files
from weighbridge.cli.messages import WRONG_COMMAND_LINE, fail
from weighbridge.cli.runs import run_directory
from weighbridge.report.export.csv import tables, write_csv, write_programs
from weighbridge.report.export.parquet import write_parquet
from weighbridge.store.run import RunStore


def export(options: ExportOptions) -> None:
    """Write the tables of a run."""
    if options.csv is None and options.parquet is None:
        fail("name an output folder with --csv FOLDER or --parquet FOLDER", WRONG_COMMAND_LINE)
    with RunStore(run_directory(options.run)) as store:
        analysis = analyse(store)
        paths: list[Path] = []
        if options.csv is not None:
            paths += [*write_csv(store, options.csv, analysis), write_programs(store, options.csv, analysis)]
        if options.parquet is not None:
            paths += write_parquet(tables(store, analysis), options.parquet)
    report_files(paths, "\n".join(map(str, paths)))
