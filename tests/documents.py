"""Whether what a command prints with --json is as its JSON Schema says."""

import functools
import json
from collections.abc import Iterator
from typing import Any

from jsonschema import Draft202012Validator

from weighbridge.cli.commands.studies import SchemaDocument
from weighbridge.cli.schema import schema_of


@functools.cache
def _validator(document: SchemaDocument) -> Draft202012Validator:
    validator = Draft202012Validator(schema_of(document))
    validator.check_schema(validator.schema)
    return validator


def fits(document: SchemaDocument, made: object) -> None:
    """``made`` has every key of the schema, and no other, in nested objects too."""
    validator = _validator(document)
    written = json.loads(json.dumps(made, allow_nan=False))
    assert [f"{error.json_path}: {error.message:.200}" for error in validator.iter_errors(written)] == []
    assert not validator.is_valid({**written, "another": 1}), "the keys are fixed"
    opened = [place for place, schema in _objects(validator.schema) if schema["additionalProperties"] is True]
    assert opened in ([], ["RemarkRow"]), "the keys of nested objects are fixed"


def _objects(schema: Any) -> Iterator[tuple[str, Any]]:
    """Yield each kind of nested object, by its name."""
    for name, definition in schema.get("$defs", {}).items():
        if "properties" in definition:
            yield name, {"additionalProperties": True, **definition}


def doctor_rows(found: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the rows of all sections of the document of ``doctor --json``."""
    lists = (each for each in found.values() if isinstance(each, list))
    return [row for rows in lists for row in rows if isinstance(row, dict) and "ready" in row]
