"""`weighbridge export`."""

from pathlib import Path

import typer

from weighbridge.cli.output import WRONG_COMMAND_LINE, examples, fail, out


def register(app: typer.Typer) -> None:
    """Add the command."""

    @app.command(epilog=examples("weighbridge export runs/first-look-20261121-090000 --csv tables/"))
    def export(
        run: Path = typer.Argument(metavar="RUN", help="A run directory."),
        csv: Path | None = typer.Option(
            None, "--csv", metavar="FOLDER", help="Folder for measurements.csv, costs.csv and programs.csv."
        ),
    ) -> None:
        """Export a run's measurements, costs and CPU times as CSV."""
        from weighbridge.analysis.analyse import analyse
        from weighbridge.cli.runs import run_directory
        from weighbridge.report.export.csv import write_csv, write_programs
        from weighbridge.store.run import RunStore

        if csv is None:
            fail("name an output folder with --csv FOLDER", WRONG_COMMAND_LINE)
        with RunStore(run_directory(run)) as store:
            analysis = analyse(store)
            for path in (*write_csv(store, csv, analysis), write_programs(store, csv, analysis)):
                out().print(str(path), markup=False, soft_wrap=True)
