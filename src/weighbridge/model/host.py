"""What others may ask of a host: before it is open, and where it has been made for the run alone."""

from collections.abc import Set as AbstractSet
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from weighbridge.model.disk_speed import DiskSpeed
from weighbridge.model.site import Host
from weighbridge.model.userland import Userland

SWARM_BRIDGE = "docker_gwbridge"
"""The network that an engine makes when it becomes a member of a swarm, and keeps when it leaves."""


@dataclass(frozen=True)
class HostTraits:
    """What has to be known of a kind of host before one is open.

    ``here``: it is on this physical machine, whose CPUs and memory it uses. ``own_kernel``: its kernel and files are
    not this machine's, so that what it can hold is found only when it is open. ``this_machine``: it is that machine
    itself, of which there is one. ``networks``: hosts reach one another where they are on a common one.
    ``attachable``: its interface is known, and container networks that are attached to it are on its network.
    ``gives_addresses``: containers on such networks get addresses without being given them in the study.
    ``secluded``: it is made for the run, and an open one is a `SecludedHost`. ``interface``: the name of the one
    interface that it is made with; empty where that is not known. ``slows_disk``: its data disk can be limited.
    """

    here: bool = False
    own_kernel: bool = False
    this_machine: bool = False
    networks: AbstractSet[str] = frozenset()
    attachable: bool = True
    gives_addresses: bool = False
    secluded: bool = False
    interface: str = ""
    slows_disk: bool = False

    def reaches(self, other: "HostTraits") -> bool:
        """Whether hosts of the two kinds reach one another."""
        return bool(self.networks & other.networks)


THIS_MACHINE = HostTraits(
    here=True, this_machine=True, networks=frozenset({"switch"}), attachable=False, gives_addresses=True
)
"""Of the host that a study has which names none."""


class Power(Protocol):
    """The power of a host that is a machine of its own, with a data disk that is there after a power cut."""

    data: str
    """The folder of the host that the disk is mounted at: what is in no memory of it is below that."""

    def cut(self) -> None:
        """End the machine at once, as by pulling its power cord: nothing is written or flushed any more."""

    def restored(self) -> AbstractContextManager[Host]:
        """The machine, started again with the disk as the cut left it. Raises Unavailable."""


class DataDisk(Protocol):
    """The disk of a host's data, which is its own."""

    def set_disk_speed(self, speed: DiskSpeed | None) -> None:
        """Hold back requests to it, or no longer. Raises EnvironmentLost."""


class SecludedHost(Host, Protocol):
    """A host that was made for the run, whose packet filter, folders and networks nothing else uses.

    An engine is started inside it, everything in it may be changed, and ends with it.
    """

    subnet: str
    """The network that its cable leads to; containers may be on it."""
    gateway: str
    """The default gateway of that network."""

    def engine_folder(self) -> AbstractContextManager[str]:
        """A folder for the data of an engine in it, as it names it; what was in it is gone when the context ends."""

    def image_layer(self, userland: Userland) -> Path | None:
        """A folder of it with the userland that an image may have as a layer, as it is; None: images hold a copy."""

    def reach(self, path: str) -> Path | None:
        """A socket of this machine that leads to its socket at ``path``; None while there is none."""

    def next_address(self) -> str:
        """Give an address on that network that no host and no other container has. Raises Unavailable."""

    @property
    def offloads(self) -> bool:
        """Whether packets larger than its cable's go to its interface, which splits them."""

    def keep_offloads(self, pid: int) -> None:
        """Where its cable has no offloads, switch them off on the interfaces of the container of ``pid`` too."""

    def switch_off(self) -> None:
        """End everything in it at once."""

    @property
    def data_disk(self) -> DataDisk | None:
        """The disk of its data; None where that is on a disk which others use."""

    @property
    def power(self) -> Power | None:
        """Its power; None where it shares a kernel and a disk with hosts that stay."""
