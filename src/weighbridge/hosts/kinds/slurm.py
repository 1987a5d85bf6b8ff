"""A node of a job of Slurm, on which an agent of ours runs as a step of the job."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field

from weighbridge.errors import Unavailable
from weighbridge.linux.slurm import WITHOUT_JOB, job_id
from weighbridge.model.host import Host, HostTraits, RunContext
from weighbridge.model.host_kind import HostKind, HostOptions
from weighbridge.model.options import Brings
from weighbridge.model.plugin import Readiness


class SlurmOptions(HostOptions):
    """A node of the job in which Weighbridge runs (``SLURM_JOB_ID``).

    ``address`` is where the other hosts reach it (default: that of ``interface``, else the one that Slurm knows);
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
        Brings.MACHINE,
    ] = None
    address: Annotated[
        str | None, Field(pattern=r"^[0-9.]{7,15}$", description="IPv4 address of the node"), Brings.MACHINE
    ] = None
    interface: Annotated[
        str | None,
        Field(pattern=r"^[A-Za-z0-9_.@-]{1,15}$", description="Interface for macvlan, ipvlan and bridges"),
    ] = None

    @property
    def description(self) -> str:
        """Words for the plan."""
        return f"Slurm node {self.node}" if self.node else "a node of the Slurm job"


class Slurm(HostKind):
    """A node of a job, seen by an agent of ours in a step that shares the job's resources with its others."""

    kind = "slurm"
    summary = "a node of the Slurm job in which Weighbridge runs"
    options = SlurmOptions
    group = ""
    programs: ClassVar = ("srun", "scontrol")

    def ready(self, options: Any | None = None) -> Readiness:
        """Whether there is a job, and the node is one of its."""
        from weighbridge.hosts.slurm.job import Job

        if not job_id():
            return Readiness(options is None, *WITHOUT_JOB, caveat="" if options else "no job")
        if options is None:
            return Readiness(True)
        try:
            Job(job_id()).must_have(options.node)
        except Unavailable as error:
            return Readiness(False, str(error), "scontrol show job $SLURM_JOB_ID")
        return Readiness(True)

    @contextmanager
    def open(self, name: str, options: Any, run: RunContext, peers: Sequence[HostOptions]) -> Iterator[Host]:
        """Start a step on the node, and leave the node as it was."""
        from weighbridge.hosts.slurm import slurm_host

        named = frozenset(peer.node for peer in peers if isinstance(peer, SlurmOptions) and peer.node)
        with slurm_host(name, options, run, named) as host:
            yield host


PLUGIN = Slurm()
