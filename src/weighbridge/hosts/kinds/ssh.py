"""A machine that OpenSSH reaches with the user's own configuration and keys."""

from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Any, ClassVar

from weighbridge.hosts.options import SshOptions
from weighbridge.model.host import Host, RunContext
from weighbridge.model.host_kind import HostKind, HostOptions


class Ssh(HostKind):
    """A machine on which our agent runs until the run ends."""

    kind = "ssh"
    summary = "a machine reached over OpenSSH, with your configuration and keys"
    options = SshOptions
    programs: ClassVar = ("ssh",)

    def open(
        self, name: str, options: Any, run: RunContext, peers: Sequence[HostOptions]
    ) -> AbstractContextManager[Host]:
        from weighbridge.hosts.ssh import ssh_host

        run.say(f"connecting to host {name} ({options.destination})")
        return ssh_host(name, options, run)


PLUGIN = Ssh()
