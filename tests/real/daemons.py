"""Machines of the tests' clusters: testbed hosts whose daemons stay in the foreground."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar

from weighbridge.hosts.testbed import TestbedHost
from weighbridge.linux import process
from weighbridge.model.command import Command, Completed


@dataclass(kw_only=True)
class DaemonMachine:
    """A machine of a cluster: its testbed host, and its daemons, whose messages are in files of a folder."""

    answer_s: ClassVar[float]
    """How long a command may take, unless it is told otherwise."""
    said: ClassVar[str] = "log"
    """How the files of messages end."""
    name: str
    host: TestbedHost
    folder: Path
    daemons: dict[str, process.Process] = field(default_factory=dict)

    def start(self, daemon: str, *argv: str | Path, **env: str) -> None:
        """Start a daemon, which stays in the foreground and writes its messages to a file."""
        log = ("sh", "-c", 'exec "$@" >> "$0" 2>&1', str(self.folder / f"{daemon}.{self.said}"))
        self.daemons[daemon] = self.host.start(Command((*log, *map(str, argv)), env=env))

    def run(
        self, *argv: str | Path, deadline_s: float | None = None, env: Mapping[str, str] | None = None
    ) -> Completed:
        """Run a command on the machine to its end."""
        words = tuple(map(str, argv))
        return self.host.run(Command(words, self.answer_s if deadline_s is None else deadline_s, env or {}))

    def must(self, *argv: str | Path, deadline_s: float | None = None, env: Mapping[str, str] | None = None) -> str:
        """Return what a command on the machine prints; it has to succeed."""
        done = self.run(*argv, deadline_s=deadline_s, env=env)
        assert done.returncode == 0, done
        return done.text

    def power_off(self) -> None:
        """End everything on it at once, as by pulling its power cord."""
        self.host.switch_off()
        for daemon in self.daemons.values():
            daemon.stop()
