"""The stream to a guest's launcher over a serial port, over which its first process asks for its arguments."""

import time
from collections.abc import Callable, Sequence

from weighbridge.errors import Unavailable
from weighbridge.model.command import Stream

ASKS = b"\nweighbridge: the guest asks\n"
"""The question that init.c writes once its end is open. Earlier input is lost; earlier output is the firmware's."""
_LOOK_S = 1.0


def tell(stream: Stream, words: Sequence[str], within_s: float, ended: Callable[[], str | None]) -> None:
    """Answer the guest's question with these words, as soon as it asks; the guest waits for them.

    ``ended`` returns why its machine has ended, or None, and is called every second. Raises Unavailable with that
    reason, or if the guest does not ask in time.
    """
    heard, deadline = b"", time.monotonic() + within_s
    while not heard.endswith(ASKS):
        try:
            piece = stream.receive(_LOOK_S)
        except TimeoutError:
            if (reason := ended()) is not None:
                raise Unavailable(reason) from None
        else:
            if not piece:
                raise Unavailable(ended() or "its serial port was closed")
            heard = (heard + piece)[-len(ASKS) :]
        if time.monotonic() > deadline:
            raise Unavailable(f"the guest sent nothing over its serial port for {within_s:.0f} s")
    stream.send((" ".join(words) + "\n").encode())
