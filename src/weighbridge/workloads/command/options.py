"""The options of a study's own command. It is not a plug-in."""

import re
from collections.abc import Iterator, Mapping
from pathlib import PurePosixPath
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    SerializeAsAny,
    StrictBool,
    WithJsonSchema,
    model_validator,
)

from weighbridge.model.adapter import AdapterOptions, named_twice
from weighbridge.model.measurement import OF_PROGRAM, Metric, is_resource_use
from weighbridge.model.options import ABSOLUTE, External, Factors, Options, by_kind
from weighbridge.model.quantity import Duration
from weighbridge.workloads._local_file import check_local
from weighbridge.workloads.command.metrics import MetricOptions
from weighbridge.workloads.command.words import OF_A_SERVER, CommandText, Template, unknown_placeholder

TIME = Metric("time", "s", "lower")
BUILT_IN = (TIME, *OF_PROGRAM)
"""The metrics that are measured for every command."""


def _as_text(value: object) -> object:
    """Return a number as text. A boolean is refused, because the user might have written the word ``no``."""
    return value if isinstance(value, bool) or not isinstance(value, int | float) else str(value)


def _as_words(value: object) -> object:
    return [_as_text(each) for each in value] if isinstance(value, list | tuple) else _as_text(value)


def _in_memory(path: str) -> str:
    if not path.startswith(("/tmp/", "/run/")) or ".." in PurePosixPath(path).parts or path.endswith("/"):  # noqa: S108
        raise ValueError(f"'{path:.60}' is not below /tmp or /run, the only writable folders of a site")
    return path


def _readable(path: str) -> str:
    check_local(path, "file")
    return path


_TEXT = {"type": ["string", "number"]}
_WORDS = {"anyOf": [_TEXT, {"type": "array", "items": _TEXT, "minItems": 1}]}
_Words = Annotated[CommandText, BeforeValidator(_as_words), WithJsonSchema(_WORDS)]
_Value = Annotated[str, BeforeValidator(_as_text), Field(max_length=4096), WithJsonSchema(_TEXT)]
_ParameterName = Annotated[str, Field(pattern=r"^[A-Za-z][A-Za-z0-9_]{0,39}$")]
_VariableName = Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_.-]{0,199}$")]
_MetricName = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]{0,59}$")]
_SitePath = Annotated[str, AfterValidator(_in_memory)]
_LocalFile = Annotated[str, AfterValidator(_readable), ABSOLUTE]
_Package = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9+.-]{1,99}$")]


def _contains_port(server: Template) -> bool:
    return not {"port", "data_port"}.isdisjoint(server.placeholders())


def _as_ready(value: object) -> object:
    return {} if value == "port" else value


def _is_line(text: str) -> str:
    try:
        re.compile(text)
    except (re.error, OverflowError, RecursionError) as error:
        raise ValueError(f"'{text:.60}' is not a regular expression: {error}") from None
    return text


_READY = {
    "anyOf": [
        {"const": "port"},
        {
            "type": "object",
            "properties": {"line": {"type": "string", "minLength": 1}},
            "required": ["line"],
            "additionalProperties": False,
        },
    ]
}


class ReadyOptions(Options):
    """When a server is ready: once it listens on its port, and has printed a matching line if one is named."""

    line: Annotated[
        Annotated[str, Field(min_length=1, max_length=1000), AfterValidator(_is_line)] | None,
        Field(description="The server is ready once it prints a line that matches this regular expression"),
    ] = None


class CommandOptions(Options):
    """Options of a command. Text is split into words as a shell does, but no shell runs it."""

    run: Annotated[
        _Words | None,
        Field(description="The measured command, without a counterpart: a list of words, or one text"),
        External.COMMAND,
    ] = None
    server: Annotated[
        _Words | None,
        Field(description="The server, instead of run; it listens at {listen}, {port}"),
        External.COMMAND,
    ] = None
    server_env: Annotated[dict[_VariableName, _Value], External.ARGUMENT] = Field(
        default_factory=dict, description="Variables for the server alone, overriding its userland's"
    )
    client: Annotated[
        _Words | None,
        Field(description="The measured client; its server is at {address}, {port}"),
        External.COMMAND,
    ] = None
    shell: Annotated[
        StrictBool, Field(description="Each command is one text for /bin/sh; values are quoted in it")
    ] = False
    parameters: Annotated[dict[_ParameterName, _Value], Factors(), External.ARGUMENT] = Field(
        default_factory=dict, description="Values for {NAME} in the commands; a list is swept"
    )
    setup: Annotated[
        _Words | None,
        Field(description="Run once in each environment, next to the server (or run), before its first trial"),
        External.COMMAND,
    ] = None
    cleanup: Annotated[
        _Words | None,
        Field(description="Run once there after its last trial, even if the run is interrupted or fails"),
        External.COMMAND,
    ] = None
    prepare: Annotated[
        _Words | None, Field(description="Run there before each trial, before the server starts"), External.COMMAND
    ] = None
    check: Annotated[
        _Words | None,
        Field(description="Run after each trial, with its output as input; a nonzero exit code fails the trial"),
        External.COMMAND,
    ] = None
    warm_up: Annotated[
        StrictBool, Field(description="Run the measured command once before each trial, uncounted")
    ] = False
    protocol: Annotated[Literal["tcp", "udp"], Field(description="Protocol of the server's port")] = "tcp"
    port: Annotated[
        int | None, Field(ge=1, le=65534, description="The server's fixed port, in every environment")
    ] = None
    ready: Annotated[
        ReadyOptions,
        BeforeValidator(_as_ready),
        WithJsonSchema(_READY),
        Field(description="When the server is ready: port (once it listens), or also a line of its output"),
    ] = ReadyOptions()
    metrics: dict[_MetricName, MetricOptions] = Field(
        default_factory=dict, description="Numbers to read from the output, by name; the first is the primary metric"
    )
    adapter: Annotated[
        SerializeAsAny[AdapterOptions] | None,
        by_kind("adapter", "an adapter"),
        Field(description="Reads the program's output format: a kind, or a kind with options"),
    ] = None
    deadline: Annotated[Duration, Field(gt=0, le=86400, description="Time limit of each command")] = 300.0
    expects: Annotated[
        Duration, Field(gt=0, le=86400, description="Expected time of the measured command, for the plan")
    ] = 1.0
    threads: Annotated[
        int | None,
        Field(ge=1, le=1024, description="Busy threads of the measured command; default: its number of CPUs"),
    ] = None
    files: Annotated[dict[_SitePath, _LocalFile], External.FILE] = Field(
        default_factory=dict,
        description="Files of this machine, by their path in each environment (below /tmp or /run)",
    )
    packages: Annotated[
        tuple[_Package, ...], Field(max_length=100, description="Debian packages that the commands need")
    ] = ()

    @model_validator(mode="after")
    def _one_or_two_roles(self) -> "CommandOptions":
        if self.run is not None and (self.server is not None or self.client is not None):
            raise ValueError("write 'run' alone, or 'server' and 'client'")
        if self.run is None and (self.server is None or self.client is None):
            lacks = "both 'server' and 'client'; or 'run' alone"
            if self.server is self.client:
                lacks = "'run', or 'server' and 'client'"
            raise ValueError(f"a command needs {lacks}")
        if self.run is not None and self.ready.line is not None:
            raise ValueError(
                "ready works only with a server. Remove it, or use 'server' and 'client' instead of 'run'"
            )
        if self.server is None and self.port is not None:
            raise ValueError("port works only with a server. Remove it")
        if self.server is None and self.server_env:
            raise ValueError("server_env works only with a server. Remove it")
        if "\0" in "".join(self.server_env.values()):
            raise ValueError("server_env: a value contains a zero byte. Remove it")
        return self

    @model_validator(mode="after")
    def _words_are_known(self) -> "CommandOptions":
        for name in self.parameters:
            if name in OF_A_SERVER or name in type(self).model_fields:
                raise ValueError(f"parameters: '{name}' is already used by Weighbridge. Choose another name")
        allowed = (*(OF_A_SERVER if self.server is not None else ()), *self.parameters)
        used: set[str] = set()
        for key, template in self.templates():
            try:
                problem = unknown_placeholder(template, allowed)
                used |= {*template.placeholders()}
            except ValueError as error:
                problem = str(error)
            if problem:
                raise ValueError(f"{key}: {problem}")
        if self.server is not None and self.port is None and not _contains_port(Template(self.server, self.shell)):
            raise ValueError(
                "server: the command does not contain {port}. Write {port} in it, or set 'port' if it is fixed"
            )
        if unused := [name for name in self.parameters if name not in used]:
            raise ValueError(
                f"parameters: no command uses '{unused[0]}'. Write {{{unused[0]}}} in a command, or remove it"
            )
        return self

    @model_validator(mode="after")
    def _metrics_differ(self) -> "CommandOptions":
        names = [metric.name for metric in (*self.own_metrics(), *BUILT_IN)]
        if twice := named_twice(names):
            built_in = any(twice == metric.name for metric in BUILT_IN)
            why = "Weighbridge already measures this for every command" if built_in else "two metrics have this name"
            raise ValueError(f"metrics: '{twice}' cannot be used, because {why}. Choose another name")
        if use := [
            name for name in names if is_resource_use(name) and name not in {each.name for each in OF_PROGRAM}
        ]:
            raise ValueError(f"metrics: '{use[0]}' is reserved for Weighbridge's meters. Choose another name")
        if self.expects >= self.deadline:
            raise ValueError("expects must be shorter than deadline, because the command is stopped at the deadline")
        return self

    def own_metrics(self) -> tuple[Metric, ...]:
        """Return the metrics of the output in their order: the named ones, then those that the adapter reads."""
        named = (options.metric(name) for name, options in self.metrics.items())
        return (*named, *(self.adapter.metrics() if self.adapter is not None else ()))

    def templates(self) -> Iterator[tuple[str, Template]]:
        """Yield every command of the study with its key."""
        keys = ("run", "server", "client", "setup", "prepare", "check", "cleanup")
        written: Mapping[str, Any] = {key: getattr(self, key) for key in keys}
        yield from ((key, Template(each, self.shell)) for key, each in written.items() if each is not None)
