"""Hold one domain of Xen on its host, and carry the stream to the launcher on its console. It needs only Python 3.

    python3 -c TEXT NAME CONFIG

The text of this module is sent to the host. It creates the domain. Console output before the line `FOLLOWS` goes
to standard error, and output after it to standard output. Standard input goes to the console. The domain
ends when standard input does, however we end, and we end when the domain does.
"""

import contextlib
import os
import queue
import re
import signal
import subprocess
import sys
import termios
import threading
import time
import tty
from typing import IO

FOLLOWS = b"weighbridge: the launcher follows\n"
_KEPT = 2**14
_PIECE = 2**16
_AGAIN_S = 0.1
_SYSRQ = b"\x0f"
"""The kernel takes what follows it on its console for a command, and a second one for itself (hvc_console.c)."""
_SAID = re.compile(rb"\[ *\d+\.\d{6}\] [\x20-\x7e]+")
_RUNS = re.compile(rb"Waiting for domain .* \(domid (\d+)\) to die")
_TRIES, _END_S = 50, 30.0


class Console:
    """The output of a console: the text before the launcher's stream, and the kernel's messages within the stream."""

    def __init__(self) -> None:
        self._before: bytes | None = b""
        self._tail = b""

    def feed(self, piece: bytes) -> tuple[bytes, bytes]:
        """Return the console text and the part of the launcher's stream that a piece holds."""
        if self._before is None:
            self._tail = (self._tail + piece)[-_KEPT:]
            return b"", piece
        self._before += piece
        text, separator, stream = self._before.partition(FOLLOWS)
        if separator:
            self._before, self._tail = None, stream
            return text, stream
        text_length = len(self._before) - len(FOLLOWS)  # the separator can start there
        self._before, text = (
            (self._before[text_length:], self._before[:text_length]) if text_length > 0 else (self._before, b"")
        )
        return text, b""

    def last_words(self) -> bytes:
        """Return the lines with the kernel's stamp that are among the launcher's frames. They show why it ended."""
        if self._before is not None:
            return self._before
        return b"".join(line + b"\n" for line in _SAID.findall(self._tail))


def escaped(data: bytes) -> bytes:
    """Return the bytes escaped for a console that the kernel shares."""
    return data.replace(_SYSRQ, 2 * _SYSRQ)


def _domain_of(xl_stderr: IO[bytes]) -> str:
    """Return the number of the domain once xl names it; empty if xl ends before. Copies its output to stderr."""
    for line in xl_stderr:
        _write(2, line)
        if match := _RUNS.search(line):
            return match[1].decode()
    return ""


def _terminal(domain: str) -> int | None:
    """Return a descriptor of the domain's console, once it has one; None if the domain is gone."""
    for _ in range(_TRIES):
        query = ("xenstore-read", f"/local/domain/{domain}/console/tty")
        path = (
            subprocess.run(query, stdin=subprocess.DEVNULL, capture_output=True, check=False).stdout.decode().strip()
        )
        with contextlib.suppress(OSError, termios.error):
            console = os.open(path, os.O_RDWR | os.O_NOCTTY)
            tty.setraw(console)
            return console
        time.sleep(_AGAIN_S)
    return None


def _write(file: int, data: bytes) -> None:
    while data:
        data = data[os.write(file, data) :]


def _read(file: int) -> bytes:
    try:
        return os.read(file, _PIECE)
    except OSError:  # of a terminal whose other end is closed
        return b""


def main(name: str, config: str) -> int:
    """Create the domain and carry its stream. Return an exit code."""
    over, stream_ended = threading.Event(), threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: over.set())
    create = ("xl", "create", "-q", "-F", "/dev/null", config)
    creating = subprocess.Popen(create, stdin=subprocess.DEVNULL, stdout=2, stderr=subprocess.PIPE)
    assert creating.stderr is not None
    xl_stderr = creating.stderr
    pieces: queue.SimpleQueue[bytes] = queue.SimpleQueue()
    console = Console()

    def write_out() -> None:  # of its own: xenconsoled throws away what is not taken from it in time
        with contextlib.suppress(OSError):
            while piece := pieces.get():
                text, stream = console.feed(piece)
                _write(2, text)
                _write(1, stream)
            stream_ended.set()
        over.set()

    def carry_in(terminal: int) -> None:
        with contextlib.suppress(OSError):
            while piece := _read(0):
                _write(terminal, escaped(piece))
        over.set()

    def carry_out(terminal: int) -> None:
        while piece := _read(terminal):
            pieces.put(piece)
        pieces.put(b"")

    def hold() -> None:
        domain = _domain_of(xl_stderr)
        terminal = _terminal(domain) if domain else None
        if terminal is None:
            over.set()
            return
        for work, arguments in ((carry_in, (terminal,)), (carry_out, (terminal,)), (write_out, ())):
            threading.Thread(target=work, args=arguments, daemon=True).start()
        _domain_of(xl_stderr)  # what else xl says

    threading.Thread(target=hold, daemon=True).start()
    while not over.wait(_AGAIN_S):  # so that a signal is handled
        pass
    if stream_ended.is_set():
        with contextlib.suppress(subprocess.TimeoutExpired):
            creating.wait(_END_S)
    if creating.poll() is None:
        subprocess.run(("xl", "destroy", name), stdin=subprocess.DEVNULL, stdout=2, stderr=2, check=False)
    with contextlib.suppress(subprocess.TimeoutExpired):
        creating.wait(_END_S)
    with contextlib.suppress(OSError):
        os.write(2, console.last_words())
    return 0


if __name__ == "__main__":
    code = main(*sys.argv[1:])
    sys.stderr.flush()
    os._exit(code)
