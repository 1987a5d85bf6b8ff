"""QEMU's monitor (QMP): changes a running guest, and reads its settings."""

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from weighbridge.errors import EnvironmentLost
from weighbridge.features.guests.machine import CacheMode
from weighbridge.model.host import DiskSpeed

_ANSWER_S = 20.0
_MODES: Mapping[tuple[bool, bool, bool], CacheMode] = {
    (True, False, False): "writeback",
    (True, True, False): "none",
    (False, False, False): "writethrough",
    (False, True, False): "directsync",
    (True, False, True): "unsafe",
}
"""Cache modes, by whether the guest has a write cache, the page cache is bypassed, and flushes are ignored."""


def set_disk_speed(socket: Path, drive: str, speed: DiskSpeed | None) -> None:
    """Limit a drive's requests and bytes per second, or remove the limit. Raises EnvironmentLost."""
    requests, size = (speed.requests, speed.bytes) if speed else (0, 0)
    limits = {"bps": size, "bps_rd": 0, "bps_wr": 0, "iops": requests, "iops_rd": 0, "iops_wr": 0}
    _execute(socket, "block_set_io_throttle", {"device": drive, **limits})


def cache_mode(socket: Path, drive: str) -> CacheMode | None:
    """Return how the host caches a drive according to QEMU; None if unknown. Raises EnvironmentLost.

    The modes are those in the table of qemu-system(1), ``-drive cache=``.
    """
    drives = _execute(socket, "query-block", {})
    cache = next((each["inserted"]["cache"] for each in drives if each.get("device") == drive), None)
    if cache is None:
        return None
    return _MODES.get((cache["writeback"], cache["direct"], cache["no-flush"]))


def _execute(socket: Path, command: str, arguments: Mapping[str, object]) -> Any:
    from qemu.qmp import QMPClient, QMPError

    async def ask() -> object:
        client = QMPClient("weighbridge")
        await client.connect(str(socket))
        try:
            return await client.execute(command, dict(arguments))
        finally:
            await client.disconnect()

    try:
        return asyncio.run(asyncio.wait_for(ask(), _ANSWER_S))
    except (QMPError, OSError, TimeoutError) as error:
        raise EnvironmentLost(f"QEMU's monitor refused {command}: {error}") from error
