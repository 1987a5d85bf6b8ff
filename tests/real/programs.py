"""Programs of a test in a site that other tests share."""

from collections.abc import Iterator
from contextlib import contextmanager

from weighbridge.model.command import Command, Running
from weighbridge.model.site import Site


@contextmanager
def started(site: Site, *argv: str) -> Iterator[Running]:
    """One that ends with the block, in a site that is awake then, whatever was found: the test may be run again."""
    running = site.start(Command(argv, 60))
    try:
        yield running
    finally:
        site.thaw()
        running.stop()
