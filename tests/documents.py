"""Whether what a command prints with --json is as its JSON Schema says."""

import functools
import json

from jsonschema import Draft202012Validator

from weighbridge.cli.commands.studies import SchemaDocument
from weighbridge.cli.schema import schema_of


@functools.cache
def _validator(document: SchemaDocument) -> Draft202012Validator:
    validator = Draft202012Validator(schema_of(document))
    validator.check_schema(validator.schema)
    return validator


def fits(document: SchemaDocument, made: object) -> None:
    """``made`` has every key of the schema, and no other."""
    validator = _validator(document)
    written = json.loads(json.dumps(made, allow_nan=False))
    assert [f"{error.json_path}: {error.message:.200}" for error in validator.iter_errors(written)] == []
    assert not validator.is_valid({**written, "another": 1}), "the keys are fixed"
