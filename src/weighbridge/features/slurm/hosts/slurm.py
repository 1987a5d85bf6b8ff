"""A node of a job of Slurm, on which an agent of ours runs as a step of the job."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, ClassVar

from weighbridge.errors import Unavailable
from weighbridge.features.slurm.client import WITHOUT_JOB, job_id
from weighbridge.features.slurm.options import SlurmOptions
from weighbridge.model.host import Host, RunContext
from weighbridge.model.host_kind import HostKind, HostOptions
from weighbridge.model.plugin import Readiness


class Slurm(HostKind):
    """A node of a job, seen by an agent of ours in a step that shares the job's resources with its others."""

    kind = "slurm"
    summary = "a node of the Slurm job in which Weighbridge runs"
    options = SlurmOptions
    group = ""
    programs: ClassVar = ("srun", "scontrol")

    def ready(self, options: Any | None = None) -> Readiness:
        """Return whether there is a job, and the node belongs to it."""
        from weighbridge.features.slurm.job import Job

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
        from weighbridge.features.slurm.host import slurm_host

        named = frozenset(peer.node for peer in peers if isinstance(peer, SlurmOptions) and peer.node)
        with slurm_host(name, options, run, named) as host:
            yield host


PLUGIN = Slurm()
