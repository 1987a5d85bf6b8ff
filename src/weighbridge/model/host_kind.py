"""What a kind of host has to be, and its options. One object per module of ``hosts/kinds``; the registry finds it."""

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
    """Base of the options of a host, with the questions that they can answer before the host is open."""

    traits: ClassVar[HostTraits]
    kind: str

    @property
    def own_traits(self) -> HostTraits:
        """The kind's, as these options change them."""
        return self.traits

    @property
    def networks(self) -> Set[str]:
        """The networks that it is on; of two hosts of one kind they may be different ones."""
        return self.traits.networks

    def reaches(self, other: "HostOptions") -> bool:
        """Whether the two hosts reach one another: they are on a common network."""
        return bool(self.networks & other.networks)

    @property
    def own_cpus(self) -> str | None:
        """The CPUs of this machine that belong to it, where the study names them."""
        return None

    @property
    def memory_here(self) -> int:
        """Bytes of this machine's memory that it takes, as a machine that has a size; else 0."""
        return 0

    @property
    def cable_rate(self) -> float | None:
        """The rate limit that the study puts on its cable, in bits per second."""
        return None

    @property
    def image_way(self) -> str:
        """How images of userlands get to it and what becomes of them; "": it takes userlands in another way."""
        return ""

    @property
    def pulls(self) -> bool:
        """Whether it has only such userlands as are images of a registry."""
        return False

    def with_volatile_cache(self) -> Self | None:
        """As it is, with a disk that loses at a power cut what was not flushed; None: its power cannot be cut."""
        return None

    @property
    def description(self) -> str:
        """A few words for the plan: which machine it is, and its cable."""
        return self.kind


class HostKind(Plugin):
    """A kind of machine on which sites are opened."""

    options: ClassVar[type[HostOptions]]
    group: ClassVar[Group] = "network"

    def readiness(self, options: Any | None = None) -> Readiness:
        """Whether such hosts can be had from this machine, as far as can be told without one.

        With these options where some are given. Changes nothing.
        """
        return Readiness(True)

    def admits(self, options: Any, asked: Mapping[str, Sequence[Any]]) -> Mapping[str, Readiness]:
        """Whether such a host would have all of what each environment makes there, by the environment's name.

        ``asked``: what their `weighbridge.model.environment.Environment.makes` says. An environment about which
        nothing is known is omitted. Changes nothing.
        """
        return {}

    def whereabouts(self, options: Any) -> str:
        """Say whose machines such a host is on and what a run makes there, for `plan`; "": the description is enough.

        Reaches nothing, and starts nothing that a study brings.
        """
        return ""

    def survey(self, context: str = "", namespace: str = "") -> Mapping[str, Readiness]:
        """What can be measured in a cluster that many hosts are in (``doctor --cluster``), by what it is called.

        Both as its users name them; "": the usual one. Changes nothing.
        """
        return {}

    def weighed_on(
        self, context: str, namespace: str, images: str, *, apart: bool, ask: bool
    ) -> Sequence[Mapping[str, Any]]:
        """Hosts in a cluster as a study says them, for ``weigh``: two for roles ``apart`` where it has two; else one.

        () where it has no clusters. ``images``: the users' words for the way in which nodes get them; "": the usual
        one there. Not where it may not ``ask`` the cluster. Raises Unavailable, ValueError for other words.
        """
        return ()

    def holds(self, options: Any, userland: Userland, cache: Path) -> Mapping[str, bool | None]:
        """Whether machines that such a host may be hold a userland's image already, by their names; None: not known.

        Nothing where that makes no difference to a run. ``cache``: the user's. Changes nothing.
        """
        return {}

    def push(
        self, userlands: Callable[[], Userlands], repository: str, cache: Path, say: Callable[[str], None]
    ) -> Sequence[str]:
        """Push what such hosts need of userlands to a repository of a registry; return the names there.

        () where they have nothing of a registry. ``userlands`` builds them. Raises Unavailable.
        """
        return ()

    @abstractmethod
    def open(
        self, name: str, options: Any, run: RunContext, peers: Sequence[HostOptions]
    ) -> AbstractContextManager[Host]:
        """Make or reach the host ``name``; ``peers`` are all hosts that roles are on, this one among them.

        Raises Unavailable, in one sentence, where it cannot be had. What was made is gone when the context ends.
        """
