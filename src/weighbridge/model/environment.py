"""The protocol of environments, and the requirements that a study puts on them."""

from abc import abstractmethod
from collections.abc import Collection, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field, SerializeAsAny

from weighbridge.model.by_hand import ByHand, ByHandRequest
from weighbridge.model.facts import CONFINEMENT
from weighbridge.model.host import THIS_MACHINE, Host, HostTraits
from weighbridge.model.options import External, Options, by_kind
from weighbridge.model.plugin import Durability, Group, Plugin, Readiness
from weighbridge.model.site import Site, SiteRequest, StorageMode
from weighbridge.model.storage import StorageOptions
from weighbridge.model.study import Resources

SiteSetting = Literal["shm_size", "sysctls"]
"""A key of an environment that not every kind can honour."""
NOT_CHECKED = "not checked"
"""The caveat of an environment that Weighbridge has not looked at."""


@dataclass(frozen=True, slots=True)
class Needs:
    """The requirements of a study on one of its environments."""

    network: bool = False
    """Whether a workload needs a network."""
    server_calls_client: bool = False
    """Whether a server also connects to its client."""
    separate_hosts: bool = False
    """Whether the roles are on two hosts."""
    hosts: Mapping[str, HostTraits] = field(default_factory=lambda: {"local": THIS_MACHINE})
    """The traits of the study's hosts, by kind of host."""
    inside: frozenset[str] = frozenset({"server"})
    """The roles that run in the environment."""
    own_hosts: Mapping[str, HostTraits] | None = None
    """The traits of the hosts that have sites of the environment. None means all of ``hosts``."""
    resources: Resources = field(default_factory=Resources)
    """The limits of its sites: its own or the study's."""
    of_this_machine: bool = False
    """Whether the programs are this machine's own and start in its root folder."""
    sysctls: frozenset[str] = frozenset()
    """The names of the kernel settings that its sites must have."""
    entered: bool = False
    """Whether a workload starts programs in its open sites from their host (`Site.entering`)."""
    opened_at_once: bool = False
    """Whether a workload opens several of its sites at the same time."""
    image_files: bool = False
    """Whether a workload opens its sites from images with additional files."""

    @property
    def holding(self) -> Mapping[str, HostTraits]:
        """Return the traits of the hosts that have sites of the environment, by kind of host."""
        return self.hosts if self.own_hosts is None else self.own_hosts


OpenFiles = Annotated[
    int | None,
    Field(ge=64, le=2**30, description="Limit of open files of each process; default: this user's hard limit"),
]

Variables = Annotated[
    dict[Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_.-]{0,199}$")], Annotated[str, Field(max_length=4096)]],
    External.ARGUMENT,
    Field(description="Environment variables of its programs; they override the image's variables"),
]


class EnvironmentOptions(Options):
    """The base class of the options of environments whose sites can have storage."""

    storage: Annotated[
        SerializeAsAny[StorageOptions] | None,
        by_kind("storage", "a storage"),
        Field(description="The storage of /srv in this environment: a kind, or a kind with options"),
    ] = None


class Environment(Plugin):
    """A way to isolate programs. An environment opens sites, in which Weighbridge runs programs."""

    launches = True
    group: ClassVar[Group] = "engines"
    mounts: ClassVar[frozenset[StorageMode]] = frozenset()
    """The ways in which storage can be mounted into its sites: ``folder``, ``volume``, ``layer``. Options of such an
    environment derive from `EnvironmentOptions`."""
    shares_storage: ClassVar[bool] = True
    """Whether several of its sites can use one storage at the same time. The disk of a guest cannot be shared."""
    storage: ClassVar[str] = ""
    """The kind of storage that its sites get if a workload needs one and the study names none."""
    limited_by_host: ClassVar[bool] = False
    """Whether its sites are in Weighbridge's own control groups. ``plan`` then warns if the user cannot set limits
    there. Example: ``netns.py``."""
    host_programs: ClassVar[Collection[str]] = ()
    """The part of ``programs`` that it starts on the host of its sites. Fleets check them on every machine."""
    on_clusters: ClassVar[Literal["never", "privileged", "only"]] = "never"
    """Whether its sites can be on nodes of a cluster: in privileged pods (``native.py``), or nowhere else (``pod/``).
    A study that places them elsewhere is refused."""
    fixed_s: ClassVar[float] = 0.06
    """The seconds that a trial takes in each of its sites in addition to its programs. ``plan`` uses them."""
    opening_s: ClassVar[float] = 0.3
    """The seconds to open one of its sites and to close it, without its engine. ``plan`` uses them."""
    engine_s: ClassVar[float] = 0.0
    """The seconds to start its engine on a host, and to give it the image. ``plan`` uses them."""
    shares_root: ClassVar[bool] = False
    """Whether its sites can use this machine's own files (``userland: host``, or ``weigh`` without an image). If
    another program starts the launcher, mount ``request.userland.layered`` and use the user of
    ``request.userland.process``. Example: ``bubblewrap.py``."""
    enters: ClassVar[bool] = False
    """Whether its sites say how their host starts a program in them (`Site.entering`). Without it the workload
    ``exec`` is refused. Examples: ``bubblewrap.py``, ``docker/``."""
    builds_images: ClassVar[bool] = False
    """Whether its sites start from an image that Weighbridge builds, with any number of additional files
    (`make_images`). Without it, the option ``image_files`` of ``boot`` is refused. Examples: ``docker/``,
    ``podman/``."""
    takes: ClassVar[frozenset[SiteSetting]] = frozenset()
    """The settings that its sites support in addition to limits: ``shm_size``, ``sysctls``. A study that sets another
    one is refused."""

    def opens_in_order(self, options: Any) -> str:
        """Return a name if its sites must open one after the other, in the order of the study; "" if not.

        Sites of environments that return the same name never open at the same time. All others can: `open` is then
        called in several threads, and makes everything that sites have in common through `RunContext.share`.
        Examples: ``docker/`` (the first engine of a swarm manages it), ``podman/``.
        """
        return ""

    def layer_durability(self, options: Any) -> Durability:
        """Return how durable data is after a power cut that was synced to a container's own writable layer.

        Example: ``docker/``.
        """
        return "synchronous"

    def disk_durability(self, options: Any) -> Durability:
        """Return how durable synced data is after a power cut, if the environment weakens any storage.

        Example: ``qemu.py``, whose disk cache can ignore flushes.
        """
        return "synchronous"

    def build_s(self, options: Any, cache: Path) -> float:
        """Return about how many seconds the files take that it needs and that are not in the cache yet.

        ``plan`` uses them. Example: ``qemu.py``.
        """
        return 0.0

    def purpose(self, options: Any, role: str) -> str:
        """Return the purpose of the host that its sites get if hosts are made for the run, or "" if they get none.

        Sites with the same purpose share a host. Example: ``docker/``.
        """
        return ""

    def check(self, options: Any, needs: Needs) -> Sequence[str]:
        """Return why these options cannot work in a study with these needs, on any machine, as whole sentences.

        It asks no machine. Example: ``docker/contradictions.py``.
        """
        return ()

    def as_host(self, traits: HostTraits) -> Any | None:
        """Return the options with which it is the bare host itself, or None if it isolates programs.

        Roles outside of a study's environments run there. Exactly one environment returns options for each kind of
        host. Example: ``native.py``.
        """
        return None

    def makes(self, options: Any, *, needs: Needs) -> Sequence[Any]:
        """Return the objects that a cluster must create for its sites, in the form that the kind of host defines.

        Before a run, `weighbridge.model.host_kind.HostKind.admits` asks the cluster whether it would accept them.
        """
        return ()

    def foreseen_facts(self, options: Any, *, needs: Needs) -> Mapping[str, str]:
        """Return the facts that its sites will have on a cluster with these options.

        Return only facts in which a difference is a confounder.
        """
        return {}

    def ready(self, options: Any | None = None, needs: Needs | None = None) -> Readiness:
        """Return whether this machine can open its sites, with these options and for this study if they are given.

        Weighbridge has checked ``programs``, ``architectures`` and ``root_makes`` before, and asks only if the hosts
        use this machine's kernel. The answer names the missing part and the one command that provides it. It must not
        change the machine. Try things out only in a temporary namespace. Set ``caveat`` if the environment works with
        a restriction ("emulated"). Examples: ``docker/``, ``qemu.py``.
        """
        return Readiness(True)

    def ready_unapproved(self, options: Any, needs: Needs) -> Readiness:
        """Return what is known before the user agrees to a study whose options name programs or files.

        It starts nothing, and looks at no path that the study names. Example: ``wrapper/``.
        """
        return Readiness(True, "its programs and files are looked at after you agree", caveat=NOT_CHECKED)

    def ready_on(self, options: Any, host: Host) -> Readiness:
        """Return whether another machine, which is open, can have its sites. Changes nothing.

        Fleets ask every machine before they begin, after they have checked ``host_programs``. Example:
        ``apptainer.py``.
        """
        return Readiness(True)

    def route_to_supporting_services(self, options: Any) -> str:
        """Return how its sites reach the supporting services of a study ("host to bridge"), or "" if they cannot.

        ``open`` then writes the names in ``SiteRequest.supporting_services`` into ``/etc/hosts`` and creates a
        route. If the method returns "", a study with supporting services is refused. Examples: ``native.py``,
        ``netns.py``, ``docker/``.
        """
        return ""

    def confinement(self, options: Any) -> Mapping[str, str]:
        """Return the facts of confinement (seccomp, capabilities, namespaces, ...) that belong to this environment.

        Each fact has the value that must be in force, or "" if every value belongs to the environment. A difference
        in any other fact is a confounder. By default all facts in `weighbridge.model.facts.CONFINEMENT` belong to the
        environment.
        """
        return dict.fromkeys(CONFINEMENT, "")

    def variants(self) -> Mapping[str, Any]:
        """Return options that get a separate row in ``doctor``, by the name of the row. Example: ``docker/``."""
        return {}

    def weighed_in(self) -> Mapping[str, Mapping[str, Any]]:
        """Return its names for ``weigh --in``, each with its options as in a study. Examples: ``docker/``,
        ``podman/``."""
        return {self.kind: {}}

    def by_hand(self, options: Any, request: ByHandRequest) -> ByHand:
        """Return how to create it with Docker Compose or a shell, for ``weighbridge kit``, or why that is not
        possible."""
        return ByHand(
            f"the kit writes Compose files for Docker only: start it by hand, with the tools of {self.kind}"
        )

    def make_images(self, options: Any, request: SiteRequest, sizes: Collection[int]) -> None:
        """Make the images of further sites like an open one, so that no trial has to. Raises Unavailable.

        ``sizes`` are the bytes of their additional files (`SiteRequest.image_files`). The images end with the run.
        Weighbridge calls it if ``builds_images`` is set. Example: ``docker/``.
        """

    @abstractmethod
    def open(self, options: Any, request: SiteRequest) -> AbstractContextManager[Site]:
        """Open a site for one role, and remove everything that was created when the context ends.

        Weighbridge calls the method once per role and per client host; ``request.name`` is unique. Raises
        EnvironmentLost with one sentence if the environment disappears.
        """


def misplaced(environment: Environment, traits: HostTraits) -> str:
    """Return why sites of an environment can never be on a host with these traits, or "" if they can."""
    if environment.on_clusters == "only":
        return "" if traits.managed else "pods run only on nodes of a cluster: use hosts of kind kubernetes"
    if not traits.managed:
        return ""
    return traits.without_native if environment.on_clusters == "privileged" else HostTraits.without_native
