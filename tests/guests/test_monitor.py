"""QEMU's monitor that is not there."""

from pathlib import Path

from sentences import raises_sentence
from weighbridge.errors import EnvironmentLost
from weighbridge.guests.monitor import set_disk_speed


def test_no_monitor(tmp_path: Path):
    with raises_sentence(EnvironmentLost):
        set_disk_speed(tmp_path / "none", "d1", None)
