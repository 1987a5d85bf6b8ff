"""Rates of links: tc's token bucket (tc-tbf(8)), and the bits that passed it."""

import json
from collections.abc import Mapping

AROUND = 24
"""Bytes that Ethernet adds to each frame as the kernel counts it: preamble, FCS and gap."""
BURST = 32 * 1024
"""Bytes that compensate for the latency of timers."""
QUEUE = 256 * 1024
"""Bytes that can wait at the end of a link."""
HEADER = 14
"""Bytes before a packet in a frame."""


def token_bucket(
    rate: float, *, burst: int = BURST, limit: int = QUEUE, peakrate: str = "", mtu: int = 1500
) -> list[str]:
    """Return the words of a queueing discipline that behaves like an Ethernet of ``rate`` bit/s.

    A ``peakrate`` above the rate and the MTU of the link make it split every large packet, so that each frame is
    counted, VXLAN's too. ``burst`` and ``limit``, the length of its queue, are in bytes.
    """
    words = ["tbf", "rate", f"{round(rate)}bit", "overhead", str(AROUND), "burst", str(burst)]
    splits = ["peakrate", peakrate, "mtu", str(mtu + HEADER + 100)] if peakrate else []
    return [*words, *splits, "limit", str(limit)]


def packet_queue(limit: int, mtu: int) -> list[str]:
    """Return the words of a queue as long as a bucket's ``limit`` in bytes, but counted in packets.

    A queue that counts bytes has no room for a large packet when it still has room for a small one: it dropped nearly
    every first fragment of datagrams in two pieces, and none arrived.
    """
    return ["pfifo", "limit", str(max(32, limit // (mtu + HEADER)))]


def rate_words(rate: float) -> str:
    """Return the description of a token bucket with this rate in bit/s, as a fact of a run."""
    return f"{rate / 1e6:g} Mbit/s of Ethernet (a token bucket limits the rate and adds no delay)"


def show(device: str) -> tuple[str, ...]:
    """Return the command whose output `carried` reads."""
    return "tc", "-s", "-j", "qdisc", "show", "dev", device


def carried(outputs: Mapping[str, str]) -> dict[str, float]:
    """Return the bits on the wire after the first queue of each device, from tc's JSON; without missing queues.

    A token bucket counts packets that leave it, after it has split large ones. An interface counts these as one.
    """
    counted = {name: _carried(text) for name, text in outputs.items()}
    return {name: bits for name, bits in counted.items() if bits is not None}


def _carried(output: str) -> float | None:
    try:
        root = next(each for each in json.loads(output) if each.get("root"))
        return 8.0 * (int(root["bytes"]) + AROUND * int(root["packets"]))
    except (ValueError, TypeError, AttributeError, KeyError, StopIteration):
        return None
