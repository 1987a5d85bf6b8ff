"""The command line, the errors and the report that all tests of sysbench 1.0 share."""

import re

from weighbridge.model.command import Command, Completed
from weighbridge.model.measurement import ProgramFailed, Unparseable, require_success

NUMBER = r"([0-9]{1,15}\.[0-9]+)"
"""The pattern of a figure. Patterns include the text that follows it, so that a truncated figure does not match."""

_FATAL = re.compile(r"^FATAL: *(.+)$", re.MULTILINE)
_LAST_LINE = re.compile(r"^ +execution time \(avg/stddev\): ", re.MULTILINE)


def command(
    test: str, threads: int, duration: float, *arguments: str, events: int | None = None, timed: bool = True
) -> Command:
    """Return one run of ``test``, which ends after ``duration`` seconds or after ``events`` of all threads.

    Without ``timed`` the ``arguments`` end it. The deadline leaves time for the last event, which sysbench always
    finishes, and which takes long on an emulated CPU.
    """
    time = f"--time={duration if timed and events is None else 0:.0f}"
    until = time, f"--events={events or 0}"
    argv = ("sysbench", test, f"--threads={threads}", *until, *arguments, "run")
    return Command(argv, deadline_s=2 * duration + 60)


def fatal(completed: Completed) -> list[str]:
    """Return the fatal errors in sysbench's own words, in order."""
    return [match[1].strip() for match in _FATAL.finditer(completed.text)]


def report(completed: Completed) -> str:
    """Return the complete report. Raises ProgramFailed with sysbench's own words, Unparseable if its end is missing.

    sysbench writes its fatal errors to standard output, below the banner.
    """
    if errors := fatal(completed):
        raise ProgramFailed(f"sysbench: {errors[0][:300]}")
    require_success(completed, "sysbench")
    if _LAST_LINE.search(completed.text) is None:
        raise Unparseable(f"sysbench's report is incomplete; it ends with: {completed.last_words}")
    return completed.text


def figure(text: str, pattern: str, what: str) -> float:
    """Return the number that ``pattern`` captures in a report. Raises Unparseable with the name ``what``."""
    match = re.search(pattern, text)
    if match is None:
        raise Unparseable(f"sysbench's report has no {what}")
    return float(match[1])


def totals(text: str) -> tuple[float, int]:
    """Return the total time in seconds, which is not zero, and the number of events. Raises Unparseable."""
    total_s = figure(text, rf"\n +total time: +{NUMBER}s\n", "total time")
    events = re.search(r"\n +total number of events: +([0-9]{1,15})\n", text)
    if events is None or total_s == 0:
        raise Unparseable("sysbench did not report its number of events or its time")
    return total_s, int(events[1])
