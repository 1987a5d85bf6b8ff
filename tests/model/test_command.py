"""What a failed program said, in one line."""

import pytest

from weighbridge.model.command import Completed


@pytest.mark.parametrize(
    ("stderr", "stdout", "message"),
    [
        ("box: box failed: Operation not permitted\n", "", "box failed: Operation not permitted"),
        ("\x1b[31mno option --x\x1b[0m\nTry --help\n", "", "no option --x | Try --help"),
        ("box: first\nsecond\n\nthird\nfourth\nbox: last\n", "", "first | ... | fourth | last"),
        ("same\nsame\n", "", "same"),
        ("\n", "to the other stream\n", "to the other stream"),
        ("x" * 400, "", "x" * 300),
        ("", "", "it printed nothing"),
    ],
)
def test_a_message_has_its_first_line_and_its_end(stderr: str, stdout: str, message: str):
    completed = Completed(("box",), 1, stdout.encode(), stderr.encode(), 0.1)
    assert completed.message_of("box") == message
