"""`weighbridge history`."""

from pathlib import Path

import typer

from weighbridge.cli.options import JsonFlag
from weighbridge.cli.output import err, examples, out, print_json


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
        directory: Path = typer.Argument(metavar="DIR", help="A folder with runs, or with folders of runs."),
        as_json: bool = JsonFlag,
        page: Path | None = typer.Option(
            None, "--html", metavar="FILE", help="Write a page with the cost of each primary metric over time."
        ),
    ) -> None:
        """List the runs in a folder, oldest first, with their costs and the changes between them.

        Unreadable runs are skipped and named on standard error.
        """
        from weighbridge.analysis.history import history as read_history
        from weighbridge.errors import RunDirectoryError
        from weighbridge.report.export.history import history_json
        from weighbridge.report.history import history_document
        from weighbridge.report.render_terminal import print_document
        from weighbridge.report.text.between_runs import why_skipped

        if not directory.is_dir():
            what = "is not a folder" if directory.exists() else "does not exist"
            raise RunDirectoryError(f"{directory} {what}: name a folder with run directories")
        folder = read_history(directory)
        for each in folder.skipped:
            err().print(f"skipped {each.name}: {why_skipped(each)}", markup=False)
        if not folder.runs:
            raise RunDirectoryError(f"{directory} has no readable run: name a folder with run directories")
        document = history_document(folder)
        if page is not None:
            from weighbridge.report.render_page import write_document

            write_document(document, page)
        if as_json:
            print_json(history_json(folder))
        else:
            print_document(document, out(), full=True, details=False)
        if page is not None:
            err().print(f"page: {page}", markup=False)
