"""The stream to a guest's launcher over a vsock device whose end on the host is a Unix socket.

Firecracker and Cloud Hypervisor have such devices. They connect a guest's call of a port to the socket at the
device's path with ``_PORT`` appended (Firecracker, docs/vsock.md).
"""

import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from weighbridge.errors import Unavailable
from weighbridge.linux.process import SocketStream, limit_sending, wait_readable
from weighbridge.model.command import HostProcess, Stream

PORT = 1024
"""The port that init.c calls."""
DRIVER = "vmw_vsock_virtio_transport"
_LOOK_S = 0.2


@contextmanager
def listening(device: Path) -> Iterator[socket.socket]:
    """Listen for a guest's call; ``device`` is the path that its hypervisor gets. Removes the sockets of both.

    Raises Unavailable if the path is too long for a socket (unix(7)).
    """
    own = device.with_name(f"{device.name}_{PORT}")
    with socket.socket(socket.AF_UNIX) as listener:
        try:
            try:
                listener.bind(str(own))
            except OSError as error:
                raise Unavailable(f"no socket can be created at {own}: {error}") from error
            listener.listen(1)
            yield listener
        finally:
            for path in (own, device):
                path.unlink(missing_ok=True)


def answered(listener: socket.socket, hypervisor: HostProcess, within_s: float) -> Stream | None:
    """Return the stream of the guest's call; None if its hypervisor ends first, or if none comes in time."""
    deadline = time.monotonic() + within_s
    while hypervisor.poll() is None and time.monotonic() < deadline:
        if wait_readable(listener, timeout_s=_LOOK_S):
            connection, _ = listener.accept()
            limit_sending(connection)
            return SocketStream(connection)
    return None
