"""The frames between the two ends of an ssh connection."""

import errno
import io
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sentences import raises_sentence
from weighbridge.hosts.agent import frames

FIELDS = st.dictionaries(st.text(max_size=5), st.integers() | st.text() | st.none() | st.booleans(), max_size=4)


@given(st.lists(st.tuples(FIELDS, st.binary(max_size=200)), max_size=5))
def test_what_is_packed_is_read(sent: list[tuple[dict[str, object], bytes]]):
    stream = io.BytesIO(b"".join(frames.pack(fields, data) for fields, data in sent))
    assert [frames.read(stream) for _ in sent] == sent
    assert frames.read(stream) is None


@given(st.data())
def test_a_stream_that_ends_within_a_frame_has_ended(data: st.DataObject):
    frame = frames.pack({"a": 1}, b"some bytes")
    assert frames.read(io.BytesIO(frame[: data.draw(st.integers(0, len(frame) - 1))])) is None


@given(st.binary(max_size=64))
def test_noise_is_no_frame(noise: bytes):
    try:
        found = frames.read(io.BytesIO(noise))
    except ValueError:
        return
    assert found is None or isinstance(found[0], dict)


def test_a_frame_must_not_be_too_long(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(frames, "LIMIT", 10)
    with pytest.raises(OSError, match="too large for the agent") as error:
        frames.pack({}, b"123456789")
    assert error.value.errno == errno.EFBIG
    with raises_sentence(ValueError):
        frames.read(io.BytesIO(struct.pack(">II", 2, 9)))
    with raises_sentence(ValueError):
        frames.read(io.BytesIO(struct.pack(">II", 2, 0) + b"[]"))


@pytest.mark.parametrize("before", [b"", b"welcome\n", b"no end of line", b"one\ntwo"])
def test_what_a_shell_says_first_is_passed_over(before: bytes):
    stream = io.BytesIO(before + frames.MAGIC + b"rest")
    assert frames.skip_to_magic(stream) == (True, before)
    assert stream.read() == b"rest"


@pytest.mark.parametrize("said", [b"", b"only noise\n", b"x" * 100_000, frames.MAGIC[:-2]])
def test_without_the_magic_line_there_is_no_agent(said: bytes):
    came, heard = frames.skip_to_magic(io.BytesIO(said), 1000)
    assert not came and said.startswith(heard)
