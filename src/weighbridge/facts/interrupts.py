"""How the kernel accounts the time of interrupts, and how often devices interrupt each CPU."""

import contextlib
import gzip
import platform
import re
from collections.abc import Callable, Mapping
from pathlib import Path

from weighbridge.model.facts import InterruptRate
from weighbridge.model.host import InterruptTime

InterruptCounts = Mapping[tuple[int, str, int], int]
"""Counts since the machine was started, by interrupt number, device and CPU."""

_OPTION = re.compile(r"^(?:CONFIG_IRQ_TIME_ACCOUNTING=(y)|# CONFIG_IRQ_TIME_ACCOUNTING is not set)$", re.MULTILINE)


def interrupt_time(config: str, command_line: str = "") -> InterruptTime:
    """Return how a kernel accounts the CPU time of interrupts, from its configuration and command line.

    ``tsc=noirqtime`` disables the accounting. A complete configuration without the option belongs to a machine that
    does not support it.
    """
    option = _OPTION.search(config)
    if option is None:
        return "charged to the interrupted task" if "\nCONFIG_TICK_CPU_ACCOUNTING=y\n" in config else "unknown"
    clocks = [word.removeprefix("tsc=") for word in command_line.split() if word.startswith("tsc=")]
    off = any("noirqtime" in clock.split(",") for clock in clocks)
    return "accounted apart" if option[1] and not off else "charged to the interrupted task"


def kernel_config(read: Callable[[str], bytes], release: str) -> str:
    """Return the configuration of the running kernel, from /proc or a distribution's file; empty without one."""
    with contextlib.suppress(OSError, EOFError, UnicodeDecodeError):
        return gzip.decompress(read("/proc/config.gz")).decode()
    for path in (f"/boot/config-{release}", f"/lib/modules/{release}/config"):
        with contextlib.suppress(OSError, UnicodeDecodeError):
            return read(path).decode()
    return ""


def of_this_machine() -> InterruptTime:
    """Return how the running kernel accounts CPU time of interrupts."""
    command_line = ""
    with contextlib.suppress(OSError, UnicodeDecodeError):
        command_line = Path("/proc/cmdline").read_text()
    return interrupt_time(kernel_config(lambda path: Path(path).read_bytes(), platform.release()), command_line)


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
