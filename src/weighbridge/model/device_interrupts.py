"""How often devices interrupt which CPU of a machine."""

import re
from collections.abc import Mapping
from dataclasses import dataclass

Counts = Mapping[tuple[int, str, int], int]
"""By the number of the interrupt, its device and the CPU: how often, since the machine was started."""


@dataclass(frozen=True, slots=True)
class InterruptRate:
    """How often a device interrupted a CPU in a second."""

    number: int
    device: str
    cpu: int
    per_s: float


def interrupts_of(text: str) -> Counts:
    """Read /proc/interrupts: the rows that have a number, which are devices'. Others are the CPUs' own."""
    head, *rows = text.splitlines() or [""]
    cpus = [int(name) for name in re.findall(r"\bCPU(\d{1,6})\b", head)]
    found: dict[tuple[int, str, int], int] = {}
    for row in rows:
        number, _, rest = row.partition(":")
        counts = rest.split(maxsplit=len(cpus))
        if not number.strip().isdecimal() or len(counts) != len(cpus) + 1 or not all(map(str.isdecimal, counts[:-1])):
            continue
        device = re.split(r"\s{2,}", counts[-1].strip())[-1]
        found |= {(int(number), device, cpu): int(count) for cpu, count in zip(cpus, counts[:-1], strict=True)}
    return found


def interrupt_rates(before: Counts, after: Counts, seconds: float, least_per_s: float) -> tuple[InterruptRate, ...]:
    """Give which came more often than that between two readings, the most frequent first."""
    rates = [
        InterruptRate(*where, (count - before[where]) / seconds) for where, count in after.items() if where in before
    ]
    return tuple(sorted((each for each in rates if each.per_s >= least_per_s), key=lambda each: -each.per_s))
