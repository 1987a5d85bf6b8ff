"""Which devices interrupt the CPUs of this machine while something runs."""

import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from weighbridge.model.facts import InterruptCounts, InterruptRate, interrupt_rates, interrupts_of


@contextmanager
def counted_interrupts(least_per_s: float) -> Iterator[list[InterruptRate]]:
    """Count them while the body runs. At its end the list has those that came at least so often.

    It stays empty where the kernel does not tell.
    """
    found: list[InterruptRate] = []
    began, before = time.monotonic(), _read()
    yield found
    found += interrupt_rates(before, _read(), time.monotonic() - began, least_per_s)


def _read() -> InterruptCounts:
    with suppress(OSError, UnicodeDecodeError):
        return interrupts_of(Path("/proc/interrupts").read_text())
    return {}
