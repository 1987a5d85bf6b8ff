"""How a command's end is judged."""

import pytest

from .verdict import Ended, documented_codes, faults_of

SENTENCE = b"weighbridge: /r is damaged: the run's seed: expected a number\n"


def ended(code: int | None = 6, stdout: bytes = b"", stderr: bytes = SENTENCE) -> Ended:
    return Ended(code, stdout, stderr, 0.1)


@pytest.mark.parametrize(
    ("line", "end"),
    [
        ("report {run}", ended()),
        ("report {run} --json", ended(0, b'{"a": 1}', b"")),
        (
            "run --out {run}",
            ended(7, stderr=b"going on\n" + SENTENCE + b"weighbridge: to continue: weighbridge run\n"),
        ),
        ("run {study}", ended(3, stderr=SENTENCE * 2)),
        ("clean --run {run}", ended(1, stderr=b"1 leftover\n")),
        ("gate {run}", ended(11, b"failed", b"")),
    ],
)
def test_a_good_end(line: str, end: Ended):
    assert faults_of(line, end) == []


@pytest.mark.parametrize(
    ("line", "end", "fault"),
    [
        ("report {run}", ended(None), "did not end"),
        ("report {run}", ended(70), "not documented"),
        ("report {run}", ended(-9), "not documented"),
        ("report {run}", ended(6, stderr=b""), "0 sentences"),
        ("report {run}", ended(6, stderr=SENTENCE * 2), "2 sentences"),
        ("report {run}", ended(0), "code 0 and an error"),
        ("report {run}", ended(stderr=b"weighbridge: Input should be a valid list\n"), "Input should be"),
        ("report {run}", ended(stderr=SENTENCE + b"Traceback (most recent call last):\n"), "Traceback"),
        ("report {run}", ended(stderr=SENTENCE + b"\x1b[2J\n"), "control characters to standard error"),
        ("report {run}", ended(0, b"\x1b]0;x\x07", b""), "control characters to standard output"),
        ("report {run}", ended(stderr=SENTENCE[:-1] + b"x" * 5000), "too long a line"),
        ("report {run}", ended(stderr=SENTENCE + b"x\n" * 50), "too many lines"),
        ("report {run} --json", ended(0, b'{"a": NaN}', b""), "not JSON"),
        ("report {run}", ended(0, b"\xff", b""), "not UTF-8"),
    ],
)
def test_a_bad_end(line: str, end: Ended, fault: str):
    assert any(fault in each for each in faults_of(line, end))


def test_the_codes_are_those_of_the_reference():
    assert {0, 1, 2, 6, 12, 143} <= documented_codes() and 70 not in documented_codes()
