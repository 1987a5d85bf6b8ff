"""Reads the output of our own C programs: one line for each figure, always the same lines in the same order."""

import re
from collections.abc import Sequence

from weighbridge.model.command import Completed
from weighbridge.model.measurement import Unparseable, require_success

POSITIVE = r"([1-9][0-9]{0,17})"
"""The pattern of a number from 1 on. Nothing that these programs count or time can be zero."""


def figures(completed: Completed, lines: Sequence[str]) -> list[tuple[int, ...]]:
    """Return the whole numbers that each line captures. ``lines`` are patterns of the complete output.

    Raises ProgramFailed with the program's own words, or Unparseable if a line is missing, truncated or different.
    """
    program = completed.argv[0]
    *printed, after = require_success(completed).text.split("\n")
    matches = [re.fullmatch(pattern, line) for pattern, line in zip(lines, printed, strict=False)]
    full_matches = [match for match in matches if match is not None]
    if after or len(printed) != len(lines) or len(full_matches) != len(lines):
        raise Unparseable(f"{program} did not print its {len(lines)} lines: {completed.last_words}")
    return [tuple(int(number) for number in match.groups()) for match in full_matches]
