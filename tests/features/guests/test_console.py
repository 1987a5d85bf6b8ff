"""The last words of guests that really ended so."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sentences import assert_sentence
from weighbridge.features.guests.accelerator import judged
from weighbridge.features.guests.console import last_words
from weighbridge.model.command import Completed

DATA = Path(__file__).parent / "data"


def console(name: str) -> bytes:
    return (DATA / f"console-{name}.txt").read_bytes()


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("no-file-system", "weighbridge: the guest cannot mount /root: Invalid argument"),
        ("no-first-process", "Kernel panic - not syncing: VFS: Unable to mount root fs on unknown-block(0,0)"),
        ("too-little-memory", ""),
    ],
)
def test_why_a_guest_ended(name: str, words: str):
    assert last_words(console(name)) == words


def test_what_the_hypervisor_complains_of_comes_first():
    assert_sentence(last_words(console("no-such-image")))


def test_without_a_reason_the_last_lines_are_told_and_not_that_it_restarts():
    said = ("one", "two", "three", "four", "reboot: Restarting system")
    assert last_words("".join(f"[    1.000000] {line}\r\n" for line in said).encode()) == "two; three; four"


@given(st.binary())
def test_any_console_is_one_short_printable_line(said: bytes):
    words = last_words(said)
    assert len(words) <= 300
    assert words.isprintable()


def ended(stderr: bytes, *, code: int = 0, timed_out: bool = False) -> Completed:
    return Completed(("qemu",), code, b"", stderr, 1.0, timed_out)


def test_an_accelerator_is_proved_by_a_guest_that_came_up():
    assert judged(ended(console("prove"))) == ""
    assert judged(ended(console("no-such-image"), code=1)) != ""
    assert "exited with code 1" in judged(ended(b"", code=1))
    assert_sentence(judged(ended(b"qemu-system-x86_64: terminating on signal 15\n", timed_out=True)))
