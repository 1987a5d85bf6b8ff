"""`weighbridge schema`."""

from importlib import import_module
from typing import Any

from pydantic import TypeAdapter

from weighbridge.cli.commands.studies import DOCUMENTS, SchemaOptions
from weighbridge.cli.output import print_json
from weighbridge.study.schema import json_schema


def schema(options: SchemaOptions) -> None:
    """Print the schema of a document."""
    print_json(schema_of(options.document))


def schema_of(document: str) -> dict[str, Any]:
    """Return the JSON Schema (draft 2020-12) of a document, by its name."""
    module, _, name = DOCUMENTS[document].partition(":")
    if not module:
        return json_schema()
    written: Any = TypeAdapter(getattr(import_module(module), name)).json_schema()
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **written}
