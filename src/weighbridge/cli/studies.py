"""`weighbridge studies`."""

import typer

from weighbridge.cli.output import JsonFlag, examples, out, print_json


def register(app: typer.Typer) -> None:
    """Add the command."""

    @app.command(epilog=examples("weighbridge studies"))
    def studies(as_json: bool = JsonFlag) -> None:
        """List the bundled studies."""
        from rich.table import Table

        from weighbridge.study.loader import load
        from weighbridge.study.source import bundled

        loaded = {name: load(name) for name in bundled()}
        if as_json:
            print_json([{"study": name, "question": study.file.question} for name, study in loaded.items()])
            return
        table = Table("study", "question", "environments", "workloads", box=None, pad_edge=False)
        for name, study in loaded.items():
            table.add_row(
                name, study.file.question, ", ".join(study.file.environments), ", ".join(study.file.workloads)
            )
        out().print(table)
