"""What our own C programs print: one line for each figure, always the same lines in the same order."""

import re
from collections.abc import Sequence

from weighbridge.model.command import Completed
from weighbridge.model.measurement import ProgramFailed, Unparseable

WHOLE = r"([1-9][0-9]{0,17})"
"""A number from 1 on: none of what is counted or clocked can be zero."""


def figures(completed: Completed, lines: Sequence[str]) -> list[tuple[int, ...]]:
    """The whole numbers that each line captures; ``lines`` are patterns of all that is printed.

    Raises ProgramFailed with the program's own words, Unparseable where a line is missing, cut, or another one.
    """
    program = completed.argv[0]
    if completed.returncode != 0:
        raise ProgramFailed(f"{program} exited with code {completed.returncode}: {completed.last_words}")
    *printed, after = completed.text.split("\n")
    matches = [re.fullmatch(pattern, line) for pattern, line in zip(lines, printed, strict=False)]
    full_matches = [match for match in matches if match is not None]
    if after or len(printed) != len(lines) or len(full_matches) != len(lines):
        raise Unparseable(f"{program} did not print its {len(lines)} lines: {completed.last_words}")
    return [tuple(int(number) for number in match.groups()) for match in full_matches]
