"""Sizes of datagrams. ``mtu`` is the largest UDP payload that is not fragmented, as it was probed."""

from typing import Any, Literal

from weighbridge.model.command import Transport
from weighbridge.model.measurement import ProgramFailed
from weighbridge.model.workload import Endpoint, Workload

PacketBytes = int | Literal["mtu"]
"""A ``PacketSize`` after validation: bytes, or the word ``mtu``."""

USUAL_PAYLOAD = 1468
"""The default UDP payload in bytes. It fits an Ethernet frame, and the study of Docker networks used it."""
LARGEST_PAYLOAD = 65507
"""65,535 bytes of an IPv4 packet, without its header of 20 bytes and UDP's of 8."""


def check_size(name: str, size: PacketBytes | None, protocol: str, least: int, most: int) -> None:
    """Raise ValueError if the option ``name`` is ``mtu`` without UDP, or has too few or too many bytes."""
    if size == "mtu":
        if not protocol.lower().startswith("udp"):
            raise ValueError(
                f"{name} cannot be mtu with {protocol}, because mtu is the size of a UDP datagram. Write it in bytes"
            )
    elif size is not None and not least <= size <= most:
        raise ValueError(f"{name} must be from {least} B to {most} B with {protocol}, not {size} B")


def resolved(size: PacketBytes, at: Endpoint) -> int:
    """Return the size in bytes. Raises ProgramFailed if it is ``mtu`` and no probe was answered."""
    if size != "mtu":
        return size
    if at.udp_payload is None:
        raise ProgramFailed(
            "the largest UDP payload of the path is unknown, so 'mtu' has no size. Write the size in bytes"
        )
    return at.udp_payload


def known_bytes(size: PacketBytes, at: Endpoint) -> int | None:
    """Return the size in bytes, or None if it is ``mtu`` and no probe was answered."""
    return at.udp_payload if size == "mtu" else size


class TcpOrUdp(Workload):
    """A workload with an option ``protocol``, and ``length`` for the size of its datagrams."""

    def transports(self, options: Any) -> tuple[Transport, ...]:
        """Add TCP to UDP, because control connections and the probe of the path use TCP."""
        return ("tcp", "udp") if options.protocol == "udp" else ("tcp",)

    def packet_size(self, options: Any, at: Endpoint) -> int | None:
        return known_bytes(options.length or USUAL_PAYLOAD, at) if options.protocol == "udp" else None
