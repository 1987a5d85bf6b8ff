"""What everything that a study file may say has in common."""

from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated, Any, Self

from pydantic import BaseModel, ConfigDict, Field, ModelWrapValidatorHandler, ValidationError, model_validator
from pydantic_core import InitErrorDetails

Name = Annotated[str, Field(pattern=r"^[A-Za-z][A-Za-z0-9_.-]{0,39}$")]


class Brings(StrEnum):
    """What an option names that is no part of Weighbridge; in the option's annotation, so that ``plan`` shows it."""

    FILE = "file"
    SSH_CONFIGURATION = "ssh configuration"
    MACHINE = "machine"
    SERVER = "server"


class Options(BaseModel):
    """Base of what a study file may say about one environment, workload, storage or host."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    @model_validator(mode="wrap")
    @classmethod
    def _no_boolean_is_a_number(cls, given: Any, handler: ModelWrapValidatorHandler[Self]) -> Self:
        """Pydantic makes 1 of true. What stays a boolean, or becomes a word (``appendonly: no``), is right."""
        made = handler(given)
        written = given if isinstance(given, Mapping) else {}
        wrong = [
            InitErrorDetails(type=f"{type(number).__name__}_type", loc=(key,), input=value)
            for key, value in written.items()
            if isinstance(value, bool) and type(number := getattr(made, key)) in (int, float)
        ]
        if wrong:
            raise ValidationError.from_exception_data(cls.__name__, wrong)
        return made
