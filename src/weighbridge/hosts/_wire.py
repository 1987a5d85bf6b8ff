"""What a cable has carried, counted on the wire: of a token bucket, and of a network card."""

import json
from collections.abc import Callable, Mapping

from weighbridge.model.site import Link

AROUND = 24
"""Bytes that an Ethernet adds to each frame as the kernel counts it: preamble, FCS and gap."""
_WHOLE = 1514
"""Bytes of a whole frame. A card that splits large packets itself may count those: there were more frames."""


def rate_words(rate: float) -> str:
    """What a token bucket of this rate in bit/s is, as a fact of a run."""
    return f"{rate / 1e6:g} Mbit/s of Ethernet, token bucket: caps the rate, adds no delay"


def show(device: str) -> tuple[str, ...]:
    """The command whose output `carried_bits` reads."""
    return "tc", "-s", "-j", "qdisc", "show", "dev", device


def carried_bits(told: str) -> float | None:
    """Bits on the wire behind the first queue of a device, from tc's JSON; None where it tells of none.

    A token bucket counts what leaves it, after it has split large packets. An interface counts these as one.
    """
    try:
        root = next(each for each in json.loads(told) if each.get("root"))
        return 8.0 * (int(root["bytes"]) + AROUND * int(root["packets"]))
    except (ValueError, TypeError, AttributeError, KeyError, StopIteration):
        return None


def card(read: Callable[[str], bytes], where: str, interface: str) -> Link | None:
    """The link of a network card whose driver tells its rate; ``read`` gives the host's files. Else None."""
    folder = f"/sys/class/net/{interface}"
    try:
        read(f"{folder}/device/uevent")  # only hardware has it: a veth says 10 Gbit/s of itself
        rate = int(read(f"{folder}/speed")) * 1e6
    except (OSError, ValueError):
        return None

    def carried() -> Mapping[str, float]:
        found = {}
        for way, name in (("out", "tx"), ("in", "rx")):
            try:
                count, packets = (int(read(f"{folder}/statistics/{name}_{what}")) for what in ("bytes", "packets"))
            except (OSError, ValueError):
                continue
            found[way] = 8.0 * (count + AROUND * max(packets, count / _WHOLE))
        return found

    return Link(where, rate, carried) if interface and rate > 0 else None
