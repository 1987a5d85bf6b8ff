"""The kind of kernel, from captured and cut configurations."""

import gzip
from pathlib import Path

import pytest

from weighbridge.facts.interrupts import interrupt_time, kernel_config

TICK = (Path(__file__).parent / "data/config-6.18-tick.txt").read_text()
"""Of a kernel without IRQ_TIME_ACCOUNTING; the part about timers and CPU time."""
APART = TICK.replace("# CONFIG_IRQ_TIME_ACCOUNTING is not set", "CONFIG_IRQ_TIME_ACCOUNTING=y")


@pytest.mark.parametrize(
    ("config", "command_line", "kind"),
    [
        (TICK, "", "charged to the interrupted task"),
        (APART, "quiet tsc=reliable", "accounted apart"),
        (APART, "quiet tsc=noirqtime", "charged to the interrupted task"),
        (APART, "tsc=reliable,noirqtime", "charged to the interrupted task"),
        (TICK.replace("# CONFIG_IRQ_TIME_ACCOUNTING is not set\n", ""), "", "charged to the interrupted task"),
        ("", "", "unknown"),
        ("CONFIG_HZ=250\n", "", "unknown"),
    ],
)  # fmt: skip
def test_the_kind_of_kernel(config: str, command_line: str, kind: str):
    assert interrupt_time(config, command_line) == kind


def test_the_configuration_is_looked_for_in_every_place():
    files = {
        "/proc/config.gz": gzip.compress(b"one"), "/boot/config-6.1": b"two", "/lib/modules/6.1/config": b"three"
    }  # fmt: skip

    def read(path: str) -> bytes:
        if path not in files:
            raise FileNotFoundError(path)
        return files[path]

    for expected in ("one", "two", "three", ""):
        assert kernel_config(read, "6.1") == expected
        files.pop(next(iter(files), ""), None)


@pytest.mark.parametrize(
    "broken", [b"", b"no gzip", gzip.compress(b"cut short", mtime=0)[:-9], gzip.compress(b"\xff\xfe", mtime=0)]
)
def test_a_configuration_that_cannot_be_read(broken: bytes):
    def read(path: str) -> bytes:
        if path == "/proc/config.gz":
            return broken
        raise PermissionError(path)

    assert kernel_config(read, "6.1") == ""
