"""This machine."""

import os

from weighbridge import process
from weighbridge.hosts import kernel
from weighbridge.model.command import Command, Completed, Transport


class LocalHost:
    """This machine. Every process that it starts carries the run's id in its environment. Implements ``Host``."""

    name = "local"

    def __init__(self, run_id: str) -> None:
        self.root = os.geteuid() == 0
        self._env = {process.RUN_VARIABLE: run_id}

    def run(self, command: Command) -> Completed:
        """Run to the end; killed at its deadline."""
        return process.run(command, env=self._env)

    def start(self, command: Command, *, hold: bool = False) -> process.Process:
        """Start and return at once; with ``hold`` its standard input stays open until it is stopped or we die."""
        return process.Process(command, env=self._env, hold=hold)

    def listening(self, ports: tuple[tuple[Transport, int], ...], pid: int | str = "self") -> bool:
        """True when every port has a listener in the network namespace of the process ``pid``."""
        return kernel.listening(ports, pid)
