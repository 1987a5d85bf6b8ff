"""Starts an agent at the other end of a stream: builds its program text, and reads its first frame.

The text contains the agent, its cleanup classes, and every module of ours that these import.
"""

import ast
import contextlib
import json
import socket
import threading
import time
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any

import weighbridge
from weighbridge import registry
from weighbridge.errors import Unavailable
from weighbridge.hosts.agent import frames
from weighbridge.hosts.remote.channel import Channel
from weighbridge.linux.process import wait_readable
from weighbridge.model.cleanup import Cleanup
from weighbridge.model.host import ClockOffset

ROOT = "weighbridge.hosts.agent.main"
_SOURCE = Path(weighbridge.__file__).parent
_PARSING = threading.Lock()
"""A lock, because Python 3.11 sometimes fails if several threads parse (python/cpython#106905)."""


def program() -> bytes:
    """Return the agent's program, compressed."""
    loader = (_SOURCE / "hosts/agent/loader.py").read_text()
    kinds = [f"{kind.__module__}:{kind.__name__}" for kind in cleanups()]
    text = f"{loader}\n\nmain(__import__('json').loads({json.dumps(sources())!r}), {kinds!r}, p)\n"
    return zlib.compress(text.encode(), 9)


def cleanups() -> list[type[Cleanup]]:
    """Return the kinds of leftovers of plug-ins that an ssh machine can have, in the registry's order."""
    kinds = [type(remote_kind) for each in registry.cleanups() if (remote_kind := each.elsewhere) is not None]
    return [kind for kind in kinds if kind.__module__.startswith(f"{__package__.partition('.')[0]}.")]  # sent as text


def sources() -> dict[str, str]:
    """Return the text of the agent's modules, and of all of ours that they import, by full name.

    A package's name ends with ".__init__".
    """
    texts: dict[str, str] = {}
    waiting = [ROOT, *(kind.__module__ for kind in cleanups())]
    while waiting:
        for name in _with_parents(waiting.pop()):
            module = _file(name)
            if module is not None and module[0] not in texts:
                texts[module[0]] = module[1].read_text()
                waiting += _imports(texts[module[0]])
    return texts


def _with_parents(name: str) -> list[str]:
    parts = name.split(".")
    return [".".join(parts[:length]) for length in range(1, len(parts) + 1)]


def _file(name: str) -> tuple[str, Path] | None:
    base = _SOURCE.joinpath(*name.split(".")[1:])
    if (base / "__init__.py").exists():
        return f"{name}.__init__", base / "__init__.py"
    return (name, base.with_suffix(".py")) if base != _SOURCE and base.with_suffix(".py").exists() else None


def _imports(text: str) -> list[str]:
    """Return our modules that a text imports anywhere, except for type checkers.

    The result can include names within modules.
    """
    imported_names: list[str] = []
    with _PARSING:
        tree = ast.parse(text)
    for_checkers = [node for node in ast.walk(tree) if isinstance(node, ast.If) and _is_type_checking(node.test)]
    skipped = {id(node) for block in for_checkers for part in block.body for node in ast.walk(part)}
    for node in ast.walk(tree):
        if id(node) in skipped:
            continue
        if isinstance(node, ast.Import):
            imported_names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            imported_names += [f"{node.module}.{alias.name}" for alias in node.names]
    return [name for name in imported_names if name.split(".")[0] == "weighbridge"]


def _is_type_checking(condition: ast.expr) -> bool:
    return isinstance(condition, ast.Name) and condition.id == "TYPE_CHECKING"


def start_agent(
    host: str, near: socket.socket, ready_s: float, refusal: Callable[[bytes], str], why_lost: Callable[[], str]
) -> tuple[Channel, dict[str, Any]]:
    """Send the agent to the Python interpreter behind ``near``; return the channel to it, and its first frame.

    If it does not start in ``ready_s`` seconds, raises Unavailable with ``refusal``, whose argument is the earlier
    output. ``why_lost`` returns the reason when the stream has ended.
    """
    near.settimeout(ready_s)
    stream = near.makefile("rb")
    sent = program()
    preamble, hello = b"", None
    with contextlib.suppress(OSError, ValueError):
        near.sendall(b"%d\n" % len(sent) + sent)
    with contextlib.suppress(OSError, ValueError):
        if wait_readable(near, timeout_s=ready_s):
            hello, preamble = _hello(stream)
    if hello is None:
        stream.close()
        near.close()
        raise Unavailable(f"host {host} {refusal(preamble)}")
    near.settimeout(None)
    return Channel(host, near, stream, why_lost), hello


def _hello(stream: IO[bytes]) -> tuple[dict[str, Any] | None, bytes]:
    came, preamble = frames.skip_to_magic(stream)
    frame = frames.read(stream) if came else None
    return (frame[0] if frame else None), preamble


def clock_offset(channel: Channel, rounds: int = 15) -> ClockOffset:
    """Return the offset of the host's clock from ours, with an error of half the round trip.

    It is computed as in NTP (RFC 5905, section 8): the midpoint of the round with the shortest trip.
    """
    best = ClockOffset(0.0, float("inf"))
    for _ in range(rounds):
        sent = time.time()
        theirs = float(channel.call("time").fields["value"])
        back = time.time()
        if (back - sent) / 2 < best.within_s:
            best = ClockOffset(theirs - (sent + back) / 2, (back - sent) / 2)
    return best
