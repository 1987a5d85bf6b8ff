"""Hosts reached over OpenSSH, with the user's own configuration and keys and one shared connection per host."""

import contextlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from weighbridge.hosts.agent.operations import machine
from weighbridge.hosts.options import SshOptions
from weighbridge.hosts.remote.channel import Channel
from weighbridge.hosts.remote.machine import MachineHost, place_of, reported_failures
from weighbridge.hosts.ssh.connect import Connection
from weighbridge.model.host import RunContext


class SshHost(MachineHost):
    """A machine that is reached by ssh."""

    def __init__(
        self, name: str, options: SshOptions, run: RunContext, connection: Connection, hello: Mapping[str, Any],
        channel: Channel,
    ) -> None:  # fmt: skip
        super().__init__(name, run, hello, channel, _place(name, options, hello))
        self._options = options
        self._connection = connection

    def facts(self) -> Mapping[str, str]:
        """Return the host's fingerprint, as for this machine, and how it is reached."""
        return {
            **super().facts(),
            "kind": f"ssh: {self._options.destination}" + (" (sudo)" if self._options.sudo else ""),
        }

    def forward(self, path: str) -> Path:
        """Return a local socket that leads to the engine's, through the single connection.

        The SDK's ``ssh://`` is not used because it logs in again for each of its connections (with paramiko or a
        shell, each asks for keys), cannot become root, and partly does not carry half-closed streams (standard input
        of an exec).
        """
        return self._connection.forward(self.engine_socket(path))


def _place(name: str, options: SshOptions, hello: Mapping[str, Any]) -> tuple[str, str]:
    reached_at = str(hello["server"]).removeprefix("::ffff:")
    return place_of(name, options.address, options.interface, reached_at, hello["interfaces"])


@contextmanager
def ssh_host(name: str, options: SshOptions, run: RunContext) -> Iterator[SshHost]:
    """Connect to a host, and leave it unchanged. Raises Unavailable with one sentence."""
    connection = Connection(name, options, run.state)
    with contextlib.ExitStack() as stack:
        stack.callback(connection.close)
        channel, hello = connection.open(run.id, machine())
        stack.enter_context(reported_failures(channel, run))
        yield SshHost(name, options, run, connection, hello, channel)
