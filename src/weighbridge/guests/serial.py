"""The stream to a guest's launcher over a serial port: its first process asks there what it is to do."""

import time
from collections.abc import Callable, Sequence

from weighbridge.errors import Unavailable
from weighbridge.model.command import Stream

ASKS = b"\nweighbridge: the guest asks\n"
"""What init.c writes once its end is open: what is sent before would be lost. What came before is the firmware's."""
_LOOK_S = 1.0


def tell(stream: Stream, words: Sequence[str], within_s: float, ended: Callable[[], str | None]) -> None:
    """Answer the guest's question with these words, as soon as it asks. It says nothing more before it has them.

    ``ended``: why its machine has, where it has; asked every second. Raises Unavailable with that, or where the guest
    does not ask in time.
    """
    heard, deadline = b"", time.monotonic() + within_s
    while not heard.endswith(ASKS):
        try:
            piece = stream.receive(_LOOK_S)
        except TimeoutError:
            if (why := ended()) is not None:
                raise Unavailable(why) from None
        else:
            if not piece:
                raise Unavailable(ended() or "its serial port was closed")
            heard = (heard + piece)[-len(ASKS) :]
        if time.monotonic() > deadline:
            raise Unavailable(f"the guest sent nothing over its serial port for {within_s:.0f} s")
    stream.send((" ".join(words) + "\n").encode())
