"""The job step with the agent: srun carries its stream, and ends when we do."""

import socket
from typing import Any

from weighbridge.features.slurm import client as slurm
from weighbridge.hosts.agent import frames
from weighbridge.hosts.remote.channel import END_S, Channel
from weighbridge.hosts.remote.start import start_agent
from weighbridge.linux.process import Process
from weighbridge.model.command import Command
from weighbridge.model.names import RunId

READY_S = 60.0
_LAST_WORDS_S = 2.0


class JobStep:
    """A step with one task on one node, which shares the job's resources there with other steps."""

    def __init__(self, host: str, job: str, node: str) -> None:
        self._host, self._job, self._node = host, job, node
        self._process: Process | None = None

    def open(self, run_id: RunId, machine: str) -> tuple[Channel, dict[str, Any]]:
        """Start the agent; return the channel to it and its first frame. Raises Unavailable with one sentence."""
        near, far = socket.socketpair()
        with far:
            # unbuffered, because otherwise slurmstepd keeps incomplete lines
            argv = (*slurm.step(self._job, self._node, "--unbuffered", "--input=all", "--chdir=/"),
                    *agent(run_id, self._host, machine))  # fmt: skip
            self._process = Process(Command(argv), talk=far.fileno())
        return start_agent(self._host, near, READY_S, self._what_failed, self._why_lost)

    def _what_failed(self, preamble: bytes) -> str:
        assert self._process is not None
        ended = self._process.wait(_LAST_WORDS_S)
        heard = self._process.stop().stderr + b"\n" + preamble
        reason = slurm.unstarted(heard.decode(errors="replace"))
        if not ended and not reason:
            reason = f"it did not answer within {READY_S:.0f} s"
        return f"(node {self._node}): {reason or slurm.SILENT}"

    def _why_lost(self) -> str:
        assert self._process is not None
        self._process.wait(_LAST_WORDS_S)
        return slurm.ended(self._process.errors_so_far().decode(errors="replace"))

    def close(self) -> None:
        """Wait until the agent has ended everything and the step is over; end it if it is too slow."""
        if self._process is not None:
            self._process.wait(END_S)
            self._process.stop()


def agent(run_id: RunId, host: str, machine: str) -> tuple[str, ...]:
    """Return the command that becomes the agent once its text is sent."""
    return ("python3", "-I", "-S", "-u", "-c", frames.BOOT, "agent", run_id, host, machine)
