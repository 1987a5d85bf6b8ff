"""`weighbridge history`."""

from pathlib import Path

import typer

from weighbridge.cli.output import JsonFlag, err, examples, out, print_json


def register(app: typer.Typer) -> None:
    """Add the command."""

    @app.command(
        epilog=examples(
            "weighbridge history runs",
            "weighbridge history runs --html history.html",
            "weighbridge history runs --json",
        )
    )
    def history(
        directory: Path = typer.Argument(metavar="DIR", help="A folder of runs, perhaps in folders of their own."),
        as_json: bool = JsonFlag,
        page: Path | None = typer.Option(None, "--html", help="Write a page with each headline cost over time."),
    ) -> None:
        """Show the runs of a folder, oldest first: their costs, and which facts changed in between.

        What cannot be read is skipped with a line on standard error.
        """
        from weighbridge.analysis.history import history as read_history
        from weighbridge.errors import RunDirectoryError
        from weighbridge.report.export.history_json import history_json
        from weighbridge.report.terminal_between import print_history
        from weighbridge.report.text.between_runs import why_skipped

        if not directory.is_dir():
            what = "is no folder" if directory.exists() else "does not exist"
            raise RunDirectoryError(f"{directory} {what}: name a folder that has run directories in it")
        folder = read_history(directory)
        for each in folder.skipped:
            err().print(f"skipped {each.name}: {why_skipped(each)}", markup=False)
        if not folder.runs:
            raise RunDirectoryError(f"{directory} has no run that can be read, neither itself nor in its folders")
        if page is not None:
            from weighbridge.report.between_pages import write_history

            write_history(folder, page)
        if as_json:
            print_json(history_json(folder))
        else:
            print_history(folder, out())
        if page is not None:
            err().print(f"page: {page}", markup=False)
