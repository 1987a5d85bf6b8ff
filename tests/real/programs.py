"""Programs of a test in a site that other tests share, and waiting for what they do."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from weighbridge.model.command import Command, Running
from weighbridge.model.site import Site

PATIENCE_S = 120.0
"""Longer than anything takes on a machine whose CPUs others have."""


def await_that(condition: Callable[[], Any]) -> None:
    """Wait until a condition is true. AssertionError if it is not within `PATIENCE_S`."""
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < deadline, "the condition never became true"
        time.sleep(0.02)


@contextmanager
def started(site: Site, *argv: str) -> Iterator[Running]:
    """One that ends with the block, in a site that is awake then, whatever was found: the test may be run again."""
    running = site.start(Command(argv, 60))
    try:
        yield running
    finally:
        site.thaw()
        running.stop()
