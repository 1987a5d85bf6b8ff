"""What is told where a disk for data cannot be made; one that can is in tests/real/test_guests.py."""

from types import SimpleNamespace
from typing import Any

import pytest

from weighbridge.errors import DiskFull, Unavailable, WeighbridgeError
from weighbridge.features.guests import data_disk
from weighbridge.model.command import Completed

FULL = b"mkfs.ext4: No space left on device while writing out and closing file system\n"
"""Captured from a file system of 64 KiB."""
NOWHERE = b"mkfs.ext4: No such file or directory while trying to determine filesystem size\n"


@pytest.mark.parametrize(
    ("said", "failure", "sentence"),
    [
        (FULL, DiskFull, f"host b has no room for a data disk ({FULL.decode().strip()}): make room"),
        (NOWHERE, Unavailable, f"host b: the data disk cannot be created: {NOWHERE.decode().strip()}"),
        (b"", Unavailable, "host b: the data disk cannot be created: "),
    ],
)
def test_why_there_is_none(said: bytes, failure: type[WeighbridgeError], sentence: str) -> None:
    host: Any = SimpleNamespace(name="b", run=lambda command: Completed(command.argv, 1, b"", said, 0.1))
    with pytest.raises(failure) as told:
        data_disk.make(host, "/data/data.ext4")
    assert str(told.value).startswith(sentence)
