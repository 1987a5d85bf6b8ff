"""The protocol of kinds of hosts: the machines on which sites are opened."""

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence, Set
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, ClassVar, Self

from weighbridge.model.host import Host, HostTraits, RunContext
from weighbridge.model.options import Options
from weighbridge.model.plugin import Group, Plugin, Readiness
from weighbridge.model.userland import Userland, Userlands


class HostOptions(Options):
    """The base class of a host's options. It also answers questions about the host before it is open."""

    traits: ClassVar[HostTraits]
    """The properties that all hosts of this kind share."""
    kind: str
    """The name of the kind of host."""

    @property
    def own_traits(self) -> HostTraits:
        """Return the traits of the kind after the changes of these options."""
        return self.traits

    @property
    def networks(self) -> Set[str]:
        """Return the networks of the host. Two hosts of one kind can be on different networks."""
        return self.traits.networks

    def reaches(self, other: "HostOptions") -> bool:
        """Return whether the two hosts can reach each other because they share a network."""
        return bool(self.networks & other.networks)

    @property
    def own_cpus(self) -> str | None:
        """Return the CPUs of this machine that the study reserves for the host (a CPU list)."""
        return None

    @property
    def memory_here(self) -> int:
        """Return the bytes of this machine's memory that the host uses. 0 for all hosts except guests."""
        return 0

    @property
    def cable_rate(self) -> float | None:
        """Return the rate limit of its cable in bits per second, or None."""
        return None

    @property
    def image_way(self) -> str:
        """Return how root filesystems reach the host as images, or "" if they reach it in another way."""
        return ""

    @property
    def pulls(self) -> bool:
        """Return whether it can only use images from a registry."""
        return False

    def with_volatile_cache(self) -> Self | None:
        """Return these options with a disk that loses unflushed data in a power cut, or None if power cannot be
        cut."""
        return None

    @property
    def description(self) -> str:
        """Return a few words for ``plan``: which machine it is, and its cable."""
        return self.kind


class HostKind(Plugin):
    """A kind of machine on which sites are opened."""

    options: ClassVar[type[HostOptions]]
    """The model of its options, with ``traits``."""
    group: ClassVar[Group] = "network"

    def ready(self, options: Any | None = None) -> Readiness:
        """Return whether this machine can provide such hosts, with these options if any are given.

        The check opens no host and changes nothing.
        """
        return Readiness(True)

    def opening_s(self, options: Any) -> float:
        """Return about how many seconds such a host takes to open. ``plan`` uses them. Example: guest hosts."""
        return 1.0

    def build_s(self, options: Any, cache: Path) -> float:
        """Return about how many seconds the files take that such a host needs and that are not in the cache yet."""
        return 0.0

    def slowdown(self, options: Any) -> float:
        """Return how many times longer programs take there than on this machine, as far as it is known."""
        return 1.0

    def admits(self, options: Any, asked: Mapping[str, Sequence[Any]]) -> Mapping[str, Readiness]:
        """Return whether a cluster would accept the objects of each environment, by the environment's name.

        ``asked`` has the objects from `weighbridge.model.environment.Environment.makes`. Leave out an environment if
        the answer is not known. Changes nothing.
        """
        return {}

    def makes_for_native(self, needs: Any) -> Sequence[Any]:
        """Return the objects that a cluster must create for a site in its node's own namespaces, as for `admits`.

        ``needs`` is a `weighbridge.model.environment.Needs`.
        """
        return ()

    def facts_of_native(self, needs: Any) -> Mapping[str, str]:
        """Return the facts that such a site will have, as `Environment.foreseen_facts` does."""
        return {}

    def describe_location(self, options: Any) -> str:
        """Return the owner of such a host's machine and the resources that a run creates there, for ``plan``.

        Return "" if the description is enough. The method contacts nothing and starts no program that a study names.
        """
        return ""

    def survey(self, context: str = "", namespace: str = "") -> Mapping[str, Readiness]:
        """Return what can be measured in a cluster, by name, for ``doctor --cluster``.

        An empty ``context`` or ``namespace`` means the default one. Changes nothing.
        """
        return {}

    def weighed_on(
        self, context: str, namespace: str, images: str, *, separate_hosts: bool, ask: bool
    ) -> Sequence[Mapping[str, Any]]:
        """Return hosts in a cluster for ``weigh --cluster`` in the format of a study.

        With ``separate_hosts``, return two hosts if the cluster has two nodes, else one. A kind without clusters
        returns nothing. ``images`` is the user's word for how nodes get images; "" means the default. The method
        contacts the cluster only if ``ask`` is true. Raises Unavailable, and ValueError if ``images`` is not valid.
        """
        return ()

    def holds(self, options: Any, userland: Userland, cache: Path) -> Mapping[str, bool | None]:
        """Return whether the possible machines of such a host already have an image, by machine name.

        None means that the answer is not known. Return an empty mapping if it makes no difference to a run. ``cache``
        is the user's cache folder. Changes nothing.
        """
        return {}

    def push(
        self, userlands: Callable[[], Userlands], repository: str, cache: Path, say: Callable[[str], None]
    ) -> Sequence[str]:
        """Push the images that such hosts need to a repository of a registry, and return their names there.

        A kind that uses no registry returns nothing. ``userlands`` builds the root filesystems. Raises Unavailable.
        """
        return ()

    @abstractmethod
    def open(
        self, name: str, options: Any, run: RunContext, peers: Sequence[HostOptions]
    ) -> AbstractContextManager[Host]:
        """Create or connect to the host ``name``, and remove everything that was created when the context ends.

        ``peers`` are the options of all hosts that have roles, including this host. Raises Unavailable with one
        sentence if the host cannot be opened.
        """
