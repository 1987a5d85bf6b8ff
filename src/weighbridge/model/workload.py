"""What a workload has to be. One object per module of ``workloads``; the registry finds it."""

import math
from abc import abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, final

from weighbridge.model.command import Command, Completed, Transport
from weighbridge.model.measurement import Measurement, Metric
from weighbridge.model.openings import Openings
from weighbridge.model.plugin import Durability, Plugin
from weighbridge.model.power_cut import Ledger
from weighbridge.model.site import DATA
from weighbridge.model.study import Role
from weighbridge.model.trial import TrialResult
from weighbridge.model.userland import UserlandSpec


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where a workload's server is, for one role: the server binds to ``listen``, its client connects to ``address``.

    ``port`` is where the server listens, in the client's endpoint the one that leads there: another number behind a
    published port may be. The next number, ``data_port``, is the workload's too, for programs whose data has a
    connection of its own.
    ``client`` is the address of the client's site, to which it binds. ``udp_payload`` is the largest UDP payload in
    bytes that does not fragment between them, probed where some workload of the study uses UDP (else None).
    """

    listen: str
    address: str
    port: int
    client: str = ""
    udp_payload: int | None = None
    data: str = DATA
    """The folder below which a site's programs keep data; each of several sites on one storage has its own."""
    password: str = field(default="", repr=False)
    """What a server that keeps data asks its clients for: 32 random digits, other ones in each run; "": nothing.

    It belongs into no ``argv``: that is kept with the run.
    """

    @property
    def data_port(self) -> int:
        """The second port; it is published only where the workload says ``has_data_port``."""
        return self.port + 1


@dataclass(frozen=True, slots=True)
class Length:
    """How the trials of a workload are given a length: by the amount of their work, as programs count whole seconds.

    ``shortest_s``: the shortest that is sound, in seconds of work. ``option``: the one that says the amount; where it
    is None, ``duration`` says the seconds. ``rate``: from what a trial measured, by metric, the amount per second.
    """

    shortest_s: float
    option: str
    rate: Callable[[Mapping[str, float]], float]
    fewest: int = 1
    """The least number of steps that is sound: a slow environment makes all trials longer."""
    step: float = 1
    """Amounts are multiples of it."""
    shortens_warm_up: bool = False
    """Whether the warm-up becomes shorter in proportion."""

    def per_second(self, figures: Mapping[str, float]) -> float | None:
        """The amount per second; None where what was measured does not tell it, or it is nothing."""
        try:
            rate = self.rate(figures)
        except (KeyError, ZeroDivisionError):
            return None
        return rate if 0 < rate < math.inf else None

    def lasted_s(self, options: Any, per_second: float) -> float:
        """For how many seconds a trial with ``options`` worked at this rate."""
        amount = getattr(options, self.option)
        return float(options.duration) if amount is None else amount / per_second

    def lasting(self, options: Any, seconds: float, per_second: float) -> Any:
        """Options under which a trial works for about so many seconds at this rate."""
        steps = max(self.fewest, round(per_second * seconds / self.step))
        return options.model_copy(update={self.option: steps if self.step == 1 else round(steps * self.step, 6)})

    def rounded(self, seconds: float, shortest_s: float, per_second: float) -> float:
        """The seconds, nearest to these and not below the shortest, that whole steps last at this rate."""
        of_a_second = per_second / self.step
        least = math.ceil(round(shortest_s * of_a_second, 9))
        return max(least, round(seconds * of_a_second)) / of_a_second


def by_seconds(shortest_s: float, measured: str, step: float = 1) -> Length:
    """Give the length of a program that is told the seconds, in multiples of ``step``, as its ``duration``.

    ``measured``: the metric that is above zero where a trial measured anything.
    """
    return Length(shortest_s, "duration", lambda figures: figures[measured] / figures[measured], step=step)


class Workload(Plugin):
    """A program that is run and measured. Pure: it gives commands and reads outputs, and starts nothing."""

    group = "load generators"
    packages: ClassVar[tuple[str, ...]]
    """The Debian packages that hold its programs."""
    has_data_port: ClassVar[bool] = False
    """Whether it needs the endpoint's second port too."""
    server_calls_client: ClassVar[bool] = False
    """Whether the server also connects to its client, which address translation does not carry."""
    maven: ClassVar[str] = ""
    """The project below ``weighbridge/java`` whose jars it needs; they are in the userland's /opt/NAME."""
    fixed_per_study: ClassVar[tuple[str, ...]] = ()
    """The options that have one value in a whole study: what they choose between are different programs."""
    in_phases: ClassVar[bool] = False
    """Whether it measures one thing after another, so that rates of several sites at a time have no sum."""
    golang: ClassVar[str] = ""
    """The project below ``weighbridge/golang`` whose program it needs; it is ``weighbridge-NAME`` in the userland."""
    c: ClassVar[str] = ""
    """The same for a project below ``weighbridge/c``."""

    def transports(self, options: Any) -> tuple[Transport, ...]:
        """What the server's port carries under these options; empty where it needs no network."""
        return ()

    def fixed_port(self, options: Any) -> int | None:
        """The one port, 1 to 65534, on which its server can listen; None: it listens where it is told to."""
        return None

    @final
    def roles(self, options: Any) -> tuple[Role, ...]:
        """Its processes under these options, in the order in which they start: the last one is measured.

        They follow from ``transports``: server and client where a port carries something, else ``solo``. They are the
        same in every environment.
        """
        return ("server", "client") if self.transports(options) else ("solo",)

    def load(self, options: Any) -> str:
        """The option that is its load (``connections``, ``threads``), where a server may break under it; else "".

        Its type is a whole number from 1 on, with an upper bound between 1000 and 10^6.
        Such a workload raises Broke for what its output shows; a server that ends by itself or is killed for its
        memory, and a client that reaches its deadline, have broken too.
        """
        return ""

    def openings(self, options: Any) -> Openings | None:
        """The fresh sites that its trial opens to time them; None where it runs a program in the open site.

        It has no port then: ``command`` is the first command of each of them, and ``parse`` reads what was found
        (`weighbridge.model.openings.read_opened`).
        """
        return None

    @abstractmethod
    def metrics(self, options: Any) -> tuple[Metric, ...]:
        """What it measures under these options."""

    @abstractmethod
    def command(self, role: Role, options: Any, at: Endpoint) -> Command:
        """The process of one role."""

    def packages_for(self, options: Any) -> tuple[str, ...]:
        """The Debian packages under these options; ``NAME/SUITE`` wants the whole userland to be of that suite."""
        return self.packages

    def userland(self, options: Any | None = None) -> UserlandSpec:
        """What the userland must hold for it: under these options, or by its class attributes alone."""
        packages = self.packages if options is None else self.packages_for(options)
        return UserlandSpec.of(packages, [self.maven], [self.golang], [self.c])

    def files(self, role: Role, options: Any, at: Endpoint) -> Mapping[str, bytes]:
        """Files of a role's site, all below /tmp or /run, by path: written before each trial starts a program."""
        return {}

    def file_mode(self, options: Any, path: str) -> int:
        """The permissions of one of these files: 0o755 of a program that is to be started."""
        return 0o644

    def needs_data(self, options: Any) -> bool:
        """Whether its server, or its one role, needs a folder on a disk, `weighbridge.model.site.DATA`.

        It outlives a trial.
        """
        return False

    def cold(self, options: Any) -> bool:
        """Whether each trial begins with empty page caches: of the site's kernel, its host's, and of its storage's.

        What is not written yet is written first; all that is before the server starts, and before a warm-up.
        """
        return False

    def room(self, options: Any) -> int:
        """About how many bytes it writes below DATA: what is known to be missing refuses the study before it runs."""
        return 0

    def inodes(self, options: Any) -> int:
        """How many files that are, where they are so many that a file system may lack inodes for them."""
        return 0

    def durability(self, options: Any) -> Durability | None:
        """What a power cut leaves of what the server has acknowledged; None where it keeps nothing of its clients.

        Environments in which it differs are never equivalent.
        """
        return None

    def ledger(self, options: Any, at: Endpoint) -> Ledger | None:
        """Clients that have its server commit records, and count them after a power cut; None where it has none."""
        return None

    def prepare(self, options: Any, at: Endpoint) -> Command | None:
        """What is run once in the server's site, before the first trial that asks for this very command there.

        It makes what every trial starts from, below DATA where it ``needs_data``. None where there is nothing to be
        made. Of a workload without a server it is the site of its one role, as for ``restore``.
        """
        return None

    def restore(self, options: Any, at: Endpoint) -> Command | None:
        """What is run in the server's site before each start of the server: brings back what ``prepare`` has made."""
        return None

    def finish(self, options: Any, at: Endpoint) -> Command | None:
        """What is run once where ``prepare`` is, after the last trial there and before that site is closed.

        Also when the run is interrupted or fails, and after a ``prepare`` that failed; not after kill -9. In no
        trial's time. Where it fails, that is told and kept with the run, and nothing else.
        """
        return None

    def check(self, options: Any, at: Endpoint) -> Command | None:
        """What is run in the measured site once its process has ended with code 0, before ``parse``; None: nothing.

        With another code the trial has failed. Its input is what the measured process printed; a server still runs.
        """
        return None

    def packet_size(self, options: Any, at: Endpoint) -> int | None:
        """The UDP payload in bytes that it sends under these options; None where it sends none of a fixed size."""
        return None

    def wants_payload(self, options: Any) -> bool:
        """Whether an option is ``mtu``: it takes the endpoint's ``udp_payload``."""
        return any(value == "mtu" for _, value in options)

    def warm_up(self, options: Any, at: Endpoint) -> Command | None:
        """A run of the measured role that is thrown away, or None where the program warms up by itself."""
        return None

    @abstractmethod
    def expected_s(self, options: Any) -> float:
        """About how long the measured process runs, in seconds; for the plan and the progress."""

    def length(self, options: Any) -> Length | None:
        """How its trials are made shorter, where a pilot block chooses that; None: they last as asked for."""
        return None

    @abstractmethod
    def parse(self, options: Any, completed: Mapping[str, Completed]) -> TrialResult:
        """All that each role's output tells, read once. Raises ProgramFailed or Unparseable; zero is a value."""

    def generator_threads(self, options: Any) -> int:
        """How many threads of the measured process can be busy at once; with all of them busy it is the limit."""
        return 1

    def jq(self, options: Any) -> str:
        """The program of jq(1) that gives its first metric from the measured role's output; "" where it is not JSON.

        For those who run it by hand: ``weighbridge kit`` writes it down.
        """
        return ""

    def asked_rate(self, options: Any) -> Measurement | None:
        """The rate that the program is told to keep, as a value of one of its metrics; None: as fast as it can.

        Where it was met, rates are equal whatever the environment costs: nobody may take that for equivalence.
        """
        return None
