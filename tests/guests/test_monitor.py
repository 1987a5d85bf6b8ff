"""QEMU's monitor that is not there."""

from pathlib import Path

import pytest

from weighbridge.errors import EnvironmentLost
from weighbridge.guests.monitor import set_disk_speed


def test_no_monitor(tmp_path: Path):
    with pytest.raises(EnvironmentLost, match="QEMU's monitor did not do block_set_io_throttle"):
        set_disk_speed(tmp_path / "none", "d1", None)
