"""One multiplexed OpenSSH connection: it carries the agent, and is the master for forwarded sockets."""

import os
import re
import shlex
import socket
from hashlib import sha256
from pathlib import Path
from typing import Any

from weighbridge.errors import Unavailable
from weighbridge.hosts.agent import frames
from weighbridge.hosts.options import SshOptions
from weighbridge.hosts.remote.channel import END_S, Channel
from weighbridge.hosts.remote.start import start_agent
from weighbridge.hosts.ssh import failures
from weighbridge.linux.process import Process, run
from weighbridge.model import ssh_configuration
from weighbridge.model.command import Command
from weighbridge.model.names import RunId

CONNECT_S = 10
READY_S = 30.0
_ALWAYS = (
    "BatchMode=yes", f"ConnectTimeout={CONNECT_S}", "ServerAliveInterval=5", "ServerAliveCountMax=2",
    "ControlPersist=no", "ClearAllForwardings=yes", "RemoteCommand=none", "RequestTTY=no",
    "PermitLocalCommand=no", "ForwardAgent=no", "ForwardX11=no", "LogLevel=INFO", "EscapeChar=none",
    "StreamLocalBindUnlink=yes", "Tunnel=no", "GSSAPIDelegateCredentials=no",
)  # fmt: skip
_UNLESS_THE_USERS_OWN = ("StrictHostKeyChecking=yes", "NoHostAuthenticationForLocalhost=no")
"""Options for a configuration that a study names: ssh accepts no unknown host. The user's own configuration can
accept them. If it says nothing, ssh refuses unknown hosts too, because it cannot ask (BatchMode)."""
_VARIABLES = re.compile(r"HOME|PATH|SSH_AUTH_SOCK|USER|LOGNAME|LANG|LC_\w+|TERM|KRB5CCNAME")
"""Names of the variables that ssh gets with a configuration that a study names: its SendEnv could send every variable
to the other machine. An option on the command line cannot undo SendEnv, because ssh reads the configuration later."""
_ENGLISH = {"LC_ALL": "C"}


class Connection:
    """The master connection to one host, which ends when we do in any way."""

    def __init__(self, name: str, options: SshOptions, folder: Path) -> None:
        self.name = name
        self._destination = options.destination
        self._config: tuple[str, ...] = ()
        self._always: tuple[str, ...] = _ALWAYS
        self._env = {**os.environ, **_ENGLISH}
        if options.config:
            self._config = ("-F", str(Path(options.config).absolute()))
            self._always += _UNLESS_THE_USERS_OWN
            self._env = {name: each for name, each in self._env.items() if _VARIABLES.fullmatch(name)}
        self._sudo = options.sudo
        self._folder = folder / "ssh"
        self._control = self._folder / sha256(name.encode()).hexdigest()[:8]  # a socket's path must be short
        self._process: Process | None = None
        self._forwarded = 0

    def open(self, run_id: RunId, machine: str) -> tuple[Channel, dict[str, Any]]:
        """Connect and start the agent; return the channel and its first frame. Unavailable with one sentence."""
        self._require_readable_configuration()
        self._folder.mkdir(mode=0o700, exist_ok=True)
        for left in self._folder.glob(f"{self._control.name}*"):  # left by a killed process of this run
            left.unlink()
        near, far = socket.socketpair()
        with far:
            # ssh ends with us by the signal, or else by the end of its standard input
            ssh = ("setpriv", "--pdeathsig", "KILL", "--", "ssh", "-T", "-M", "-S", str(self._control))
            always = tuple(word for option in self._always for word in ("-o", option))
            argv = (*ssh, *self._config, *always, "--", self._destination, self._remote(run_id, machine))
            self._process = Process(Command(argv), env=self._env, inherit=False, talk=far.fileno())
        return start_agent(self.name, near, READY_S, self._what_failed, self._why_lost)

    def _require_readable_configuration(self) -> None:
        """Raise Unavailable if the configuration now hides what ssh does: it can have changed since it was shown."""
        path = Path(self._config[-1]) if self._config else None
        if path is None or not path.is_file():
            return
        try:
            text = path.read_text(errors="replace")
        except OSError as error:
            raise Unavailable(f"host {self.name}: {path} cannot be read: {error.strerror}") from None
        if reason := ssh_configuration.refusal(text):
            raise Unavailable(f"host {self.name}: the ssh configuration {path} is refused because of {reason}")

    def _remote(self, run_id: RunId, machine: str) -> str:
        """Return the command for the user's shell there; every word is ours, quoted for any shell."""
        python = ("python3", "-I", "-S", "-u", "-c", frames.BOOT, "agent", run_id, self.name, machine)
        before = "env LC_ALL=C sudo -n -- " if self._sudo else ""
        # the shell's variable has the address at which we reached it; sudo would hide it
        return f'exec {before}{shlex.join(python)} "$SSH_CONNECTION"'

    def _what_failed(self, preamble: bytes) -> str:
        return f"({self._destination}): {self._reason(preamble)}"

    def _reason(self, preamble: bytes) -> str:
        assert self._process is not None
        ended = self._process.wait(1.0)
        completed = self._process.stop()
        login = shlex.join(("ssh", *self._config, self._destination))
        heard = (completed.stderr + b"\n" + preamble).decode(errors="replace")
        if not ended and not heard.strip():
            return f"it did not answer within {READY_S:.0f} s"
        return failures.sentence(heard, completed.returncode, login)

    def _why_lost(self) -> str:
        assert self._process is not None
        self._process.wait(2.0)
        return failures.lost(self._process.errors_so_far().decode(errors="replace"))

    def forward(self, remote_socket: str) -> Path:
        """Return a local socket that leads to ``remote_socket``. Raises Unavailable if the ssh server forbids it."""
        self._forwarded += 1
        local_socket = self._control.with_suffix(f".{self._forwarded}")
        ask = (
            "ssh",
            "-S",
            str(self._control),
            *self._config,
            "-O",
            "forward",
            "-L",
            f"{local_socket}:{remote_socket}",
        )
        completed = run(Command((*ask, "--", self._destination), 20), env=self._env, inherit=False)
        if completed.returncode != 0:
            raise Unavailable(f"host {self.name}: a socket cannot be forwarded: {completed.last_words}")
        return local_socket

    def close(self) -> None:
        """Wait until the agent has ended everything and the connection is closed; end it if it is too slow."""
        if self._process is not None:
            self._process.wait(END_S)
            self._process.stop()
