"""Sizes of datagrams, which may be ``mtu``: the largest UDP payload that does not fragment, as it was probed."""

from typing import Literal

from weighbridge.model.measurement import ProgramFailed
from weighbridge.model.workload import Endpoint

PacketBytes = int | Literal["mtu"]
"""A ``PacketSize`` as it was read: bytes, or the word."""

USUAL_PAYLOAD = 1468
"""Bytes; fits an Ethernet frame, and what the study of Docker networks used. What UDP takes where none is given."""
LARGEST_PAYLOAD = 65507
"""Bytes: 65535 of an IPv4 packet without its 20 of header and UDP's 8."""


def must_fit(name: str, size: PacketBytes | None, protocol: str, least: int, most: int) -> None:
    """ValueError where the option ``name`` is ``mtu`` without UDP, or has more or fewer bytes than can be sent."""
    if size == "mtu":
        if not protocol.lower().startswith("udp"):
            raise ValueError(
                f"{name} cannot be mtu with {protocol}, because mtu is the size of a UDP datagram. Write it in bytes"
            )
    elif size is not None and not least <= size <= most:
        raise ValueError(f"{name} must be from {least} B to {most} B with {protocol}, not {size} B")


def resolved(size: PacketBytes, at: Endpoint) -> int:
    """The size in bytes. Raises ProgramFailed where it is ``mtu`` and no probe came back."""
    if size != "mtu":
        return size
    if at.udp_payload is None:
        raise ProgramFailed(
            "the largest UDP payload of the path is unknown, so 'mtu' has no size. Write the size in bytes"
        )
    return at.udp_payload


def known_bytes(size: PacketBytes, at: Endpoint) -> int | None:
    """The size in bytes, or None where it is ``mtu`` and no probe came back."""
    return at.udp_payload if size == "mtu" else size
