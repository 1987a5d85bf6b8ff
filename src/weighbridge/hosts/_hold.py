"""Processes that hold namespaces: started with a pipe that ends them with us, and awaited until they are set up."""

import contextlib
from typing import TypeVar

from weighbridge.errors import Unavailable
from weighbridge.model.command import HostProcess

JOIN = 'while [ "$1" != -- ]; do echo 0 > "$1" || exit 125; shift; done; shift; exec "$@"'
"""A shell that writes itself into the control groups named before "--", then becomes the program."""
P = TypeVar("P", bound=HostProcess)
_READY_S = 20.0
_PAUSE_S = 0.005


def hold(process: P, refusal: str, ready_s: float = _READY_S) -> P:
    """Give the process back once it has printed a whole line with ``ready``.

    Where it ends before, or does not become ready in ``ready_s`` seconds, it is stopped and Unavailable raised:
    ``refusal`` and its last words.
    """
    with contextlib.ExitStack() as stack:
        stack.callback(process.stop)
        for _ in range(int(ready_s / _PAUSE_S)):
            said = process.output_so_far()
            if b"ready" in said and said.endswith(b"\n"):
                stack.pop_all()
                return process
            if process.wait(_PAUSE_S):
                break
        last_words = process.stop().last_words
    raise Unavailable(f"{refusal}: {last_words}")
