"""What an environment and a workload have to be. One object per module; the registry finds it."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, ClassVar

from weighbridge.model.command import Command, Completed, Transport
from weighbridge.model.measurement import Measurement, Metric
from weighbridge.model.site import Site, SiteRequest
from weighbridge.model.study import Options, Role


@dataclass(frozen=True, slots=True)
class Readiness:
    """Whether something can be used here, and if not, why and the one command that makes it ready."""

    ready: bool
    detail: str = ""
    remedy: str = ""


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where a workload's server is: it binds to ``listen``, its client connects to ``address``.

    The next number, ``data_port``, is the workload's too, for programs whose data has a connection of its own.
    """

    listen: str
    address: str
    port: int

    @property
    def data_port(self) -> int:
        """The second port; it is published only where the workload says ``has_data_port``."""
        return self.port + 1


class Plugin(ABC):
    """Common to all plug-ins: the ``kind`` that a study file names, one line about it, its options."""

    kind: ClassVar[str]
    summary: ClassVar[str]
    options: ClassVar[type[Options]]


class Environment(Plugin):
    """One isolation layer: it opens sites."""

    def problems(self, options: Any, *, network: bool) -> list[str]:
        """Why these options cannot work, whatever the machine; ``network``: a workload needs a network."""
        return []

    @abstractmethod
    def readiness(self) -> Readiness:
        """Whether a site can be opened on this machine. Must not change the machine."""

    @abstractmethod
    def open(self, options: Any, request: SiteRequest) -> AbstractContextManager[Site]:
        """A site for one role; everything that it made is gone when the context ends."""


class Workload(Plugin):
    """A program that is run and measured. Pure: it gives commands and reads outputs, and starts nothing."""

    packages: ClassVar[tuple[str, ...]]
    """The Debian packages that hold its programs."""
    roles: ClassVar[tuple[Role, ...]]
    """("server", "client") in the order in which they start, or ("solo",). The last one is measured."""
    transports: ClassVar[tuple[Transport, ...]] = ()
    """What its port carries; empty where it needs no network."""
    has_data_port: ClassVar[bool] = False
    """Whether it needs the endpoint's second port too."""

    @abstractmethod
    def metrics(self, options: Any) -> tuple[Metric, ...]:
        """What it measures under these options."""

    @abstractmethod
    def command(self, role: Role, options: Any, at: Endpoint) -> Command:
        """The process of one role."""

    def warm_up(self, options: Any, at: Endpoint) -> Command | None:
        """A run of the measured role that is thrown away, or None where the program warms up by itself."""
        return None

    @abstractmethod
    def expected_s(self, options: Any) -> float:
        """About how long the measured process runs, in seconds; for the plan and the progress."""

    @abstractmethod
    def parse(self, options: Any, completed: Mapping[str, Completed]) -> tuple[Measurement, ...]:
        """The measurements, from each role's output. Raises ProgramFailed or Unparseable; zero is a value."""
