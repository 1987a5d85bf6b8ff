"""What provides the machines of a fleet has to be. One object per module of ``fleets/on``; the registry finds it.

A fleet's rounds are driven by one process, ``weighbridge fleet drive FOLDER`` (`weighbridge.fleets.drive`). `submit`
starts it and returns; from then on it goes on alone. It asks `allotted` which machines it has, opens each once as
`host` says to see what it lacks, and then starts, round by round, an ordinary ``weighbridge run`` for each pair or
machine: by `command`, of the study with `hosts` in the place of its own. Machines of an ssh list are known
beforehand; those that a scheduler chooses are known to the driver alone, which has them as long as `allotment` lasts.

All that is called in the driver is called with the environment variables that `submit` gave to it.
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
"""A machine's name is part of the names of folders, in which two dashes join a pair."""


class ProviderOptions(Options):
    """Base of the options of each provider; kept with the fleet, so that it can be continued with the same ones.

    ``nodes`` of the command line is an option like the others, which each provider understands in its own way.
    """

    kind: str

    @property
    def description(self) -> str:
        """A few words for the plan: whose machines, and how many."""
        return self.kind


@dataclass(frozen=True, slots=True)
class Submission:
    """How a driver is to be started: ``argv`` in ``folder``, the fleet's, by whoever provides the machines."""

    argv: tuple[str, ...]
    """``python3 -m weighbridge fleet drive --yes FOLDER``, with absolute paths."""
    folder: Path
    """The fleet's folder, absolute. What the driver prints belongs into ``folder/drive.log``."""
    study: str
    """The study's name, for that of a job."""
    pairs: bool
    """Whether the study takes two machines."""
    seconds: tuple[float, float]
    """How long the rounds take, from-to, for a time limit that nobody has given."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a driver says of the machines that it wants."""

    id: RunId
    """The same whenever the fleet is driven: a label of the objects that it makes."""
    hosts: Mapping[str, Any]
    """What the fleet's study says of a machine, beside what `host` does."""
    had: tuple[str, ...] = ()
    """Machines that the fleet had before."""
    say: Callable[[str], None] = field(default=lambda _: None)
    """Hears what is waited for."""


@dataclass(frozen=True, slots=True)
class DriverState:
    """What is known of a driver that was submitted."""

    state: Literal["waiting", "running", "ended", "unknown"]
    """``waiting``: it has not begun, as in a queue. ``unknown``: whoever knows cannot be asked from here, or now."""
    detail: str = ""
    """In a few words who says so: "job 17 PENDING (Resources)", "process 4711 on this machine"."""


class MachineProvider(Plugin):
    """Where the machines of a fleet come from, and how its driver and its runs are started on them."""

    options: ClassVar[type[ProviderOptions]]
    drives_here: ClassVar[bool] = False
    """Whether the driver and every run are processes of the machine on which the fleet is submitted."""
    stores_environment: ClassVar[bool] = False
    """Whether it stores the environment of the processes that it starts, so that no secret can be in there."""
    word: ClassVar[str] = ""
    """What ``--on`` takes for it, in the help; "": its kind."""

    def named_by(self, word: str) -> Mapping[str, Any] | None:
        """Return the options that ``--on WORD`` gives, by their keys; None: the word names none of this kind.

        Reads no more than a file that the word names. Raises StudyError where that is wrong.
        """
        return {} if word == self.kind else None

    def readiness(self, options: Any | None = None) -> Readiness:
        """Whether such machines can be had from here (programs, a queue that answers). Changes nothing."""
        return Readiness(True)

    def settled(self, options: Any) -> Any:
        """Return the options as a fleet keeps them: with the names of what is usual now, and may not be later."""
        return options

    @abstractmethod
    def count(self, options: Any) -> int:
        """How many machines the fleet is to have. Raises Unavailable where there are fewer."""

    def notes(self, options: Any) -> tuple[str, ...]:
        """Return what is to be known before a fleet is submitted, a sentence each; () where that cannot be asked."""
        return ()

    def machines(self, options: Any) -> tuple[str, ...] | None:
        """Their names (`MACHINE_NAME`), where they are known beforehand; None: a scheduler chooses them.

        Those that are known are asked by `submit` itself, before the driver is started. Raises Unavailable.
        """
        return None

    @abstractmethod
    def submit(self, options: Any, submission: Submission) -> str:
        """Have the driver started now or once there are machines for it, and return what tells it: a job's number.

        It goes on when this process and its terminal end. Raises Unavailable in one sentence, with the queue's words
        where it refuses the job.
        """

    @abstractmethod
    def state(self, options: Any, job: str) -> DriverState:
        """Return what has become of the driver that `submit` told as ``job``. Raises nothing."""

    @abstractmethod
    def cancel(self, options: Any, job: str, folder: Path) -> None:
        """Have the driver end, or never begin; return at once. It ends its runs, which keep what is finished.

        SIGTERM to the driver is enough. Nothing where it has ended. Raises Unavailable where that is not possible, or
        where ``job`` is none that was submitted for ``folder``: somebody else may have written it.
        """

    def part(self, options: Any) -> str:
        """In the driver: which one it is, where `submit` starts several, each for machines of its own (an array).

        A name as a machine's, that none of the others has; "": it is the only one.
        """
        return ""

    @abstractmethod
    def allotted(self, options: Any) -> tuple[str, ...]:
        """In the driver: the names of the machines that it has. Raises Unavailable where there are too few.

        Asked where `machines` are not known beforehand: others are kept with the fleet.
        """

    def allotment(self, options: Any, wanted: Wanted) -> AbstractContextManager[tuple[str, ...]]:
        """In the driver: have the machines as long as the context lasts; by default they are `allotted` already.

        Waits for them, which a signal interrupts. Raises Unavailable.
        """
        return nullcontext(self.allotted(options))

    def at_once(self, options: Any) -> int | None:
        """How many runs the driver may have at the same time; None: all those of a round."""
        return None

    @abstractmethod
    def host(self, options: Any, machine: str) -> Mapping[str, Any]:
        """Return the host of a study by which the driver itself reaches a machine: its kind and options."""

    def planned_host(self, options: Any, machine: str) -> Mapping[str, Any]:
        """Return the host of a plan, whose ``machine`` has a made-up name: a scheduler is yet to choose it."""
        return self.host(options, machine)

    def hosts(self, options: Any, machines: Sequence[str]) -> tuple[Mapping[str, Any], ...]:
        """Return the hosts of a study for a run on these machines (one, or client and server), in their order.

        As they are reached from where `command` starts the run; by default from where the driver is.
        """
        return tuple(self.host(options, machine) for machine in machines)

    def command(self, options: Any, machines: Sequence[str], argv: Sequence[str]) -> tuple[str, ...]:
        """In the driver: return the command that starts ``argv``, a run on these machines; by default as it is.

        It passes SIGTERM on to the run and has its exit code.
        """
        return tuple(argv)
