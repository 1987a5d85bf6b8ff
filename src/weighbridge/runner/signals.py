"""Handles Ctrl-C and SIGTERM: the first signal ends the work cleanly, and further ones cannot stop the cleanup."""

import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from weighbridge.errors import Interrupted

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class _State:
    shielded = False
    silent = False
    received: int | None = None


def be_silent() -> None:
    """Print nothing at a further signal, because standard error has events only (``--progress json``)."""
    _State.silent = True


def _handle(number: int, _: FrameType | None) -> None:
    first = _State.received is None
    _State.received = _State.received or number
    if not first:
        if not _State.silent:
            print("cleaning up, please wait", file=sys.stderr)
    elif not _State.shielded:
        raise Interrupted(number)


@contextmanager
def interruptible() -> Iterator[None]:
    """Raise Interrupted in the body at the first signal, at once or at the end of a shield."""
    _State.received, _State.shielded = None, False
    before = {number: signal.signal(number, _handle) for number in SIGNALS}
    try:
        yield
    finally:
        for number, handler in before.items():
            # an interrupted process is about to exit: a further signal must not cause a traceback
            signal.signal(number, handler if _State.received is None else signal.SIG_IGN)


@contextmanager
def shield() -> Iterator[None]:
    """Delay signals: no signal interrupts the body; one that arrives meanwhile is raised at its end."""
    if _State.shielded:
        yield
        return
    came_before = _State.received is not None
    _State.shielded = True
    try:
        yield
    finally:
        _State.shielded = False
    if _State.received is not None and not came_before:
        raise Interrupted(_State.received)
