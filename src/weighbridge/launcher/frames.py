"""Frames: what goes over the one stream to a launcher (source/wire.h). Numbers are little-endian, unaligned."""

import contextlib
import enum
import struct
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from weighbridge.model.command import Command, Transport, Usage
from weighbridge.model.sampling import SampledFile, Samples

VERSION = 8
LARGEST = 192 * 2**20
"""Bytes of a body at most."""
TOO_MUCH, LEFT_RUNNING = 1, 2
"""The flag of a result whose program printed more than the launcher keeps."""
_HEADER = struct.Struct("<IIc")
_HELLO = struct.Struct("<IIQ")
_RESULT = struct.Struct("<iIQQQQQQQQQ")
_PRINTED = struct.Struct("<iQ")
_START = struct.Struct("<IIIII")
_SAMPLES = struct.Struct("<iIIQ")
_MOMENT = struct.Struct("<q")
_LENGTH = struct.Struct("<I")
_SAME, _NONE = 0xFFFFFFFE, 0xFFFFFFFF
"""In place of a text's length: it is the last one again; it could not be read, or was not due."""
_NOBODY = 0xFFFFFFFF
_PROTOCOLS: Mapping[Transport, int] = {"tcp": 6, "udp": 17}


class Kind(enum.Enum):
    """What a frame is: capitals to the launcher, small letters from it."""

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


@dataclass(frozen=True, slots=True)
class Frame:
    """One frame; ``number`` is that of the request, or of the process, that it is about."""

    kind: Kind
    number: int
    body: bytes = b""

    def pack(self) -> bytes:
        """The bytes of the frame, as they go over the stream."""
        return _HEADER.pack(len(self.body), self.number, self.kind.value) + self.body


class FrameReader:
    """Puts frames together from the pieces in which a stream gives them. ValueError: these are none."""

    def __init__(self) -> None:
        self._buffer = bytearray()

    def feed(self, piece: bytes) -> Iterator[Frame]:
        """The frames that are whole with this piece."""
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


@dataclass(frozen=True, slots=True)
class Result:
    """How a program ended, its time, what it used, and its output."""

    returncode: int
    duration_s: float
    usage: Usage
    stdout: bytes
    stderr: bytes
    too_much: bool
    left_running: bool
    """Processes that it had started went on when it had ended, and were killed."""


def start(number: int, command: Command, env: Mapping[str, str]) -> Frame:
    """Start a program in its folder, as its user. ValueError: a word has a zero byte."""
    words = [command.cwd, *command.argv, *(f"{key}={value}" for key, value in env.items())]
    if any("\0" in word for word in words):
        raise ValueError("a word of a command has a zero byte: remove it")
    user, group = (_NOBODY if number is None else number for number in (command.uid, command.gid))
    groups = struct.pack(f"<{len(command.groups)}I", *command.groups)
    counts = _START.pack(user, group, len(command.argv), len(env), len(command.groups)) + groups
    strings = b"".join(word.encode(errors="surrogateescape") + b"\0" for word in words)
    return Frame(Kind.START, number, counts + strings + command.stdin)


def stop(number: int, signal: int, grace_s: float) -> Frame:
    """End a process group, and ask for its result."""
    return Frame(Kind.STOP, number, struct.pack("<II", signal, round(grace_s * 1000)))


def write(number: int, path: str, data: bytes, mode: int, *, append: bool) -> Frame:
    """Write a file; ``append``: behind what it has already."""
    return Frame(Kind.WRITE, number, struct.pack("<II", mode, append) + path.encode() + b"\0" + data)


def read(number: int, path: str) -> Frame:
    """Read a file."""
    return Frame(Kind.READ, number, path.encode() + b"\0")


def listening(number: int, ports: tuple[tuple[Transport, int], ...], within_s: float) -> Frame:
    """Ask which ports have a listener; the answer may wait for that long until all have one."""
    packed_ports = b"".join(struct.pack("<HH", _PROTOCOLS[how], port) for how, port in ports)
    return Frame(Kind.LISTENING, number, struct.pack("<I", round(within_s * 1000)) + packed_ports)


def pause(number: int, *, stopped: bool) -> Frame:
    """Stop every process of the site but the launcher by SIGSTOP, or let all go on."""
    return Frame(Kind.PAUSE, number, struct.pack("<I", stopped))


def sample(number: int, every_s: float, files: Sequence[SampledFile]) -> Frame:
    """Begin to read files every so many seconds (at least 0.001); 0: read them for the last time, and tell all."""
    told = b"".join(struct.pack("<II", each.most, each.slow) + each.path.encode() + b"\0" for each in files)
    return Frame(Kind.SAMPLE, number, struct.pack("<II", round(1000 * every_s), len(files)) + told)


def samples(frame: Frame, count: int) -> Samples:
    """What was read of ``count`` files; a reading that is not whole is left out. ValueError."""
    if len(frame.body) < _SAMPLES.size:
        raise ValueError("a damaged answer")
    _, ticks, page, cpu_us = _SAMPLES.unpack_from(frame.body)
    at: list[float] = []
    texts: list[list[str | None]] = [[] for _ in range(count)]
    last: list[str | None] = [None] * count
    where = _SAMPLES.size
    with contextlib.suppress(struct.error):
        while where < len(frame.body):
            moment, where = _MOMENT.unpack_from(frame.body, where)[0], where + _MOMENT.size
            reading: list[str | None] = []
            for each in range(count):
                length, where = _LENGTH.unpack_from(frame.body, where)[0], where + _LENGTH.size
                if length < _SAME:
                    data, where = frame.body[where : where + length], where + length
                    if len(data) < length:
                        raise struct.error
                    last[each] = data.decode("latin-1")
                reading.append(None if length == _NONE else last[each])
            at.append(moment / 1e9)
            for column, text in zip(texts, reading, strict=True):
                column.append(text)
    return Samples(at, texts, ticks, page, cpu_us / 1e6)


def hello(frame: Frame) -> tuple[int, int, int]:
    """Version of the protocol, the launcher's own process number, open files of a process. ValueError."""
    if len(frame.body) != _HELLO.size:
        raise ValueError("a damaged greeting")
    version, pid, files = _HELLO.unpack(frame.body)
    return version, pid, files


def printed(frame: Frame) -> tuple[bytes, bytes]:
    """What a program has written so far to standard output and standard error; of each the beginning. ValueError."""
    if len(frame.body) < _PRINTED.size:
        raise ValueError("a damaged answer")
    error, out = _PRINTED.unpack_from(frame.body)
    output = frame.body[_PRINTED.size :]
    return (b"", b"") if error else (output[:out], output[out:])


def errno_of(frame: Frame) -> int:
    """The error (errno(3)) with which many an answer begins, 0 for none. ValueError."""
    if len(frame.body) < 4:
        raise ValueError("a damaged answer")
    return int.from_bytes(frame.body[:4], "little", signed=True)


def code_of(status: int) -> int:
    """The return code of a status of wait(2) as in subprocess: negative for a signal."""
    signal = status & 0x7F
    return -signal if signal else status >> 8 & 0xFF


def result(frame: Frame) -> Result:
    """The result in a frame. The return code is as in subprocess: negative for a signal. ValueError."""
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
    )
