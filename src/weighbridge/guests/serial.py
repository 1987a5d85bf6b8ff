"""The stream to a guest's launcher over a serial port: its first process asks there what it is to do."""

import time
from collections.abc import Callable, Sequence

from weighbridge.errors import Unavailable
from weighbridge.model.command import Stream

ASKS = b"weighbridge: the guest asks\n"
"""What init.c writes once its end is open: what is sent before would be lost. What came before is the firmware's."""
_LOOK_S = 1.0


def told(stream: Stream, words: Sequence[str], within_s: float, why: Callable[[], str | None]) -> bytes:
    """Answer the guest's question with these words, as soon as it asks; gives what came behind it.

    ``why``: what is known of its end, where it has ended, asked every second. Raises Unavailable with it, or where the
    guest does not ask in time.
    """
    heard, deadline = b"", time.monotonic() + within_s
    while ASKS not in heard:
        try:
            piece = stream.receive(_LOOK_S)
        except TimeoutError:
            piece = None
        if piece == b"" or (piece is None and why() is not None):
            raise Unavailable(why() or "its serial port was closed")
        if time.monotonic() > deadline:
            raise Unavailable(f"its first process has not spoken on its serial port for {within_s:.0f} s")
        heard = (heard + (piece or b""))[-65536:]
    stream.send((" ".join(words) + "\n").encode())
    return heard.partition(ASKS)[2]
