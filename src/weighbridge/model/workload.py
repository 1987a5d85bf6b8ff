"""The protocol of workloads: the programs that Weighbridge runs and measures."""

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
    """The addresses and ports of a workload, as one role uses them. Each role gets an endpoint of its own."""

    listen: str
    """The address to which the server binds."""
    address: str
    """The address to which the client connects."""
    port: int
    """The server's port. In the client's endpoint it is the port that leads to the server, which can be another
    number if the port is published."""
    client: str = ""
    """The address to which the client binds, or which it announces to the server. On two hosts a client that ignores
    it can use the wrong network interface."""
    udp_payload: int | None = None
    """The largest UDP payload in bytes that is not fragmented. Weighbridge probes it before the first trial. It is
    None unless a workload of the study uses UDP."""
    data: str = DATA
    """The folder for the data of a site's programs. Several sites on one storage have a folder each."""
    password: str = field(default="", repr=False)
    """The password that a server with data requires from its clients: 32 random digits, different in every run. It is
    empty if the server needs none. Never put it into ``argv``, because runs store that."""

    entry: tuple[str, ...] = ()
    """The words with which the host of the site starts a program in it (`Site.entering`), if the workload
    ``enters``."""

    @property
    def data_port(self) -> int:
        """Return the port after ``port``. It is published only if the workload sets ``has_data_port``."""
        return self.port + 1


@dataclass(frozen=True, slots=True)
class Length:
    """How Weighbridge shortens the trials of a workload.

    A program that runs for any number of seconds uses `by_seconds`. A program that counts whole seconds gets an
    amount of work instead, through an option that is None by default and replaces ``duration`` if it is set.
    """

    shortest_s: float
    """The shortest trial that still measures the right rate, in seconds of work. Measure it: run two workloads of
    different duration in one study, and take the shortest whose rate agrees."""
    option: str
    """The option that sets the amount of work. If it is None, ``duration`` sets the seconds."""
    rate: Callable[[Mapping[str, float]], float]
    """Computes the amount of work per second from the values of a trial, by metric."""
    fewest: int = 1
    """The smallest number of steps that gives a valid result, such as one event per thread."""
    step: float = 1
    """Amounts are multiples of this number."""
    shortens_warm_up: bool = False
    """Whether the warm-up is shortened in proportion."""

    def per_second(self, figures: Mapping[str, float]) -> float | None:
        """Return the amount of work per second, or None if the values do not give it or it is not above zero."""
        try:
            rate = self.rate(figures)
        except (KeyError, ZeroDivisionError):
            return None
        return rate if 0 < rate < math.inf else None

    def lasted_s(self, options: Any, per_second: float) -> float:
        """Return for how many seconds a trial with ``options`` worked at this rate."""
        amount = getattr(options, self.option)
        return float(options.duration) if amount is None else amount / per_second

    def lasting(self, options: Any, seconds: float, per_second: float) -> Any:
        """Return options with which a trial works for about ``seconds`` at this rate."""
        steps = max(self.fewest, round(per_second * seconds / self.step))
        return options.model_copy(update={self.option: steps if self.step == 1 else round(steps * self.step, 6)})

    def rounded(self, seconds: float, shortest_s: float, per_second: float) -> float:
        """Return the duration of whole steps that is nearest to ``seconds`` and not below the shortest."""
        of_a_second = per_second / self.step
        least = math.ceil(round(shortest_s * of_a_second, 9))
        return max(least, round(seconds * of_a_second)) / of_a_second


def by_seconds(shortest_s: float, measured: str, step: float = 1) -> Length:
    """Return the length of a program whose option ``duration`` is in seconds, in multiples of ``step``.

    ``measured`` names a metric that is above zero if the trial measured anything.
    """
    return Length(shortest_s, "duration", lambda figures: figures[measured] / figures[measured], step=step)


class Workload(Plugin):
    """A program to measure. A workload builds commands and parses outputs; it never starts a process itself."""

    group = "load generators"
    packages: ClassVar[tuple[str, ...]]
    """The Debian packages that contain its programs, with default options."""
    has_data_port: ClassVar[bool] = False
    """Whether the server also listens on ``Endpoint.data_port``. Without it that port is not published, and the
    workload fails behind a published port. Examples: ``netperf.py``, ``nuttcp.py``."""
    server_calls_client: ClassVar[bool] = False
    """Whether the server also connects to its client. ``plan`` then refuses published ports, because address
    translation does not carry such connections. Example: ``coherence_put.py``."""
    maven: ClassVar[str] = ""
    """The Maven project of Weighbridge whose jars it needs. They are in ``/opt/NAME`` of the root filesystem.
    Projects of other packages are not found."""
    fixed_per_study: ClassVar[tuple[str, ...]] = ()
    """The options that select between different programs. A study can use only one value of each. Example:
    ``mysql_oltp/``."""
    in_phases: ClassVar[bool] = False
    """Whether it measures several things one after another. Weighbridge then does not add up the rates of several
    sites (workload option ``sites``), because they belong to different moments. Example: ``bonnie.py``."""
    overhead_s: ClassVar[float] = 0.03
    """The seconds that the measured process runs in addition to its option ``duration``: to start, and to report."""
    golang: ClassVar[str] = ""
    """The Go project (``go.mod``, ``go.sum``, one ``main``) whose program it needs, in ``programs/NAME``.
    The program is ``/usr/local/bin/weighbridge-NAME`` in the root filesystem. Example: ``nginx_vegeta/``."""
    c: ClassVar[str] = ""
    """The C project of Weighbridge whose static program it needs, in ``programs/NAME`` of its folder. It is
    ``/usr/local/bin/weighbridge-NAME`` in the root filesystem. Example: ``syscalls/``."""

    def transports(self, options: Any) -> tuple[Transport, ...]:
        """Return the transports of the server's port with these options, such as ``("tcp",)``.

        A workload without a network returns an empty tuple. The roles follow from this method.
        """
        return ()

    def fixed_port(self, options: Any) -> int | None:
        """Return the only port, 1 to 65534, on which its server can listen, or None if it can use any port."""
        return None

    @final
    def roles(self, options: Any) -> tuple[Role, ...]:
        """Return its roles with these options, in the order in which they start. The last role is measured.

        A workload with transports has the roles ``server`` and ``client``; every other workload has ``solo``. No
        workload overrides this method.
        """
        return ("server", "client") if self.transports(options) else ("solo",)

    def load(self, options: Any) -> str:
        """Return the name of the option that sets the load (``connections``, ``threads``), or "" if it has none.

        A server can be overloaded at a high load. The option is a whole number from 1 on, with an upper bound between
        1,000 and 1,000,000 (``Field(le=...)``). ``parse`` raises Broke if the output shows an overloaded server.
        Weighbridge also counts the server as overloaded if it ends by itself, if it is killed for its memory, or if
        its client reaches the deadline. Without this option the report has no load curve, and an overloaded server is
        a failed trial that is repeated. Example: ``nginx_wrk.py``.
        """
        return ""

    def openings(self, options: Any) -> Openings | None:
        """Return how many fresh sites a trial opens and times, or None if it runs a program in the open site.

        Such a workload has no port. ``command`` returns the first command of each fresh site, and ``parse`` reads the
        times with `weighbridge.model.openings.read_opened`. Examples: ``boot.py``, ``density.py``.
        """
        return None

    def enters(self, options: Any) -> bool:
        """Return whether its program starts others in the open site from the site's host, as ``docker exec`` does.

        Its ``command`` then has the words for Weighbridge's launcher: ``repeat COUNT``, then ``Endpoint.entry``, then
        the program. The launcher starts on the host, or in the site if the entry is empty. No file of the root
        filesystem is started on the host. Such a workload has no port. Example: ``exec/``.
        """
        return False

    @abstractmethod
    def metrics(self, options: Any) -> tuple[Metric, ...]:
        """Return its metrics with these options. The first one is the primary metric."""

    @abstractmethod
    def command(self, role: Role, options: Any, at: Endpoint) -> Command:
        """Return the command of one role.

        A server's command lists its ports in ``listens``: Weighbridge waits until they are listening, and ends the
        server with ``stop_signal`` (SIGTERM by default). The server's ``deadline_s`` must exceed the deadlines of the
        client and of the warm-up together.
        """

    def packages_for(self, options: Any) -> tuple[str, ...]:
        """Return the Debian packages that it needs with these options.

        ``NAME/SUITE`` requires a root filesystem of that Debian suite. Example: ``mysql_oltp/``.
        """
        return self.packages

    def userland(self, options: Any | None = None) -> UserlandSpec:
        """Return the contents that its root filesystem needs. Workloads rarely override this method.

        Without options the answer follows from the class attributes alone.
        """
        packages = self.packages if options is None else self.packages_for(options)
        return UserlandSpec.of(packages, [self.maven], [self.golang], [self.c])

    def files(self, role: Role, options: Any, at: Endpoint) -> Mapping[str, bytes]:
        """Return the files that a role reads, by absolute path below ``/tmp`` or ``/run``.

        Weighbridge writes them before each trial. Example: ``nginx_wrk.py``.
        """
        return {}

    def file_mode(self, options: Any, path: str) -> int:
        """Return the permissions of one of these files. A program needs ``0o755``."""
        return 0o644

    def needs_data(self, options: Any) -> bool:
        """Return whether its server, or its only role, needs the folder ``/srv`` on a disk.

        The folder is kept from one trial to the next. Without it, data stays in memory. By default a workload that
        writes anything there (``room``) needs it. Example: ``redis_benchmark/``.
        """
        return self.room(options) > 0

    def cold(self, options: Any) -> bool:
        """Return whether each trial starts with empty page caches, in the site, on its host and on its storage
        server.

        Weighbridge writes dirty pages and drops the caches before it starts the server and the warm-up. By default
        the option ``cold`` decides, if there is one. Example: ``fio.py``.
        """
        return bool(getattr(options, "cold", False))

    def room(self, options: Any) -> int:
        """Return about how many bytes one site writes below ``/srv``.

        Weighbridge refuses a study before it runs if the disk is too small. Example: ``dd.py``.
        """
        return 0

    def inodes(self, options: Any) -> int:
        """Return how many files it writes, if they are so many that a file system can run out of inodes.

        Example: ``metadata.py``.
        """
        return 0

    def needs_io_uring(self, options: Any) -> bool:
        """Return whether it fails in a site whose programs cannot use io_uring.

        Weighbridge leaves out an optional environment that refuses io_uring, and otherwise refuses the run. Example:
        ``fio.py``.
        """
        return False

    def durability(self, options: Any) -> Durability | None:
        """Return how durable the data is that the server acknowledged, or None if it stores nothing for its clients.

        The report shows it. Two environments with different durability are never equivalent. Example:
        ``redis_benchmark/``.
        """
        return None

    def ledger(self, options: Any, at: Endpoint) -> Ledger | None:
        """Return two clients: one commits numbered records to the server, the other counts them after a power cut.

        ``weighbridge durability`` uses them. A workload whose server has no commits returns None. Example:
        ``pgbench/``.
        """
        return None

    def prepare(self, options: Any, at: Endpoint) -> Command | None:
        """Return the command that creates the initial data, or None if there is nothing to create.

        Weighbridge runs it once in the server's site, or in the site of the only role. It runs before the first trial
        that needs this command. Data belongs below ``/srv`` if ``needs_data`` is true.
        """
        return None

    def restore(self, options: Any, at: Endpoint) -> Command | None:
        """Return the command that restores the initial data, or None. It runs before each start of the server."""
        return None

    def finish(self, options: Any, at: Endpoint) -> Command | None:
        """Return the command that removes anything that closing the site would leave behind, or None.

        It runs once, in the same site as ``prepare``, after the last trial there. It also runs if the run is
        interrupted, if the run fails, or if ``prepare`` fails, but not after kill -9. If it fails, Weighbridge
        reports and stores the failure, and continues.
        """
        return None

    def check(self, options: Any, at: Endpoint) -> Command | None:
        """Return a command that checks the work of the measured process, or None.

        It runs in the measured site after that process has ended with code 0, while the server is still running. Its
        standard input is the output of the measured process. If it ends with another code than 0, the trial fails.
        Use it if a program that did nothing would otherwise look fast.
        """
        return None

    def packet_size(self, options: Any, at: Endpoint) -> int | None:
        """Return the UDP payload in bytes that it sends, or None if the size is not fixed.

        The report then warns if two environments were measured with different sizes. Example: ``iperf.py``.
        """
        return None

    def wants_payload(self, options: Any) -> bool:
        """Return whether it uses ``Endpoint.udp_payload``, because an option of type ``PacketSize`` is ``mtu``.

        Override this method only if ``mtu`` can stand elsewhere than in the value of an option. Example:
        ``sockperf.py``.
        """
        return any(value == "mtu" for _, value in options)

    def warm_up(self, options: Any, at: Endpoint) -> Command | None:
        """Return a command of the measured role whose result is discarded, or None if the program warms up by
        itself."""
        return None

    def expected_s(self, options: Any) -> float:
        """Return about how many seconds the measured process runs. ``plan`` and the progress display use it.

        The default is the option ``duration`` and ``overhead_s``. A workload without that option overrides it.
        """
        return float(options.duration) + self.overhead_s

    def beside_s(self, options: Any) -> float:
        """Return about how many seconds a trial takes in addition to its measured process.

        They restore the data, start the server, warm up and stop the server. ``plan`` uses them. The default is the
        option ``warm_up``, if it is a time. Example: ``coherence_put.py``.
        """
        warm_up = getattr(options, "warm_up", 0.0)
        return 0.0 if isinstance(warm_up, bool) else float(warm_up)

    def prepare_s(self, options: Any) -> float:
        """Return about how many seconds ``prepare`` takes in a site. Example: ``fio.py``."""
        return 0.0

    def further_requests(self, options: Any) -> int:
        """Return about how many disk requests a site waits for in addition to its expected time.

        They make trials on a slow disk (workload option ``disk_speed``) longer. Example: ``sysbench_fileio.py``.
        """
        return 0

    def length(self, options: Any) -> Length | None:
        """Return how Weighbridge can shorten its trials, or None if they always last as long as their options say.

        Studies with ``repetitions: {within: 10min}`` use it. Example: ``iperf3.py``.
        """
        return None

    @abstractmethod
    def parse(self, options: Any, completed: Mapping[str, Completed]) -> TrialResult:
        """Return the result of a trial, read from the output of each role.

        Raises ProgramFailed if the program failed, and Unparseable if a value is missing. A missing value is never 0.
        Require the line that the program prints last: a number in a truncated output can be a part of itself.
        """

    def generator_threads(self, options: Any) -> int:
        """Return how many threads of the measured process can be busy at the same time.

        If all of them are busy, the report flags the load generator as the limit. A wrong number gives false flags or
        none. The default is the option ``threads``, or 1 if there is none. Example: ``nginx_wrk.py``.
        """
        return int(getattr(options, "threads", 1))

    def jq(self, options: Any) -> str:
        """Return the jq(1) program that extracts its first metric from the output, or "" if the output is not JSON.

        ``weighbridge kit`` writes it into ``summary.sh`` for users who run the study by hand. Example: ``iperf3.py``.
        """
        return ""

    def asked_rate(self, options: Any) -> Measurement | None:
        """Return the rate that the program must keep, as a value of one of its metrics, or None if it runs at full
        speed.

        If every environment reaches that rate, the report does not call their rates equivalent. Example:
        ``iperf.py``.
        """
        return None
