"""`weighbridge schema`."""

from enum import StrEnum
from typing import Any

import typer

from weighbridge.cli.output import examples, print_json


class Document(StrEnum):
    """The documents with a JSON Schema: study files, and the output of commands with ``--json``."""

    STUDY = "study"
    REPORT = "report"
    REPLICATE = "replicate"
    PLAN = "plan"
    COMPARE = "compare"
    HISTORY = "history"
    GATE = "gate"
    FLEET = "fleet"
    FLEET_STATUS = "fleet-status"


def register(app: typer.Typer) -> None:
    """Add the command."""

    @app.command(epilog=examples("weighbridge schema > study.schema.json", "weighbridge schema report"))
    def schema(
        document: Document = typer.Argument(
            Document.STUDY,
            metavar="DOCUMENT",
            help=f"Study files, or the --json output of a command: {', '.join(Document)}.",
        ),
    ) -> None:
        """Print the JSON Schema of study files (for your editor), or of the JSON of a command."""
        print_json(schema_of(document))


def schema_of(document: Document) -> dict[str, Any]:
    """Return the JSON Schema (draft 2020-12) of a document."""
    if document is Document.STUDY:
        from weighbridge.study.schema import json_schema

        return json_schema()

    from pydantic import TypeAdapter

    from weighbridge.cli.fleet_runs import FleetStatusDocument
    from weighbridge.cli.plan import PlanDocument
    from weighbridge.replication.document import ReplicationDocument
    from weighbridge.report.export.compare import CompareDocument
    from weighbridge.report.export.document import Report
    from weighbridge.report.export.fleet_document import FleetDocument
    from weighbridge.report.export.gate import GateDocument
    from weighbridge.report.export.history import HistoryDocument

    types: dict[Document, Any] = {
        Document.REPORT: Report,
        Document.REPLICATE: ReplicationDocument,
        Document.PLAN: PlanDocument,
        Document.COMPARE: CompareDocument,
        Document.HISTORY: HistoryDocument,
        Document.GATE: GateDocument,
        Document.FLEET: FleetDocument,
        Document.FLEET_STATUS: FleetStatusDocument,
    }
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **TypeAdapter(types[document]).json_schema()}
