"""QEMU's monitor (QMP): what is changed of a guest while it runs."""

import asyncio
from collections.abc import Mapping
from pathlib import Path

from weighbridge.errors import EnvironmentLost
from weighbridge.model.host import DiskSpeed

_ANSWER_S = 20.0


def set_disk_speed(socket: Path, drive: str, speed: DiskSpeed | None) -> None:
    """Limit a drive to so many requests and bytes per second, or lift the limit. Raises EnvironmentLost."""
    requests, size = (speed.requests, speed.bytes) if speed else (0, 0)
    limits = {"bps": size, "bps_rd": 0, "bps_wr": 0, "iops": requests, "iops_rd": 0, "iops_wr": 0}
    _execute(socket, "block_set_io_throttle", {"device": drive, **limits})


def _execute(socket: Path, command: str, arguments: Mapping[str, object]) -> None:
    from qemu.qmp import QMPClient, QMPError

    async def ask() -> None:
        client = QMPClient("weighbridge")
        await client.connect(str(socket))
        try:
            await client.execute(command, dict(arguments))
        finally:
            await client.disconnect()

    try:
        asyncio.run(asyncio.wait_for(ask(), _ANSWER_S))
    except (QMPError, OSError, TimeoutError) as error:
        raise EnvironmentLost(f"QEMU's monitor refused {command}: {error}") from error
