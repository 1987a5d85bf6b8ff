"""What every test of sysbench 1.0 shares: its command line, its errors and the shape of its report."""

import re

from weighbridge.model.command import Command, Completed
from weighbridge.model.measurement import ProgramFailed, Unparseable

NUMBER = r"([0-9]{1,15}\.[0-9]+)"
"""How sysbench prints a figure. A report that was cut inside one lacks what a pattern wants after it."""

_FATAL = re.compile(r"^FATAL: *(.+)$", re.MULTILINE)
_LAST_LINE = re.compile(r"^ +execution time \(avg/stddev\): ", re.MULTILINE)


def command(
    test: str, threads: int, duration: float, *arguments: str, events: int | None = None, timed: bool = True
) -> Command:
    """One run of ``test`` that ``duration`` (seconds) ends, or so many ``events`` of all threads.

    Not ``timed``: what its ``arguments`` say ends it, of which events are no part.

    The deadline leaves time for the last event, which sysbench finishes and which an emulated CPU makes long.
    """
    time = f"--time={duration if timed and events is None else 0:.0f}"
    until = time, f"--events={events or 0}"
    argv = ("sysbench", test, f"--threads={threads}", *until, *arguments, "run")
    return Command(argv, deadline_s=2 * duration + 60)


def fatal(completed: Completed) -> list[str]:
    """The errors for which sysbench gave up, in its own words, in order."""
    return [match[1].strip() for match in _FATAL.finditer(completed.text)]


def report(completed: Completed) -> str:
    """The whole report. Raises ProgramFailed with sysbench's own words, Unparseable where the end is missing.

    sysbench writes its fatal errors to standard output, below the banner.
    """
    if errors := fatal(completed):
        raise ProgramFailed(f"sysbench: {errors[0][:300]}")
    if completed.returncode != 0:
        raise ProgramFailed(f"sysbench exited with code {completed.returncode}: {completed.last_words}")
    if _LAST_LINE.search(completed.text) is None:
        raise Unparseable(f"sysbench's report is incomplete; it ends with: {completed.last_words}")
    return completed.text


def figure(text: str, pattern: str, what: str) -> float:
    """The number that ``pattern`` captures in a report; Unparseable, naming ``what``, where it is not there."""
    match = re.search(pattern, text)
    if match is None:
        raise Unparseable(f"sysbench's report has no {what}")
    return float(match[1])


def totals(text: str) -> tuple[float, int]:
    """The total time in seconds, which is not zero, and the number of events of a report. Raises Unparseable."""
    total_s = figure(text, rf"\n +total time: +{NUMBER}s\n", "total time")
    events = re.search(r"\n +total number of events: +([0-9]{1,15})\n", text)
    if events is None or total_s == 0:
        raise Unparseable("sysbench did not report its number of events or its time")
    return total_s, int(events[1])
