"""`weighbridge report`."""

from pathlib import Path

import typer

from weighbridge.cli.output import JsonFlag, err, examples, out, print_json


def register(app: typer.Typer) -> None:
    """Add the command."""

    @app.command(
        epilog=examples(
            "weighbridge report runs/first-look-20261121-090000",
            "weighbridge report RUN --all",
            "weighbridge report RUN --json",
        )
    )
    def report(
        run: Path = typer.Argument(help="A run directory."),
        as_json: bool = JsonFlag,
        whole: bool = typer.Option(False, "--all", help="Show a table of every metric, not of the first alone."),
        page: Path | None = typer.Option(
            None, "--html", help="Where the page goes (default: report.html in the run)."
        ),
    ) -> None:
        """Show the verdicts of a run and write its page, from what is stored."""
        from weighbridge.cli.replicate import PAGE, write_beside
        from weighbridge.cli.runs import run_directory
        from weighbridge.report.analysis import analyse
        from weighbridge.report.html import write_html
        from weighbridge.report.machine import report_json
        from weighbridge.report.terminal import print_report
        from weighbridge.store.run import RunStore

        run = run_directory(run)
        with RunStore(run) as store:
            if as_json:
                print_json(report_json(store))
                return
            analysis = analyse(store)
            written = write_html(store, page or run / "report.html", analysis)
            beside = write_beside(store, analysis)[1] if (run / PAGE).exists() else None
            print_report(analysis, out(), whole=whole)
        err().print(f"report: {written}", markup=False)
        if beside is not None:
            err().print(f"published and measured: {beside}", markup=False)
