"""The base of all options in a study file, and the annotations of options."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, Self

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ModelWrapValidatorHandler,
    ValidationError,
    ValidationInfo,
    model_validator,
)  # fmt: skip
from pydantic_core import InitErrorDetails, PydanticCustomError, PydanticUndefined

from weighbridge.model.spelling import nearest
from weighbridge.model.validation import NAME_PATTERN, is_hidden, shown, with_allowed

Name = Annotated[str, Field(pattern=NAME_PATTERN)]
ArmName = Annotated[
    str,
    Field(pattern=r"^[A-Za-z][A-Za-z0-9_.-]{0,99}(\[[^\[\]\x00-\x1f\x7f]{1,200}\][A-Za-z0-9_.-]{0,99})?$"),
]
"""An environment, a level of a swept environment (``docker[network=host]``), or an arm that explains a cost."""


STORED = "stored"
"""A key of a validation context: the data were checked when their run began, and have quantities without units."""


def is_stored(info: ValidationInfo) -> bool:
    """Return whether a checked study is read back, and not a study file."""
    return bool((info.context or {}).get(STORED))


def _absolute(path: str) -> str:
    return str(Path(path).absolute())


ABSOLUTE = AfterValidator(_absolute)
"""For the annotation of a path, which can be relative to the folder where Weighbridge is called."""


class External(StrEnum):
    """An external resource that an option names, as an annotation, so that ``plan`` shows it."""

    FILE = "file"
    COMPOSE = "Compose file"
    IMAGE = "image"
    SSH_CONFIGURATION = "ssh configuration"
    KUBECONFIG = "kubeconfig"
    MACHINE = "machine"
    SERVER = "server"
    COMMAND = "command"
    """A program of the study that is started; ``ARGUMENT``: the value of a level in its command line."""
    ARGUMENT = "argument"
    PROGRAM = "program"
    """A program of this machine that is started outside of all sites, with the files next to it."""
    RUNTIME = "OCI runtime"
    """A program that an engine starts to create containers. A name that the engine knows is not external."""

    VARIABLE = "environment variable"
    """A variable of programs. The dynamic linker, shells and Python start programs that some variables name."""
    SETTING = "kernel setting"
    NETWORK = "network"
    """An interface or a range of addresses of a machine, on which containers get a network."""
    NODE_FOLDER = "folder of a node"

    @property
    def is_path(self) -> bool:
        """Whether it is a file of this machine, named relative to the folder where weighbridge is called."""
        return self in (
            External.FILE, External.COMPOSE, External.SSH_CONFIGURATION, External.KUBECONFIG, External.PROGRAM,
            External.RUNTIME,
        )  # fmt: skip


@dataclass(frozen=True, slots=True)
class Factors:
    """Marks an option that is a mapping: each list in it is a separate factor, under its own name."""


class Options(BaseModel):
    """Base of the options of one environment, workload, storage or host in a study file."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    @model_validator(mode="wrap")
    @classmethod
    def _checked(cls, raw: Any, handler: ModelWrapValidatorHandler[Self]) -> Self:
        """Report what each option allows, and refuse a boolean as a number, which pydantic would convert.

        A value that stays a boolean or becomes a word (``appendonly: no``) is right.
        """
        written = raw if isinstance(raw, Mapping) else {}
        try:
            options = handler(raw)
        except ValidationError as error:
            raise with_allowed(cls, written, error) from None
        wrong = [
            InitErrorDetails(type=f"{type(number).__name__}_type", loc=(key,), input=value)
            for key, value in written.items()
            if isinstance(value, bool) and type(number := getattr(options, key)) in (int, float)
        ]
        if wrong:
            raise with_allowed(cls, written, ValidationError.from_exception_data(cls.__name__, wrong))
        return options


def by_kind(section: str, what: str) -> BeforeValidator:
    """Check options with the model of their ``kind``, from the validation context. A name alone is a kind."""

    def check(raw: Any, info: ValidationInfo) -> Any:
        if raw is None or isinstance(raw, Options):
            return raw
        models: Mapping[str, type[Options]] = (info.context or {}).get(section, {})
        written: Mapping[str, Any] = raw if isinstance(raw, Mapping) else {"kind": raw}
        if "kind" not in written:
            sentence = f"{what} needs a kind. {_known_kinds(models)}"
            raise PydanticCustomError("without_kind", "{sentence}", {"sentence": sentence})
        if not isinstance(kind := written["kind"], str) or kind not in models:
            wrong = f" {shown(kind)}" if isinstance(kind, str | int) and not is_hidden(kind, ()) else ""
            sentence = f"unknown kind{wrong}{nearest(kind, models) or f'. {_known_kinds(models)}'}"
            raise PydanticCustomError("unknown_kind", "{sentence}", {"sentence": sentence})
        others = {key: value for key, value in written.items() if key != "kind"}  # it can be another name of the kind
        own = getattr(models[kind].model_fields.get("kind"), "default", PydanticUndefined)
        return models[kind].model_validate(others if own is not PydanticUndefined else written, context=info.context)

    return BeforeValidator(check)


def _known_kinds(models: Iterable[str]) -> str:
    return f"Known kinds: {', '.join(models)}"
