"""The base of the JSON documents that commands print with ``--json``, and the next steps that several of them have.

The JSON Schema and docs/reference/json.md are generated from these dataclasses: a field is a key, and its docstring
says what the key means.
"""

from dataclasses import dataclass
from typing import Literal

from pydantic import ConfigDict, GetJsonSchemaHandler, TypeAdapter
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema

StepCode = Literal[
    "reliable-verdicts", "undecided", "target-missed", "unfinished", "some-undecided", "too-close",
    "narrower-interval", "unknown-rounds", "disturbed", "control-failed", "unproven", "no-path", "failed-trials",
    "missing", "usage", "plan",
]  # fmt: skip
"""Why a step is suggested. docs/reference/json.md lists the meanings."""


@dataclass(frozen=True, kw_only=True)
class Documented:
    """The base of the dataclasses of a document.

    In the JSON Schema, docstrings of fields are descriptions, and an object has no other keys.
    """

    __pydantic_config__ = ConfigDict(use_attribute_docstrings=True, extra="forbid")

    @classmethod
    def __get_pydantic_json_schema__(cls, core: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        """Return the schema with the descriptions of inherited fields, which pydantic leaves out."""
        schema = handler(core)
        keys = handler.resolve_ref_schema(schema).get("properties", {})
        for base in cls.__bases__:
            for key, inherited in TypeAdapter(base).json_schema().get("properties", {}).items():
                keys[key] = inherited | keys[key]
        return schema


@dataclass(frozen=True, kw_only=True)
class SuggestedStep(Documented):
    """A step that the user can take next."""

    code: StepCode
    """The reason as a code."""
    reason: str
    """The reason as a sentence for people."""
    command: tuple[str, ...] | None = None
    """The command as a list of arguments; null if no command helps."""
    seconds: float | None = None
    """The expected time of the command; null if it is not known."""
