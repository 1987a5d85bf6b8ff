"""Supporting services, which stay in one place while the measured service moves between environments."""

from collections.abc import Mapping
from graphlib import CycleError, TopologicalSorter
from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator, Field, StrictBool, WithJsonSchema, model_validator

from weighbridge.model.options import ABSOLUTE, External, Name, Options
from weighbridge.model.quantity import Duration, Size
from weighbridge.model.sysctl import Sysctl, SysctlValue

Port = Annotated[int, Field(ge=1, le=65535)]
_Words = tuple[str, ...]


def _inside(path: str) -> str:
    if not path.startswith("/"):
        raise ValueError(f"'{path:.60}' is not an absolute path in the container: begin it with /")
    return path


_Inside = Annotated[str, AfterValidator(_inside)]
_Here = Annotated[str, Field(min_length=1), ABSOLUTE]


class Healthcheck(Options):
    """A command in the container that ends with code 0 once the service can be used."""

    test: Annotated[
        _Words, Field(min_length=1, description="Words of the check's command; no shell is used"), External.COMMAND
    ]
    interval: Annotated[Duration, Field(gt=0, le=3600, description="Time between two checks")] = 1.0
    timeout: Annotated[Duration, Field(gt=0, le=3600, description="Time limit of one check")] = 10.0
    retries: Annotated[int, Field(ge=1, le=10_000, description="Failures in a row that make it unhealthy")] = 60
    start_period: Annotated[
        Duration, Field(ge=0, le=3600, description="Time after the start in which failures do not count")
    ] = 0.0


class SupportingService(Options):
    """A supporting service: a container of this machine's engine on the run's bridge, reached by its name.

    It publishes no port. ``image`` must be in the engine, because Weighbridge pulls no image. With ``saved`` the
    image can come from a file.
    """

    image: Annotated[str, Field(min_length=1, max_length=500, description="An image in the engine"), External.IMAGE]
    saved: Annotated[
        _Here | None,
        Field(description="A docker save archive of the image"),
        External.FILE,
    ] = None
    entrypoint: Annotated[
        _Words | None, Field(min_length=1, description="Replaces the image's entrypoint"), External.COMMAND
    ] = None
    command: Annotated[_Words | None, Field(description="Replaces the image's command"), External.COMMAND] = None
    environment: Annotated[
        dict[str, str], Field(description="Variables, overriding the image's"), External.VARIABLE
    ] = Field(default_factory=dict)
    user: Annotated[str | None, Field(min_length=1, description="Replaces the image's user")] = None
    working_dir: Annotated[_Inside | None, Field(description="Replaces the image's working directory")] = None
    volumes: Annotated[
        dict[_Inside, Name], Field(description="Volumes of the run, by their path in the container")
    ] = Field(default_factory=dict)
    files: Annotated[dict[_Inside, _Here], External.FILE] = Field(
        default_factory=dict,
        description="Files and folders of this machine, by their path in the container; read-only",
    )
    tmpfs: Annotated[tuple[_Inside, ...], Field(description="Folders that are kept in memory")] = ()
    shm_size: Annotated[Size | None, Field(ge=2**20, description="Size of its /dev/shm")] = None
    sysctls: Annotated[
        dict[Sysctl, SysctlValue], Field(description="Kernel settings for it alone"), External.SETTING
    ] = Field(default_factory=dict)
    read_only: Annotated[StrictBool, Field(description="Make its root folder read-only")] = False
    init: Annotated[StrictBool, Field(description="Run the engine's init (tini) as its first process")] = False
    healthcheck: Annotated[Healthcheck | None, Field(description="Check that it is ready")] = None
    port: Annotated[Port | None, Field(description="It is ready once it listens on this port (TCP)")] = None
    deadline: Annotated[Duration, Field(gt=0, le=3600, description="Time in which it must be ready")] = 60.0
    after: Annotated[
        tuple[Name, ...], Field(description="Supporting services that must be ready before it starts")
    ] = ()

    @model_validator(mode="after")
    def _one_thing_at_a_place(self) -> "SupportingService":
        places = [*self.volumes, *self.files, *self.tmpfs]
        if twice := next((place for place in places if places.count(place) > 1), None):
            raise ValueError(f"two things are mounted at '{twice:.60}': move one")
        return self


def in_order(services: Mapping[str, SupportingService]) -> tuple[str, ...]:
    """Return their names in an order in which each can start. Raises ValueError if they wait for each other."""
    sorter = TopologicalSorter({name: service.after for name, service in services.items()})
    try:
        return tuple(sorter.static_order())
    except CycleError as error:
        raise ValueError(f"{', '.join(error.args[1][1:])} wait for each other: remove one 'after'") from None


OF_THE_SERVICE = ("kind", "run", "server", "server_env", "port", "shell")
"""The options that a load does not have, because they belong to the service or to other kinds of commands."""


def _as_options(value: object) -> object:
    """Return the load's options; a command line alone is the load's client."""
    if value is None or isinstance(value, bool):
        raise ValueError("write a command line: text, a list of words, or a mapping with 'client'")
    if not isinstance(value, Mapping):
        value = {"client": value}
    if not all(isinstance(key, str) for key in value):
        raise ValueError("one of its keys is not text: quote it")
    if wrong := [key for key in OF_THE_SERVICE if key in value]:
        raise ValueError(f"'{wrong[0]}' does not belong to a load: remove it")
    client = value.get("client")
    if client is None or not (client.strip() if isinstance(client, str) else client):
        raise ValueError("the command line is missing: write it as 'client', or as the load itself")
    return dict(value)


_WORDS: dict[str, Any] = {"anyOf": [{"type": "string"}, {"type": "array", "minItems": 1}, {"type": "object"}]}
_File = Annotated[str, ABSOLUTE]


class ComposedService(Options):
    """One service of a Compose file, and the keys to leave out. Paths are relative to the current folder."""

    file: Annotated[_File, Field(description="The Compose file; docker-compose reads it when the study is loaded")]
    service: Annotated[str, Field(description="The service to measure; the other services support it")]
    without: Annotated[tuple[str, ...], Field(description="Keys to leave out: KEY, or SERVICE.KEY")] = ()
    saved: Annotated[dict[str, _File], Field(description="docker save files, by the name of the image")] = Field(
        default_factory=dict
    )
    image: Annotated[str | None, Field(description="Replaces the service's image: a name, or such a file")] = None
    port: Annotated[Port | None, Field(description="The service's port, if it does not have exactly one")] = None


class ComposeOptions(ComposedService):
    """A service with its load."""

    load: Annotated[
        dict[str, Any],
        BeforeValidator(_as_options),
        WithJsonSchema(_WORDS),
        Field(description="The command line of the measured client, or the options of kind command with a client"),
    ]
