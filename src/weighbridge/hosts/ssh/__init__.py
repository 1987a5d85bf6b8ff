"""Hosts reached over OpenSSH, with the user's own configuration and keys and one shared connection per host."""

import contextlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from weighbridge.hosts.agent.operations import machine
from weighbridge.hosts.options import SshOptions
from weighbridge.hosts.remote.channel import Channel
from weighbridge.hosts.remote.machine import MachineHost, place_of, told_failures
from weighbridge.hosts.ssh.connect import Connection
from weighbridge.model.host import RunContext


class SshHost(MachineHost):
    """A machine that ssh reaches."""

    def __init__(
        self, name: str, options: SshOptions, run: RunContext, connection: Connection, hello: Mapping[str, Any],
        channel: Channel,
    ) -> None:  # fmt: skip
        super().__init__(name, run, hello, channel, _place(name, options, hello))
        self._options = options
        self._connection = connection

    def facts(self) -> Mapping[str, str]:
        """Return the host's fingerprint, as this machine's, and how it is reached."""
        return {
            **super().facts(),
            "kind": f"ssh: {self._options.destination}" + (" (sudo)" if self._options.sudo else ""),
        }

    def forward(self, path: str) -> Path:
        """A socket of this machine that leads to the engine's, through the one connection.

        Not by the SDK's ``ssh://``, which logs in anew for each of its connections (with paramiko or a shell, each
        asked for keys), cannot become root, and does not carry half-closed streams (standard input of an exec) on all
        of its ways.
        """
        return self._connection.forward(self.engine_socket(path))


def _place(name: str, options: SshOptions, hello: Mapping[str, Any]) -> tuple[str, str]:
    """Return the host's address and interface: the study's, else those at which the connection came in."""
    reached_at = str(hello["server"]).removeprefix("::ffff:")
    return place_of(name, options.address, options.interface, reached_at, hello["interfaces"])


@contextmanager
def ssh_host(name: str, options: SshOptions, run: RunContext) -> Iterator[SshHost]:
    """Connect to a host, and leave it as it was. Unavailable, in one sentence, where it cannot be used."""
    connection = Connection(name, options, run.state)
    with contextlib.ExitStack() as stack:
        stack.callback(connection.close)
        channel, hello = connection.open(run.id, machine())
        stack.enter_context(told_failures(channel, run))
        yield SshHost(name, options, run, connection, hello, channel)
