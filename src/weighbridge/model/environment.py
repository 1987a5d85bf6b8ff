"""What an environment has to be, and what a study asks of it. One object per module; the registry finds it."""

from abc import abstractmethod
from collections.abc import Collection, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field, SerializeAsAny

from weighbridge.model.by_hand import ByHand, ByHandRequest
from weighbridge.model.command import Command
from weighbridge.model.facts import CONFINEMENT
from weighbridge.model.host import THIS_MACHINE, Host, HostTraits
from weighbridge.model.options import Brings, Options, by_kind
from weighbridge.model.plugin import Durability, Group, Plugin, Readiness
from weighbridge.model.site import Site, SiteRequest, Way
from weighbridge.model.storage import StorageOptions
from weighbridge.model.study import Resources

_MISSING = 'PATH="$PATH:/usr/sbin:/sbin"; for each; do command -v "$each" >/dev/null || echo "$each"; done'
SiteSetting = Literal["shm_size", "sysctls"]
"""A key of an environment that not every kind can honour."""


@dataclass(frozen=True, slots=True)
class Needs:
    """What a study asks of each of its environments.

    ``network``: a workload needs one. ``server_calls_client``: its server also connects to its client. ``apart``: the
    roles are on two hosts. ``hosts``: what those hosts are, by kind. ``inside``: the roles in the environment.
    ``own_hosts``: what the hosts of those are; None: all of ``hosts``. ``resources``: the limits of its sites.
    ``of_this_machine``: its programs are this machine's own, in whose root folder they are started. ``sysctls``: the
    names of settings of the kernel that its sites are to have.
    """

    network: bool = False
    server_calls_client: bool = False
    apart: bool = False
    hosts: Mapping[str, HostTraits] = field(default_factory=lambda: {"local": THIS_MACHINE})
    inside: frozenset[str] = frozenset({"server"})
    own_hosts: Mapping[str, HostTraits] | None = None
    resources: Resources = field(default_factory=Resources)
    of_this_machine: bool = False
    sysctls: frozenset[str] = frozenset()

    @property
    def holding(self) -> Mapping[str, HostTraits]:
        """What the hosts are, by kind, that have sites of the environment."""
        return self.hosts if self.own_hosts is None else self.own_hosts


OpenFiles = Annotated[
    int | None,
    Field(ge=64, le=2**30, description="Limit of open files of each process; default: this user's hard limit"),
]

Variables = Annotated[
    dict[Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_.-]{0,199}$")], Annotated[str, Field(max_length=4096)]],
    Brings.ARGUMENT,
    Field(description="Environment variables of its programs; they override the image's variables"),
]


class EnvironmentOptions(Options):
    """Base of the options of environments whose sites can have storage."""

    storage: Annotated[
        SerializeAsAny[StorageOptions] | None,
        by_kind("storage", "a storage"),
        Field(description="The storage of /srv in this environment: a kind, or a kind with options"),
    ] = None


class Environment(Plugin):
    """One isolation layer: it opens sites."""

    launches = True
    group: ClassVar[Group] = "engines"
    mounts: ClassVar[frozenset[Way]] = frozenset()
    """The ways in which storage gets into its sites; its options are then `EnvironmentOptions`."""
    shares_storage: ClassVar[bool] = True
    """Whether several of its sites can have one storage at a time; not where it holds the disk of one guest."""
    storage: ClassVar[str] = ""
    """The kind of storage where a workload needs one and the study names none."""
    limited_by_host: ClassVar[bool] = False
    """Whether its sites are in control groups of ours, in which a user who is not root may find no limits."""
    host_programs: ClassVar[Collection[str]] = ()
    """Those of ``programs`` that it starts on the host of its sites, whichever machine that is."""
    fixed_s: ClassVar[tuple[float, float]] = (0.15, 0.8)
    """Seconds that a trial takes beside its programs, from and to: for the time that a study is expected to take."""
    shares_root: ClassVar[bool] = False
    """Whether its sites can have the root folder of the host that they are on, which is not packed."""
    takes: ClassVar[frozenset[SiteSetting]] = frozenset()
    """What a study may set of its sites beside their limits."""

    def layer_durability(self, options: Any) -> Durability:
        """What a power cut leaves of what was synced to a container's own writable layer."""
        return "synchronous"

    def disk_durability(self, options: Any) -> Durability:
        """What a power cut leaves of what was synced to any storage, by what the environment puts before it."""
        return "synchronous"

    def problems(self, options: Any, *, needs: Needs) -> list[str]:
        """Why these options cannot work in a study that needs this of them, whatever the machine."""
        return []

    def as_host(self, traits: HostTraits) -> Any | None:
        """Options with which it is a host of such traits itself: where roles outside of a study's environments are.

        None: it is not. Of each kind of host one environment is.
        """
        return None

    def unplaceable(self, traits: HostTraits) -> str:
        """Why none of its sites can be on a host of such traits, whatever its options; "" where they can."""
        return "it cannot be on hosts on which another program starts everything" if traits.managed else ""

    def makes(self, options: Any, *, needs: Needs) -> Sequence[Any]:
        """What another program is asked to make for its sites, on hosts where that starts everything.

        In the words of such a host's kind, which is asked before a run whether it may be
        (`weighbridge.model.host_kind.HostKind.admits`).
        """
        return ()

    def foreseen_facts(self, options: Any, *, needs: Needs) -> Mapping[str, str]:
        """Facts that its sites will have there by these options, of those in which a difference is a confounder."""
        return {}

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

    def lacking_on(self, options: Any, host: Host) -> str:
        """What an open host of another machine lacks of what these options take; "" where nothing is known to be.

        A part of a sentence: "the program 'bwrap' is not installed". Changes nothing. By default of `host_programs`.
        """
        if not self.host_programs or host.this_machine:
            return ""
        missing = host.run(Command(("sh", "-c", _MISSING, "sh", *self.host_programs))).text.split()
        if not missing:
            return ""
        names = " and ".join(f"'{program}'" for program in missing)
        return f"the program{'s' * (len(missing) > 1)} {names} {'are' if len(missing) > 1 else 'is'} not installed"

    def way_to_companions(self, options: Any) -> str:
        """How its sites reach `SiteRequest.companions`, by names in /etc/hosts ("host to bridge"); "": not at all."""
        return ""

    def confinement(self, options: Any) -> Mapping[str, str]:
        """Those facts of `weighbridge.model.facts.CONFINEMENT` that its sites have by its kind and these options.

        Each with the value that must be in force; "" where any is the environment's own. A difference in another one
        is a confounder: nothing asked for it.
        """
        return dict.fromkeys(CONFINEMENT, "")

    def variants(self) -> Mapping[str, Any]:
        """Options whose readiness ``doctor`` tells in a row of their own, by what they are called."""
        return {}

    def weighed_in(self) -> Mapping[str, Mapping[str, Any]]:
        """The names by which ``weigh --in`` knows it, each with its options as a study says them."""
        return {self.kind: {}}

    def by_hand(self, options: Any, request: ByHandRequest) -> ByHand:
        """How it is made by hand, without Weighbridge, for ``weighbridge kit``."""
        return ByHand(
            f"the kit writes Compose files for Docker only: start it by hand, with the tools of {self.kind}"
        )

    @abstractmethod
    def open(self, options: Any, request: SiteRequest) -> AbstractContextManager[Site]:
        """A site for one role; everything that it made is gone when the context ends."""
