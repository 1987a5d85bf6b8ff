"""Stops the waits of worker threads, because a signal interrupts only the main thread.

A thread takes part with `Cancellation.heeded`. Its next wait for a process or an answer then raises Cancelled, once:
the cleanup that follows can wait again. While a thread handles an error of its own, nothing stops its waits either.
"""

import os
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from weighbridge.errors import Cancelled

_LOOK_S = 0.1
_HEEDED: ContextVar["Cancellation | None"] = ContextVar("cancellation", default=None)


class Cancellation:
    """A request to stop, for all threads that heed it."""

    def __init__(self) -> None:
        self._readable_at_end, self._open = os.pipe()
        self._requested = threading.Event()

    def request(self) -> None:
        """Wake the threads that wait, and stop those that begin to wait."""
        if not self._requested.is_set():
            self._requested.set()
            os.close(self._open)

    def close(self) -> None:
        """Free its descriptors, once no thread heeds it any more."""
        self.request()
        os.close(self._readable_at_end)

    @contextmanager
    def heeded(self) -> Iterator[None]:
        """Let it stop the waits of this thread in the body."""
        before = _HEEDED.set(self)
        try:
            yield
        finally:
            _HEEDED.reset(before)

    def check(self) -> None:
        """Raise Cancelled if it was requested; this thread no longer heeds it then."""
        if self._requested.is_set():
            _HEEDED.set(None)
            raise Cancelled


def _heeded() -> Cancellation | None:
    """Return what can stop this thread; None while it handles an error, because it cleans up then."""
    return None if sys.exc_info()[0] is not None else _HEEDED.get()


def check() -> None:
    """Raise Cancelled if this thread is to stop."""
    if (cancellation := _heeded()) is not None:
        cancellation.check()


def descriptor() -> int | None:
    """Return a descriptor that becomes readable when this thread is to stop; None if nothing can stop it."""
    return None if (cancellation := _heeded()) is None else cancellation._readable_at_end


def wait(event: threading.Event, timeout_s: float) -> bool:
    """Wait until an event is set; return False after ``timeout_s``. Raises Cancelled."""
    if _heeded() is None:
        return event.wait(timeout_s)
    deadline = time.monotonic() + timeout_s
    while not event.wait(max(0.0, min(_LOOK_S, deadline - time.monotonic()))):
        check()
        if time.monotonic() >= deadline:
            return False
    return True


def sleep(seconds: float) -> None:
    """Do nothing for some time. Raises Cancelled."""
    wait(threading.Event(), seconds)


@contextmanager
def ignored() -> Iterator[None]:
    """Let nothing stop the waits of the body, which ends a process or removes something."""
    before = _HEEDED.set(None)
    try:
        yield
    finally:
        _HEEDED.reset(before)
