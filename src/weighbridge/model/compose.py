"""What a study says about a Compose file, one of whose services it measures."""

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import BeforeValidator, Field, WithJsonSchema

from weighbridge.model.companion import Port
from weighbridge.model.options import ABSOLUTE, Options

OF_THE_SERVICE = ("kind", "run", "server", "server_env", "port", "shell")
"""What the load's workload cannot say: it is the service's, or is of commands that have none."""


def _as_options(value: object) -> object:
    """A command line alone is the load's client."""
    if value is None or isinstance(value, bool):
        raise ValueError("a command line is needed: text, its words, or a mapping with 'client'")
    if not isinstance(value, Mapping):
        value = {"client": value}
    if not all(isinstance(key, str) for key in value):
        raise ValueError("a key of it is no text")
    if wrong := [key for key in OF_THE_SERVICE if key in value]:
        raise ValueError(f"'{wrong[0]}' is the service's own, or of no service: leave it out")
    client = value.get("client")
    if client is None or not (client.strip() if isinstance(client, str) else client):
        raise ValueError("it is empty: its command line is missing ('client', or the load itself)")
    return dict(value)


_WORDS: dict[str, Any] = {"anyOf": [{"type": "string"}, {"type": "array", "minItems": 1}, {"type": "object"}]}
_File = Annotated[str, ABSOLUTE]


class ComposedService(Options):
    """One service of a Compose file, and what is done without. Paths are relative to where Weighbridge is called."""

    file: Annotated[_File, Field(description="The Compose file; docker-compose reads it when the study is loaded")]
    service: Annotated[str, Field(description="The service that is measured; the others are its companions")]
    without: Annotated[tuple[str, ...], Field(description="Keys of it that are left out: KEY, or SERVICE.KEY")] = ()
    saved: Annotated[
        dict[str, _File], Field(description="Images that are in a file of docker save, by their names")
    ] = Field(default_factory=dict)
    image: Annotated[
        str | None, Field(description="In place of the measured service's own: a name, or such a file")
    ] = None
    port: Annotated[Port | None, Field(description="Where the service listens, if it has not one port")] = None


class ComposeOptions(ComposedService):
    """A service with its load."""

    load: Annotated[
        dict[str, Any],
        BeforeValidator(_as_options),
        WithJsonSchema(_WORDS),
        Field(description="The command line of the measured client, or the options of kind command with a client"),
    ]
