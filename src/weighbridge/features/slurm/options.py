"""The options of a host that is a node of a Slurm job."""

from typing import Annotated, ClassVar, Literal

from pydantic import Field

from weighbridge.model.host import HostTraits
from weighbridge.model.host_kind import HostOptions
from weighbridge.model.options import External


class SlurmOptions(HostOptions):
    """A node of the job in which Weighbridge runs (``SLURM_JOB_ID``).

    The other hosts reach it at ``address``. The default is the address of ``interface``, or else Slurm's address.
    ``interface`` is the interface to which macvlan, ipvlan and bridged networks are attached.
    """

    traits: ClassVar[HostTraits] = HostTraits(networks=frozenset({"slurm"}))
    kind: Literal["slurm"]
    node: Annotated[
        str | None,
        Field(
            pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,252}$",
            description="Name of the node; default: a node of the job that no other host uses",
        ),
        External.MACHINE,
    ] = None
    address: Annotated[
        str | None, Field(pattern=r"^[0-9.]{7,15}$", description="IPv4 address of the node"), External.MACHINE
    ] = None
    interface: Annotated[
        str | None,
        Field(pattern=r"^[A-Za-z0-9_.@-]{1,15}$", description="Interface for macvlan, ipvlan and bridges"),
    ] = None

    @property
    def description(self) -> str:
        """Words for the plan."""
        return f"Slurm node {self.node}" if self.node else "a node of the Slurm job"
