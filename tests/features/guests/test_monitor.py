"""QEMU's monitor: that is not there, and what it says of a disk."""

from pathlib import Path
from typing import Any

import pytest

from sentences import raises_sentence
from weighbridge.errors import EnvironmentLost
from weighbridge.features.guests import monitor
from weighbridge.features.guests.monitor import cache_mode, set_disk_speed


def test_no_monitor(tmp_path: Path):
    with raises_sentence(EnvironmentLost):
        set_disk_speed(tmp_path / "none", "d1", None)


@pytest.mark.parametrize(
    ("flags", "mode"),
    [
        ((True, False, False), "writeback"),
        ((True, True, False), "none"),
        ((False, False, False), "writethrough"),
        ((False, True, False), "directsync"),
        ((True, False, True), "unsafe"),
        ((False, False, True), None),
    ],
)
def test_the_cache_mode_is_what_qemu_says(monkeypatch: pytest.MonkeyPatch, flags: tuple[bool, ...], mode: str | None):
    """As QEMU 7.2 answers query-block; the root has no mode that is asked for."""
    cache = dict(zip(("writeback", "direct", "no-flush"), flags, strict=True))
    answer: list[dict[str, Any]] = [
        {"device": "d0", "inserted": {"cache": {"writeback": True, "direct": False, "no-flush": False}}},
        {"device": "d1", "inserted": {"cache": cache}},
    ]
    monkeypatch.setattr(monitor, "_execute", lambda socket, command, arguments: answer)
    assert cache_mode(Path("qmp"), "d1") == mode and cache_mode(Path("qmp"), "d2") is None
