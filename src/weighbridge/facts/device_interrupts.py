"""How often devices interrupt each CPU."""

import re
from collections.abc import Mapping

from weighbridge.model.facts import InterruptRate

InterruptCounts = Mapping[tuple[int, str, int], int]
"""Counts since the machine was started, by interrupt number, device and CPU."""


def interrupts_of(text: str) -> InterruptCounts:
    """Read /proc/interrupts: the rows with a number, which belong to devices. Other rows are the CPUs' own."""
    head, *rows = text.splitlines() or [""]
    cpus = [int(name) for name in re.findall(r"\bCPU(\d{1,6})\b", head)]
    interrupt_counts: dict[tuple[int, str, int], int] = {}
    for row in rows:
        number, _, rest = row.partition(":")
        counts = rest.split(maxsplit=len(cpus))
        if not number.strip().isdecimal() or len(counts) != len(cpus) + 1 or not all(map(str.isdecimal, counts[:-1])):
            continue
        device = re.split(r"\s{2,}", counts[-1].strip())[-1]
        interrupt_counts |= {
            (int(number), device, cpu): int(count) for cpu, count in zip(cpus, counts[:-1], strict=True)
        }
    return interrupt_counts


def interrupt_rates(
    before: InterruptCounts, after: InterruptCounts, seconds: float, least_per_s: float
) -> tuple[InterruptRate, ...]:
    """Return the rates between two readings that are at least ``least_per_s``, the highest first."""
    rates = [
        InterruptRate(*where, (count - before[where]) / seconds) for where, count in after.items() if where in before
    ]
    return tuple(sorted((each for each in rates if each.per_s >= least_per_s), key=lambda each: -each.per_s))
