"""The frames of the stream to a launcher (source/wire.h). Numbers are little-endian and unaligned."""

import contextlib
import enum
import struct
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from weighbridge.model.command import Command, Transport, Usage
from weighbridge.model.sampling import SampledFile, Samples

VERSION = 9
LARGEST = 192 * 2**20
"""The largest number of bytes of a body."""
TOO_MUCH, LEFT_RUNNING, ALONE = 1, 2, 4
"""The flags of a result: the program printed more than the launcher keeps, or left processes running; and now no
process except the launcher is left."""
_HEADER = struct.Struct("<IIc")
HEADER_SIZE = _HEADER.size
_HELLO = struct.Struct("<IIQ")
_RESULT = struct.Struct("<iIQQQQQQQQQ")
_PRINTED = struct.Struct("<iQ")
_START = struct.Struct("<IIIII")
_SAMPLES = struct.Struct("<iIIQ")
_MOMENT = struct.Struct("<q")
_LENGTH = struct.Struct("<I")
_SAME, _NONE = 0xFFFFFFFE, 0xFFFFFFFF
"""Values in place of a text's length: it repeats the last one; it could not be read, or was not due."""
_NOBODY = 0xFFFFFFFF
_PROTOCOLS: Mapping[Transport, int] = {"tcp": 6, "udp": 17}


class Kind(enum.Enum):
    """The kind of a frame: capital letters go to the launcher, small letters come from it."""

    START = b"S"
    STOP = b"E"
    WRITE = b"W"
    READ = b"R"
    LISTENING = b"L"
    ALONE = b"Q"
    PRINTED = b"P"
    PAUSE = b"F"
    SAMPLE = b"M"
    HELLO = b"h"
    REFUSED = b"x"
    BEGAN = b"b"
    ENDED = b"e"
    RESULT = b"r"
    DONE = b"o"
    DATA = b"d"
    TAKEN = b"t"


@dataclass(frozen=True, slots=True)
class Frame:
    """One frame; ``number`` identifies the request or the process."""

    kind: Kind
    number: int
    body: bytes = b""

    def pack(self) -> bytes:
        """Return the bytes of the frame on the stream."""
        return _HEADER.pack(len(self.body), self.number, self.kind.value) + self.body


class FrameReader:
    """Assembles frames from the pieces of a stream. Raises ValueError for anything else."""

    def __init__(self) -> None:
        self._buffer = bytearray()

    def feed(self, piece: bytes) -> Iterator[Frame]:
        """Yield the frames that this piece completes."""
        self._buffer += piece
        while len(self._buffer) >= _HEADER.size:
            size, number, kind = _HEADER.unpack_from(self._buffer)
            if size > LARGEST:
                raise ValueError(f"a frame of {size} bytes")
            if len(self._buffer) < _HEADER.size + size:
                return
            body = bytes(self._buffer[_HEADER.size : _HEADER.size + size])
            del self._buffer[: _HEADER.size + size]
            yield Frame(Kind(kind), number, body)


def can_greet(data: bytes) -> bool:
    """Return whether a stream that begins with these bytes can begin with the greeting or refusal of a launcher."""
    size, number, kind = data[2:4], data[4:8], data[8:9]
    return not any(size + number) and (not kind or kind in (Kind.HELLO.value, Kind.REFUSED.value))


@dataclass(frozen=True, slots=True)
class Result:
    """A program's return code, time, resource use and output."""

    returncode: int
    duration_s: float
    usage: Usage
    stdout: bytes
    stderr: bytes
    too_much: bool
    left_running: bool
    """Whether processes that it had started were still running when it ended, and were killed."""
    alone: bool
    """Whether no process except the launcher is left in the site."""


def start(number: int, command: Command, env: Mapping[str, str]) -> Frame:
    """Return the frame that starts a program in its folder, as its user. ValueError if a word has a zero byte."""
    words = [command.cwd, *command.argv, *(f"{key}={value}" for key, value in env.items())]
    if any("\0" in word for word in words):
        raise ValueError("a word of a command has a zero byte: remove it")
    user, group = (_NOBODY if user_id is None else user_id for user_id in (command.uid, command.gid))
    groups = struct.pack(f"<{len(command.groups)}I", *command.groups)
    counts = _START.pack(user, group, len(command.argv), len(env), len(command.groups)) + groups
    strings = b"".join(word.encode(errors="surrogateescape") + b"\0" for word in words)
    return Frame(Kind.START, number, counts + strings + command.stdin)


def stop(number: int, signal: int, grace_s: float) -> Frame:
    """Return the frame that ends a process group and asks for its result."""
    return Frame(Kind.STOP, number, struct.pack("<II", signal, round(grace_s * 1000)))


def write(number: int, path: str, data: bytes, mode: int, *, append: bool) -> Frame:
    """Return the frame that writes a file; ``append`` adds to its content."""
    return Frame(Kind.WRITE, number, struct.pack("<II", mode, append) + path.encode() + b"\0" + data)


def read(number: int, path: str) -> Frame:
    """Return the frame that reads a file."""
    return Frame(Kind.READ, number, path.encode() + b"\0")


def listening(number: int, ports: tuple[tuple[Transport, int], ...], within_s: float) -> Frame:
    """Return the frame that asks which ports have a listener; the answer waits up to ``within_s`` for all of them."""
    packed_ports = b"".join(struct.pack("<HH", _PROTOCOLS[how], port) for how, port in ports)
    return Frame(Kind.LISTENING, number, struct.pack("<I", round(within_s * 1000)) + packed_ports)


def pause(number: int, *, stopped: bool) -> Frame:
    """Return the frame that stops all processes of the site except the launcher (SIGSTOP), or continues them."""
    return Frame(Kind.PAUSE, number, struct.pack("<I", stopped))


def sample(number: int, every_s: float, files: Sequence[SampledFile]) -> Frame:
    """Return the frame that begins to read files every ``every_s`` seconds (at least 0.001).

    With 0, the files are read for the last time, and the answer has all readings.
    """
    listed = b"".join(struct.pack("<II", each.most, each.slow) + each.path.encode() + b"\0" for each in files)
    return Frame(Kind.SAMPLE, number, struct.pack("<II", round(1000 * every_s), len(files)) + listed)


def samples(frame: Frame, count: int) -> Samples:
    """Return the readings of ``count`` files without incomplete ones. Raises ValueError for a damaged answer."""
    if len(frame.body) < _SAMPLES.size:
        raise ValueError("a damaged answer")
    _, ticks, page, cpu_us = _SAMPLES.unpack_from(frame.body)
    times: list[float] = []
    texts: list[list[str | None]] = [[] for _ in range(count)]
    last: list[str | None] = [None] * count
    where = _SAMPLES.size
    with contextlib.suppress(struct.error):
        while where < len(frame.body):
            moment, where = _MOMENT.unpack_from(frame.body, where)[0], where + _MOMENT.size
            reading: list[str | None] = []
            for file in range(count):
                length, where = _LENGTH.unpack_from(frame.body, where)[0], where + _LENGTH.size
                if length < _SAME:
                    data, where = frame.body[where : where + length], where + length
                    if len(data) < length:
                        raise struct.error
                    last[file] = data.decode("latin-1")
                reading.append(None if length == _NONE else last[file])
            times.append(moment / 1e9)
            for column, text in zip(texts, reading, strict=True):
                column.append(text)
    return Samples(times, texts, ticks, page, cpu_us / 1e6)


def hello(frame: Frame) -> tuple[int, int, int]:
    """Return the protocol version, the launcher's process number, and its limit of open files. Raises ValueError."""
    if len(frame.body) != _HELLO.size:
        raise ValueError("a damaged greeting")
    version, pid, files = _HELLO.unpack(frame.body)
    return version, pid, files


def printed(frame: Frame) -> tuple[bytes, bytes]:
    """Return the beginnings of standard output and standard error so far. Raises ValueError."""
    if len(frame.body) < _PRINTED.size:
        raise ValueError("a damaged answer")
    error, out = _PRINTED.unpack_from(frame.body)
    output = frame.body[_PRINTED.size :]
    return (b"", b"") if error else (output[:out], output[out:])


def errno_of(frame: Frame) -> int:
    """Return the error (errno(3)) at the beginning of an answer, 0 for none. Raises ValueError."""
    if len(frame.body) < 4:
        raise ValueError("a damaged answer")
    return int.from_bytes(frame.body[:4], "little", signed=True)


def code_of(status: int) -> int:
    """Return the return code for a status of wait(2) as in subprocess: negative for a signal."""
    signal = status & 0x7F
    return -signal if signal else status >> 8 & 0xFF


def result(frame: Frame) -> Result:
    """Return the result in a frame. The return code is as in subprocess: negative for a signal. Raises ValueError."""
    if len(frame.body) < _RESULT.size:
        raise ValueError("a damaged result")
    status, flags, wall_ns, user_us, system_us, *counts, out = _RESULT.unpack_from(frame.body)
    printed = frame.body[_RESULT.size :]
    return Result(
        code_of(status),
        wall_ns / 1e9,
        Usage(user_us / 1e6, system_us / 1e6, *counts),
        printed[:out],
        printed[out:],
        bool(flags & TOO_MUCH),
        bool(flags & LEFT_RUNNING),
        bool(flags & ALONE),
    )
