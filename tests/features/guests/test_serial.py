"""A guest asks over its serial port; what its firmware says before, and an end, are no question."""

from collections.abc import Iterator

import pytest

from sentences import raises_sentence
from weighbridge.errors import Unavailable
from weighbridge.features.guests.serial import ASKS, tell


class Line:
    """A stream whose pieces are given; None: none comes in time."""

    def __init__(self, *pieces: bytes | None) -> None:
        self.sent = b""
        self._pieces: Iterator[bytes | None] = iter(pieces)

    def send(self, data: bytes) -> None:
        self.sent += data

    def receive(self, timeout_s: float | None = None) -> bytes:
        piece = next(self._pieces)
        if piece is None:
            raise TimeoutError
        return piece

    def end(self) -> None:
        pass


def test_the_words_are_the_answer_to_the_question():
    line = Line(b"SeaBIOS\r\n", None, ASKS[:7], ASKS[7:])
    tell(line, ("--name", "guest"), 10, lambda: None)
    assert line.sent == b"--name guest\n"


@pytest.mark.parametrize(
    ("pieces", "ended"),
    [
        ((b"",), None),
        ((b"ISOLINUX", b""), "it ended"),
        ((None,), "it ended"),
    ],
)
def test_an_end_is_told(pieces: tuple[bytes | None, ...], ended: str | None):
    with raises_sentence(Unavailable):
        tell(Line(*pieces), (), 10, lambda: ended)


def test_one_that_never_asks_is_given_up():
    with raises_sentence(Unavailable):
        tell(Line(None, None), (), -1, lambda: None)
