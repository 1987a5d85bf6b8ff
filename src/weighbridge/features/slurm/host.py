"""Hosts that are nodes of a Slurm job: the agent is a step of the job, reached through its standard streams."""

from collections.abc import Collection, Iterator, Mapping
from contextlib import ExitStack, contextmanager, nullcontext
from pathlib import Path
from typing import Any

from weighbridge.features.slurm.client import job_id
from weighbridge.features.slurm.job import Job, address_among
from weighbridge.features.slurm.options import SlurmOptions
from weighbridge.features.slurm.step import JobStep
from weighbridge.hosts.agent.operations import machine
from weighbridge.hosts.remote.channel import Channel
from weighbridge.hosts.remote.forward import Forward
from weighbridge.hosts.remote.machine import MachineHost, place_of, reported_failures
from weighbridge.model.host import NODE, PLACED_BY, RunContext


class SlurmHost(MachineHost):
    """A node of a job."""

    def __init__(
        self, name: str, run: RunContext, hello: Mapping[str, Any], channel: Channel, place: tuple[str, str],
        node: str, job: str,
    ) -> None:  # fmt: skip
        super().__init__(name, run, hello, channel, place)
        self._node, self._job = node, job
        self._forwards: list[Forward] = []

    def facts(self) -> Mapping[str, str]:
        """Return the host's fingerprint, as for this machine, with its name in Slurm, and the job."""
        placed_by = f"Slurm job {self._job} on {self._node}"
        return {**super().facts(), "kind": "slurm: a node of a job", NODE: self._node, PLACED_BY: placed_by}

    def forward(self, path: str) -> Path:
        """Return a local socket that leads to the engine's, through the agent."""
        local_socket = self._run.state / f"{self.name}-{len(self._forwards)}.sock"
        self._forwards.append(Forward(self._channel, local_socket, self.engine_socket(path)))
        return local_socket

    def close(self) -> None:
        """Close the sockets that lead to it."""
        for forward in self._forwards:
            forward.close()


@contextmanager
def slurm_host(name: str, options: SlurmOptions, run: RunContext, named: Collection[str]) -> Iterator[SlurmHost]:
    """Start the agent on a node, and leave the node unchanged. Raises Unavailable with one sentence.

    ``named`` are the nodes that the study assigns to its hosts.
    """
    job: Job = run.share("Slurm job", lambda: nullcontext(Job(job_id())))
    node = job.node_for(name, options.node, named)
    run.say(f"starting a step of job {job.id} for host {name} (node {node})")
    step = JobStep(name, job.id, node)
    with ExitStack() as stack:
        stack.callback(step.close)
        channel, hello = step.open(run.id, machine())
        stack.enter_context(reported_failures(channel, run))
        interfaces, named_by_study = hello["interfaces"], options.address or options.interface
        reached_at = "" if named_by_study else address_among(name, job.address(node), interfaces)
        place = place_of(name, options.address, options.interface, reached_at, interfaces)
        host = SlurmHost(name, run, hello, channel, place, node, job.id)
        stack.callback(host.close)
        yield host
