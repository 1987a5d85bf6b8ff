"""Helpers of the probes, which run the launcher of a site and so need nothing from its root folder."""

import time

from weighbridge.model.command import Command, Running, Transport
from weighbridge.model.site import Site

READY_S = 5.0
"""The seconds that the listening end of a probe can need."""
_LOOK_S = 0.25
LAUNCHER = "/proc/self/exe"
"""The launcher starts a site's programs: until the child runs its program, this is the launcher's file."""


def probe_of(what: str, seconds: int, *arguments: str) -> Command:
    """Return the command of a launcher's probe (launcher/source/probe.h), which ends itself after ``seconds``."""
    return Command((LAUNCHER, f"probe-{what}", *arguments), seconds + 5)


def listens(listener: Running, server: Site, transport: Transport, port: int) -> bool:
    """Wait until the listening end of a probe has its port; return False if it ended before, or was too slow."""
    deadline = time.monotonic() + READY_S
    while not server.listening(((transport, port),), _LOOK_S):
        if listener.poll() is not None or time.monotonic() > deadline:
            return False
    return True
