"""A sample: this machine, on which everything of the run gives way to others."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field

from weighbridge.hosts.local import LocalHost
from weighbridge.linux.process import Process, SocketStream
from weighbridge.model.command import Command, Completed
from weighbridge.model.host import Host, HostTraits, RunContext
from weighbridge.model.host_kind import HostKind, HostOptions


class NiceOptions(HostOptions):
    """``level`` is that of nice(1)."""

    traits: ClassVar[HostTraits] = HostTraits(here=True, this_machine=True, networks=frozenset({"switch"}))
    kind: Literal["nice"] = "nice"
    level: Annotated[int, Field(ge=0, le=19, description="As for nice")] = 10


class NiceHost(LocalHost):
    """Implements ``Host``."""

    def __init__(self, name: str, level: int, run: RunContext) -> None:
        super().__init__(run.id, name)
        self._prefix = ("nice", "-n", str(level))

    def run(self, command: Command) -> Completed:
        return super().run(command.wrapped(*self._prefix))

    def start(self, command: Command, *, hold: bool = False) -> Process:
        return super().start(command.wrapped(*self._prefix), hold=hold)

    def talk(self, command: Command) -> tuple[Process, SocketStream]:
        return super().talk(command.wrapped(*self._prefix))


class Nice(HostKind):
    """A host of this kind needs nothing."""

    kind = "nice"
    summary = "this machine, at a lower priority"
    options = NiceOptions
    programs: ClassVar = ("nice",)

    @contextmanager
    def open(self, name: str, options: Any, run: RunContext, peers: Sequence[HostOptions]) -> Iterator[Host]:
        yield NiceHost(name, options.level, run)


PLUGIN = Nice()
