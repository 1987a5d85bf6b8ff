"""`weighbridge schema`."""

from typing import Any

from pydantic import TypeAdapter

from weighbridge.cli.commands.studies import SchemaDocument, SchemaOptions
from weighbridge.cli.fleet_runs import FleetStatusDocument
from weighbridge.cli.output import print_json
from weighbridge.cli.plan import PlanDocument
from weighbridge.replication.document import ReplicationDocument
from weighbridge.report.export.compare import CompareDocument
from weighbridge.report.export.document import Report
from weighbridge.report.export.fleet_document import FleetDocument
from weighbridge.report.export.gate import GateDocument
from weighbridge.report.export.history import HistoryDocument
from weighbridge.study.schema import json_schema


def schema(options: SchemaOptions) -> None:
    """Print the schema of a document."""
    print_json(schema_of(options.document))


def schema_of(document: SchemaDocument) -> dict[str, Any]:
    """Return the JSON Schema (draft 2020-12) of a document."""
    if document is SchemaDocument.STUDY:
        return json_schema()
    types: dict[SchemaDocument, Any] = {
        SchemaDocument.REPORT: Report,
        SchemaDocument.REPLICATE: ReplicationDocument,
        SchemaDocument.PLAN: PlanDocument,
        SchemaDocument.COMPARE: CompareDocument,
        SchemaDocument.HISTORY: HistoryDocument,
        SchemaDocument.GATE: GateDocument,
        SchemaDocument.FLEET: FleetDocument,
        SchemaDocument.FLEET_STATUS: FleetStatusDocument,
    }
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **TypeAdapter(types[document]).json_schema()}
