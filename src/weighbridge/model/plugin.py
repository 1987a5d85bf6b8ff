"""What an environment and a workload have to be. One object per module; the registry finds it."""

from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, final

from weighbridge.model.by_hand import ByHand, ByHandRequest
from weighbridge.model.command import Command, Completed, Transport
from weighbridge.model.endpoint import Endpoint as Endpoint  # noqa: PLC0414 - others have it from here
from weighbridge.model.ledger import Ledger
from weighbridge.model.measurement import Measurement, Metric
from weighbridge.model.mount import Way
from weighbridge.model.needs import Needs
from weighbridge.model.openings import Openings
from weighbridge.model.result import TrialResult
from weighbridge.model.site import Site, SiteRequest
from weighbridge.model.study import Options, Role
from weighbridge.model.trial_length import Length
from weighbridge.model.userland import UserlandSpec


@dataclass(frozen=True, slots=True)
class Readiness:
    """Whether something can be used here, and if not, why and the one command that makes it ready.

    ``caveat``: in a few words, how what is ready is less than one would take it for ("emulated"), which ``detail``
    explains.
    """

    ready: bool
    detail: str = ""
    remedy: str = ""
    caveat: str = ""


Durability = Literal["synchronous", "asynchronous", "none"]
"""All of what was acknowledged is on the disk; most of it is; it is in memory alone."""


class Plugin(ABC):
    """Common to all plug-ins: the ``kind`` that a study file names, one line about it, its options."""

    kind: ClassVar[str]
    summary: ClassVar[str]
    options: ClassVar[type[Options]]
    programs: ClassVar[Collection[str]] = ()
    """The programs that it starts on this machine itself, as PATH finds them.

    Which package has one is known to `weighbridge.linux.packages`, for each distribution.
    """
    architectures: ClassVar[Collection[str]] = ()
    """Those of this machine, by uname(2)'s names, that it works on; empty: all."""
    installed_by: ClassVar[Mapping[str, str]] = {}
    """For those of its programs that are in no distribution's packages: the command that installs each."""
    launches: ClassVar[bool] = False
    """Whether it brings up launchers of sites, which are built here once."""

    def unverified(self, options: Any | None = None) -> str:
        """What of it has never been seen to work on real hardware, with these options where some are given; else "".

        A part of a sentence: "machines were started, but no workload was run in one".
        """
        return ""


class Environment(Plugin):
    """One isolation layer: it opens sites."""

    launches = True
    mounts: ClassVar[frozenset[Way]] = frozenset()
    """The ways in which storage gets into its sites; its options are then `weighbridge.model.storage`'s."""
    shares_storage: ClassVar[bool] = True
    """Whether several of its sites can have one storage at a time; not where it holds the disk of one guest."""
    storage: ClassVar[str] = ""
    """The kind of storage where a workload needs one and the study names none."""
    limited_by_host: ClassVar[bool] = False
    """Whether its sites are in control groups of ours, in which a user who is not root may find no limits."""
    shares_root: ClassVar[bool] = False
    """Whether its sites can have the root folder of the host that they are on, which is not packed."""

    def layer_durability(self, options: Any) -> Durability:
        """What a power cut leaves of what was synced to a container's own writable layer."""
        return "synchronous"

    def problems(self, options: Any, *, needs: Needs) -> list[str]:
        """Why these options cannot work in a study that needs this of them, whatever the machine."""
        return []

    @abstractmethod
    def readiness(self, options: Any | None = None) -> Readiness:
        """Whether a site can be opened on this machine, with these options where some are given.

        Must not change the machine; what only a try can tell is tried in a namespace that is thrown away.
        """

    def unmet(self, options: Any, *, needs: Needs) -> Readiness | None:
        """What this machine lacks of what these options take in such a study; None where nothing is known to be.

        An interface that they name, the memory of all sites. Asked where its hosts have this machine's kernel.
        """
        return None

    def way_to_companions(self, options: Any) -> str:
        """How its sites reach `SiteRequest.companions`, by names in /etc/hosts ("host to bridge"); "": not at all."""
        return ""

    def variants(self) -> Mapping[str, Any]:
        """Options whose readiness ``doctor`` tells in a row of their own, by what they are called."""
        return {}

    def by_hand(self, options: Any, request: ByHandRequest) -> ByHand:
        """How it is made by hand, without Weighbridge, for ``weighbridge kit``."""
        return ByHand(
            f"the kit makes Compose files for Docker alone: bring it up by hand, with the tools of {self.kind}"
        )

    @abstractmethod
    def open(self, options: Any, request: SiteRequest) -> AbstractContextManager[Site]:
        """A site for one role; everything that it made is gone when the context ends."""


class Workload(Plugin):
    """A program that is run and measured. Pure: it gives commands and reads outputs, and starts nothing."""

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
        """The program of jq(1) that gives its first metric from the measured role's output; "" where that is no JSON.

        For those who run it by hand: ``weighbridge kit`` writes it down.
        """
        return ""

    def asked_rate(self, options: Any) -> Measurement | None:
        """The rate that the program is told to keep, as a value of one of its metrics; None: as fast as it can.

        Where it was met, rates are equal whatever the environment costs: nobody may take that for equivalence.
        """
        return None
