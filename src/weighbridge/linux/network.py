"""Listeners, routes and ports according to /proc, so that no probe disturbs a server."""

import contextlib
import random
import socket
import sys
from collections.abc import Callable, Collection, Iterable
from ipaddress import IPv4Address, IPv4Network
from pathlib import Path

from weighbridge.errors import Unavailable
from weighbridge.model.command import Transport

_TCP_LISTEN = "0A"
_LOOPBACK = ("0100007F", "00000000000000000000000001000000", "0000000000000000FFFF00000100007F")
"""127.0.0.1, ::1 and ::ffff:127.0.0.1 as in /proc, in words of this machine's byte order."""
_UDP_BOUND = "07"
_FIRST_PORT, _PORTS = 20_000, 10_000


def listening(ports: Iterable[tuple[Transport, int]], pid: int | str = "self", proc: Path = Path("/proc")) -> bool:
    """Return whether every port has a listener in the network namespace of ``pid`` (proc(5), /proc/net/tcp)."""
    return all(port in bound(transport, proc / str(pid)) for transport, port in ports)


def bound(transport: Transport, process: Path, *, reachable: bool = False) -> set[int]:
    """Return the ports with a listener in the network namespace of a process, given its folder in /proc.

    ``reachable`` excludes ports with listeners only at 127.0.0.1 or ::1.
    """
    ports: set[int] = set()
    for table in tables_of(transport):
        with contextlib.suppress(OSError):
            ports |= bound_in(transport, (process / "net" / table).read_text(), reachable=reachable)
    return ports


def tables_of(transport: Transport) -> tuple[str, str]:
    """Return the names of a transport's tables in /proc/PID/net."""
    return transport, f"{transport}6"


def bound_in(transport: Transport, table: str, *, reachable: bool = False) -> set[int]:
    """Return the ports with a listener, from the text of one of `tables_of`; ``reachable`` as in `bound`."""
    state = _TCP_LISTEN if transport == "tcp" else _UDP_BOUND
    lines = (line.split() for line in table.splitlines()[1:])
    places = (fields[1].rsplit(":", 1) for fields in lines if fields[3] == state)
    return {int(port, 16) for address, port in places if not (reachable and address in _LOOPBACK)}


def free_port(excluded: Collection[int] = (), is_free: Callable[[int], bool] | None = None) -> int:
    """Return a port without a listener, for TCP and UDP, on any address of this machine, and not ``excluded``.

    The next number is free too. Both are below the range from which the kernel gives clients their ports, so no
    client can get them later. ``is_free`` asks another host instead. Raises Unavailable if there is none.
    """
    is_free = is_free or _is_free
    candidates = [port for port in range(_FIRST_PORT, _FIRST_PORT + _PORTS, 2) if port not in excluded]
    for port in random.sample(candidates, len(candidates)):
        if is_free(port) and is_free(port + 1):
            return port
    raise Unavailable(f"every port from {_FIRST_PORT} to {_FIRST_PORT + _PORTS - 1} is in use: close some programs")


def _is_free(port: int) -> bool:
    with socket.socket() as tcp, socket.socket(type=socket.SOCK_DGRAM) as udp:
        tcp.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # a lingering connection is not a listener
        try:
            tcp.bind(("", port))
            udp.bind(("", port))
        except OSError:
            return False
        return True


def route_to(subnet: str, table: Path = Path("/proc/net/route")) -> str | None:
    """Return the interface of a route into an IPv4 subnet, except default routes (proc(5)), or None."""
    with contextlib.suppress(OSError):
        return route_in(table.read_text(), subnet)
    return None


def route_in(table: str, subnet: str) -> str | None:
    """Return the result of `route_to` for a text of /proc/net/route."""
    target = IPv4Network(subnet)
    for line in table.splitlines()[1:]:
        interface, destination, _, _, _, _, _, mask = line.split()[:8]
        route = IPv4Network((_address(destination), str(_address(mask))))
        if route.prefixlen and route.overlaps(target):
            return interface
    return None


def default_route_in(table: str) -> str | None:
    """Return the interface of the default route in a text of /proc/net/route, or None."""
    for line in table.splitlines()[1:]:
        interface, destination, _, _, _, _, _, mask = line.split()[:8]
        if int(destination, 16) == 0 == int(mask, 16):
            return interface
    return None


def interfaces_in(counters: str) -> list[str]:
    """Return the names of interfaces in a text of /proc/net/dev."""
    return [line.partition(":")[0].strip() for line in counters.splitlines() if ":" in line]


def _address(hexadecimal: str) -> IPv4Address:
    return IPv4Address(int(hexadecimal, 16).to_bytes(4, sys.byteorder))


def in_network_of(pid: int) -> tuple[str, ...]:
    """Return the words before a command that run it in the network namespace of a process (nsenter(1))."""
    return "nsenter", "--target", str(pid), "--net", "--"
