"""A disk with a volatile write cache: nbdkit keeps a guest's writes in its memory until they are flushed.

Killing only QEMU loses no data that the guest wrote to its disk, because the host's page cache has it. So a layer
that omits flushes would not be detected.
"""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

from weighbridge.errors import Unavailable
from weighbridge.linux.packages import install_here
from weighbridge.model.command import Command
from weighbridge.model.host import Host

WriteCache = Literal["kept", "volatile", "unsafe"]
PROGRAM = "nbdkit"
_MODES: dict[WriteCache, str] = {"volatile": "writeback", "unsafe": "unsafe"}
"""The modes of nbdkit-cache-filter(1), whose cache is an unnamed file."""
_READY_S, _LOOK_S = 20.0, 0.02


def missing() -> tuple[str, str]:
    """Return the message if the server of volatile caches is not installed, and a remedy."""
    return f"{PROGRAM}, which serves disks with a volatile write cache, is not installed", install_here([PROGRAM])


@contextmanager
def served(host: Host, image: Path, socket: Path, cache: WriteCache, prefix: tuple[str, ...]) -> Iterator[None]:
    """Serve an image behind such a cache at a socket. ``prefix`` starts the server's command.

    The cache's content is lost whenever the server ends. Raises Unavailable.
    """
    argv = (PROGRAM, "-f", "-U", str(socket), "--filter=cache", "file", str(image), f"cache={_MODES[cache]}")
    socket.unlink(missing_ok=True)
    server = host.start(Command((*prefix, "env", f"TMPDIR={image.parent}", *argv)))
    try:
        deadline = time.monotonic() + _READY_S
        while not socket.exists():
            if server.wait(_LOOK_S) or time.monotonic() > deadline:
                raise Unavailable(f"{PROGRAM} cannot serve the disk of a guest: {server.stop().last_words}")
        yield
    finally:
        server.stop()
