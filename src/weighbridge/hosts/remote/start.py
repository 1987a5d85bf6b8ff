"""How an agent is started at the other end of a stream, and what it says first."""

import contextlib
import socket
import time
from collections.abc import Callable
from typing import IO, Any

from weighbridge.errors import Unavailable
from weighbridge.hosts.agent import frames
from weighbridge.hosts.remote.bundle import program
from weighbridge.hosts.remote.channel import Channel
from weighbridge.model.host import ClockOffset


def start_agent(
    host: str, near: socket.socket, ready_s: float, refusal: Callable[[bytes], str], why_lost: Callable[[], str]
) -> tuple[Channel, dict[str, Any]]:
    """Send the agent to the Python interpreter behind ``near``: the channel to it, and its first words.

    Raises Unavailable with ``refusal``, which is given what was said before it spoke, where it does not come up in
    ``ready_s`` seconds. ``why_lost`` tells what is known when the stream has ended.
    """
    near.settimeout(ready_s)
    stream = near.makefile("rb")
    sent = program()
    said, hello = b"", None
    with contextlib.suppress(OSError, ValueError):
        near.sendall(b"%d\n" % len(sent) + sent)
    with contextlib.suppress(OSError, ValueError):
        hello, said = _hello(stream)
    if hello is None:
        near.close()
        raise Unavailable(f"host {host} {refusal(said)}")
    near.settimeout(None)
    return Channel(host, near, stream, why_lost), hello


def _hello(stream: IO[bytes]) -> tuple[dict[str, Any] | None, bytes]:
    came, said = frames.skip_to_magic(stream)
    frame = frames.read(stream) if came else None
    return (frame[0] if frame else None), said


def clock_offset(channel: Channel, rounds: int = 15) -> ClockOffset:
    """How far the host's clock is ahead of ours, known within half the round trip.

    As NTP does it (RFC 5905, section 8): the midpoint of the round with the shortest way.
    """
    best = ClockOffset(0.0, float("inf"))
    for _ in range(rounds):
        sent = time.time()
        theirs = float(channel.call("time").fields["value"])
        back = time.time()
        if (back - sent) / 2 < best.within_s:
            best = ClockOffset(theirs - (sent + back) / 2, (back - sent) / 2)
    return best
