"""`weighbridge schema`."""

import typer

from weighbridge.cli.output import examples, print_json


def register(app: typer.Typer) -> None:
    """Add the command."""

    @app.command(epilog=examples("weighbridge schema > study.schema.json"))
    def schema() -> None:
        """Print the JSON Schema of study files, for your editor."""
        from weighbridge.study.schema import json_schema

        print_json(json_schema())
