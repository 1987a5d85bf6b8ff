"""The IPv4 addresses of a machine's interfaces, from the kernel: iproute2 need not be there."""

import contextlib
import fcntl
import socket
import struct

_SIOCGIFADDR = 0x8915  # netdevice(7)
_NAME = 16


def ipv4() -> dict[str, str]:
    """The first address of each interface that has one: interface -> address."""
    found = {}
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asked:
        for _, name in socket.if_nameindex():
            with contextlib.suppress(OSError):  # it has none
                request = struct.pack(f"{_NAME}s240x", name.encode()[: _NAME - 1])
                answer = fcntl.ioctl(asked.fileno(), _SIOCGIFADDR, request)
                found[name] = socket.inet_ntoa(answer[20:24])
    return found
