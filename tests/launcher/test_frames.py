"""Frames to and from a launcher: whole, in pieces, damaged."""

import contextlib
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sentences import raises_sentence
from weighbridge.launcher import frames
from weighbridge.launcher.frames import Frame, FrameReader, Kind
from weighbridge.model.command import Command, Usage
from weighbridge.model.sampling import SampledFile

FRAMES = st.builds(Frame, st.sampled_from(Kind), st.integers(0, 2**32 - 1), st.binary(max_size=200))
COUNTS = (1_500_000, 250_000, 4 << 20, 7, 8, 9, 10)


def left(status: int = 0, flags: int = 0, stdout: bytes = b"", stderr: bytes = b"") -> Frame:
    """A result as the launcher sends it (source/processes.c)."""
    body = struct.pack("<iIQ7QQ", status, flags, 2_000_000_000, *COUNTS, len(stdout)) + stdout + stderr
    return Frame(Kind.RESULT, 3, body)


@given(st.lists(FRAMES, max_size=5), st.lists(st.integers(1, 50), max_size=30))
def test_frames_survive_any_cut(sent: list[Frame], cuts: list[int]):
    stream, reader, came = b"".join(each.pack() for each in sent), FrameReader(), list[Frame]()
    for cut in [*cuts, len(stream) + 1]:
        came += reader.feed(stream[:cut])
        stream = stream[cut:]
    assert came == sent


def test_what_is_no_frame_is_refused():
    with raises_sentence(ValueError):
        list(FrameReader().feed(b"HTTP/1.1 200 OK\r\n"))
    with pytest.raises(ValueError):
        list(FrameReader().feed(struct.pack("<IIc", 0, 0, b"?")))


@given(st.binary(max_size=100))
def test_no_body_is_more_than_a_value_error(body: bytes):
    for read in (frames.hello, frames.errno_of, frames.result):
        with contextlib.suppress(ValueError):
            read(Frame(Kind.RESULT, 1, body))


def test_a_start_has_every_word_and_the_input():
    frame = frames.start(7, Command(("wrk", "-c", "ü"), stdin=b"\0in"), {"A": "b"})
    assert (frame.kind, frame.number) == (Kind.START, 7)
    assert struct.unpack_from("<IIIII", frame.body) == (2**32 - 1, 2**32 - 1, 3, 1, 0)
    assert frame.body[20:] == b"/\0wrk\0-c\0" + "ü".encode() + b"\0A=b\0" + b"\0in"


def test_a_start_in_a_folder_as_a_user():
    frame = frames.start(7, Command(("id",), cwd="/srv", uid=1000, gid=50, groups=(20, 44)), {})
    assert struct.unpack_from("<IIIIIII", frame.body) == (1000, 50, 1, 0, 2, 20, 44)
    assert frame.body[28:] == b"/srv\0id\0"


def test_a_zero_byte_ends_no_word_silently():
    with raises_sentence(ValueError):
        frames.start(1, Command(("echo", "a\0b")), {})


def test_a_result():
    found = frames.result(left(3 << 8, stdout=b"out", stderr=b"err"))
    assert (found.returncode, found.duration_s, found.stdout, found.stderr, found.too_much) == (
        3, 2.0, b"out", b"err", False,
    )  # fmt: skip
    assert found.usage == Usage(1.5, 0.25, 4 << 20, 7, 8, 9, 10)


@pytest.mark.parametrize(
    ("status", "code"), [(0, 0), (1 << 8, 1), (255 << 8, 255), (9, -9), (15, -15), (11 | 0x80, -11)]
)
def test_codes_are_those_of_subprocess(status: int, code: int):
    assert frames.result(left(status)).returncode == frames.code_of(status) == code


def test_too_much_is_told():
    assert frames.result(left(9, frames.TOO_MUCH)).too_much


def test_what_was_left_running_is_told():
    assert [frames.result(left(0, flags)).left_running for flags in (0, frames.TOO_MUCH, frames.LEFT_RUNNING)] == [
        False, False, True,
    ]  # fmt: skip


def test_ports_by_their_protocol_numbers():
    asked = frames.listening(1, (("tcp", 80), ("udp", 5201)), 0.25)
    assert asked.body == struct.pack("<IHHHH", 250, 6, 80, 17, 5201)


def test_a_pause_says_which_way():
    stop, go = frames.pause(3, stopped=True), frames.pause(4, stopped=False)
    assert (stop.kind, stop.number, stop.body) == (Kind.PAUSE, 3, b"\1\0\0\0") and go.body == b"\0\0\0\0"


SAMPLES = struct.pack("<iIIQ", 0, 100, 4096, 1500)


def test_readings_are_whole_or_left_out():
    begin = frames.sample(3, 0.1, (SampledFile("/proc/stat", 256), SampledFile("/proc/loadavg", 1 << 20, slow=True)))
    assert begin.body[:8] == struct.pack("<II", 100, 2)
    assert begin.body[8:] == (
        struct.pack("<II", 256, 0) + b"/proc/stat\0" + struct.pack("<II", 1 << 20, 1) + b"/proc/loadavg\0"
    )
    assert frames.sample(4, 0.0, ()).body == struct.pack("<II", 0, 0)
    none, same = 0xFFFFFFFF, 0xFFFFFFFE
    body = SAMPLES + struct.pack("<qI1sI2s", 0, 1, b"a", 2, b"bb")
    body += struct.pack("<qII", 100_000_000, same, none) + struct.pack("<qI1sI", 200_000_000, 1, b"c", same)
    told = frames.samples(Frame(Kind.DATA, 4, body + struct.pack("<qI", 300_000_000, 1)), 2)
    assert (told.at, told.texts) == ([0.0, 0.1, 0.2], [["a", "a", "c"], ["bb", None, "bb"]])
    assert (told.ticks, told.page, told.cpu_s) == (100, 4096, 0.0015)


@given(st.binary(max_size=100), st.integers(0, 3))
def test_damaged_readings_are_no_more_than_a_value_error(rest: bytes, count: int):
    told = frames.samples(Frame(Kind.DATA, 4, SAMPLES + rest), count)
    assert len(told.texts) == count
    assert all(len(column) == len(told.at) for column in told.texts)
    with pytest.raises(ValueError, match="damaged"):
        frames.samples(Frame(Kind.DATA, 4, rest[:8]), count)
