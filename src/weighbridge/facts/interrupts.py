"""Whether control groups' CPU time includes the network stack's interrupts, by the running kernel's configuration."""

import contextlib
import gzip
import platform
import re
from collections.abc import Callable
from pathlib import Path

from weighbridge.model.interrupt_time import InterruptTime

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
