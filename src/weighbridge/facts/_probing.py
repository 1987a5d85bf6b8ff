"""What the probes share: a Perl program beside these modules, run in a site."""

import time
from importlib import resources

from weighbridge.model.command import Command, Running, Transport
from weighbridge.model.site import Site

READY_S = 5.0
"""How long the listening end of a probe may take, in seconds."""
_LOOK_S = 0.25


def perl(file: str, seconds: float, *arguments: str) -> Command:
    """A program of this folder, which ends by itself after ``seconds``. It needs perl-base alone."""
    program = resources.files(__package__).joinpath(file).read_text()
    return Command(("perl", "-e", program, *arguments), seconds + 5)


def listens(listener: Running, server: Site, transport: Transport, port: int) -> bool:
    """Wait until the listening end of a probe has its port; False where it ended before, or did not in time."""
    deadline = time.monotonic() + READY_S
    while not server.listening(((transport, port),), _LOOK_S):
        if listener.poll() is not None or time.monotonic() > deadline:
            return False
    return True
