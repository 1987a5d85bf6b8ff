"""The protocol of machine providers: where the machines of a fleet come from.

One process, the driver, measures a fleet: ``weighbridge fleet drive FOLDER`` (`drive`). `submit`
starts the driver and returns. The driver asks `allotted` for its machines and opens each one through `host` to check
it. Then it starts the runs, one wave after another: a ``weighbridge run`` per pair or machine, with `hosts` in the
study and `command` as the command line. The machines of an ssh list are known before the driver starts. If a
scheduler chooses machines, only the driver knows them, and it keeps them while `allotment` is open.

All methods that run in the driver see the environment variables that `submit` passed to it.
"""

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Literal

from weighbridge.model.names import RunId
from weighbridge.model.options import Options
from weighbridge.model.plugin import Plugin, Readiness

MACHINE_NAME = r"^(?!(?:alone|again)$)[A-Za-z0-9](?:[A-Za-z0-9_.]|-(?!-|$)){0,62}$"
"""A machine's name is part of the names of folders, which join the two machines of a pair with two dashes."""


class ProviderOptions(Options):
    """The base class of a provider's options. The fleet stores them, so that it continues with the same options.

    ``--nodes`` of the command line is an ordinary option, which each provider interprets in its own way.
    """

    kind: str
    """The name of the provider."""

    @property
    def description(self) -> str:
        """Return a few words for ``plan``: whose machines, and how many."""
        return self.kind


@dataclass(frozen=True, slots=True)
class Submission:
    """The command that starts a driver, and what a scheduler needs to know about it."""

    argv: tuple[str, ...]
    """``python3 -m weighbridge fleet drive --yes FOLDER``, with absolute paths."""
    folder: Path
    """The fleet's folder, as an absolute path. The command starts there; its output belongs into ``drive.log``
    there."""
    study: str
    """The study's name, for the name of the job."""
    pairs: bool
    """Whether the study needs two machines."""
    seconds: tuple[float, float]
    """The expected duration of the whole fleet, from and to, for a job without a time limit from the user."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """The driver's request for machines."""

    id: RunId
    """The fleet's own id, which labels the objects that the provider creates."""
    hosts: Mapping[str, Any]
    """The keys of a machine that come from the fleet's study, in addition to `host`."""
    had: tuple[str, ...] = ()
    """The machines that the fleet had before."""
    say: Callable[[str], None] = field(default=lambda _: None)
    """Prints what the provider is waiting for."""


@dataclass(frozen=True, slots=True)
class DriverState:
    """The state of a driver that was submitted."""

    state: Literal["waiting", "running", "ended", "unknown"]
    """``waiting``: the driver has not started, as in a queue. ``unknown``: the state cannot be read from here, or
    now."""
    detail: str = ""
    """The source of the answer in a few words: "job 17 PENDING (Resources)", "process 4711 on this machine"."""


class MachineProvider(Plugin):
    """A source of machines for a fleet. It also starts the fleet's driver and runs on them."""

    options: ClassVar[type[ProviderOptions]]
    """The model of its options, which are options of ``weighbridge fleet``."""
    drives_here: ClassVar[bool] = False
    """Whether the driver and all runs are processes of the machine on which the user submits the fleet."""
    stores_environment: ClassVar[bool] = False
    """Whether it stores the environment variables of the processes that it starts. Secrets are then not allowed
    there."""
    word: ClassVar[str] = ""
    """The value of ``--on`` in the help. Empty means its kind."""

    def named_by(self, word: str) -> Mapping[str, Any] | None:
        """Return the options that ``--on WORD`` sets, or None if the word does not mean this provider.

        The method reads at most the file that the word names. Raises StudyError if that file is not valid.
        """
        return {} if word == self.kind else None

    def ready(self, options: Any | None = None) -> Readiness:
        """Return whether this machine can get such machines: programs, a queue that answers. Changes nothing."""
        return Readiness(True)

    def settled(self, options: Any) -> Any:
        """Return the options for storage, with defaults that can change later (such as a context) written out."""
        return options

    @abstractmethod
    def count(self, options: Any) -> int:
        """Return the number of machines of the fleet. Raises Unavailable if there are not enough."""

    def notes(self, options: Any) -> tuple[str, ...]:
        """Return notes that users should read before they submit a fleet, one sentence each."""
        return ()

    def machines(self, options: Any) -> tuple[str, ...] | None:
        """Return the names of the machines (`MACHINE_NAME`), or None if a scheduler chooses them later.

        Weighbridge checks known machines before it starts the driver. Raises Unavailable.
        """
        return None

    @abstractmethod
    def submit(self, options: Any, submission: Submission) -> str:
        """Start the driver now, or once there are machines for it, and return its identifier, such as a job number.

        The driver continues when this process and its terminal end. Raises Unavailable with one sentence, which
        quotes the queue if it refuses the job.
        """

    @abstractmethod
    def state(self, options: Any, job: str) -> DriverState:
        """Return the state of the driver with the identifier ``job``. Never raises an error."""

    @abstractmethod
    def cancel(self, options: Any, job: str, folder: Path) -> None:
        """End the driver, or remove it from the queue, and return at once. Its runs keep every finished trial.

        SIGTERM to the driver is enough. Do nothing if the driver has ended. Raises Unavailable if that is not
        possible, or if ``job`` was not submitted for ``folder``, because another program could have written that
        identifier.
        """

    def part(self, options: Any) -> str:
        """In the driver: return the unique name of this driver if `submit` starts several (a job array), else "".

        The name follows the rules of machine names.
        """
        return ""

    @abstractmethod
    def allotted(self, options: Any) -> tuple[str, ...]:
        """In the driver: return the names of its machines. Raises Unavailable if there are too few.

        Weighbridge calls the method only if `machines` returned None.
        """

    def allotment(self, options: Any, wanted: Wanted) -> AbstractContextManager[tuple[str, ...]]:
        """In the driver: wait for the machines and keep them until the context ends. By default uses `allotted`.

        A signal interrupts the wait. Raises Unavailable.
        """
        return nullcontext(self.allotted(options))

    def at_once(self, options: Any) -> int | None:
        """Return how many runs the driver can have at the same time. None means all runs of a wave."""
        return None

    @abstractmethod
    def host(self, options: Any, machine: str) -> Mapping[str, Any]:
        """Return the host, as in a study, through which the driver reaches a machine: its kind and options."""

    def planned_host(self, options: Any, machine: str) -> Mapping[str, Any]:
        """Return the host for ``plan``. ``machine`` has an invented name if a scheduler will choose it later."""
        return self.host(options, machine)

    def hosts(self, options: Any, machines: Sequence[str]) -> tuple[Mapping[str, Any], ...]:
        """Return the hosts, as in a study, for a run on these machines: one, or client and server.

        They are reached from the machine on which `command` starts the run. By default that is the driver's machine.
        """
        return tuple(self.host(options, machine) for machine in machines)

    def command(self, options: Any, machines: Sequence[str], argv: Sequence[str]) -> tuple[str, ...]:
        """In the driver: return the command that starts the run ``argv`` on these machines.

        The command must pass SIGTERM on to the run and return its exit code. By default it is ``argv`` itself.
        """
        return tuple(argv)
