"""What the programs of a trial left: how they failed, what their outputs say, and of several sites the sum."""

import errno
import os
import re
import signal
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from operator import mul
from typing import Any

from weighbridge.model.command import Completed
from weighbridge.model.measurement import Measurement, Metric, Outcome, ServerDied, TrialFailure, Unparseable
from weighbridge.model.trial import TrialResult, Work
from weighbridge.model.workload import Workload

SLOWEST = Metric("slowest_site", "%", "higher")
"""The slowest site's share of what a site did on average, by the first metric: 100 % where all are alike."""
_NO_PROGRAM = re.compile(r"exec: (\S+): not found")
"""How a shell says it."""
_NO_SPACE = b"No space left on device"


@contextmanager
def plugin_faults(workload: Workload, outcome: type[TrialFailure]) -> Iterator[None]:
    """Turn a fault of a plug-in into a failed trial, whose output is kept. One of the runner's own is not caught."""
    try:
        yield
    except (ArithmeticError, LookupError, TypeError, ValueError, AttributeError) as fault:
        raise outcome(f"{workload.kind} failed with {type(fault).__name__}: {fault}") from fault


def missing(completed: Completed) -> str:
    """Name the program that the userland does not have; empty where it ran.

    Where a shell was to start it, the shell says so with code 126 or 127.
    """
    if completed.error == errno.ENOENT:
        return f"the program {completed.argv[0]} is not in the root filesystem: add it, or check its name"
    if completed.error:
        return f"the program {completed.argv[0]} cannot be started: {os.strerror(completed.error)}"
    output = (completed.stderr + b"\n" + completed.stdout).decode(errors="replace")
    absent = _NO_PROGRAM.search(output) if completed.returncode in (126, 127) else None
    return f"the program {absent[1]} is not in the root filesystem: add it, or check its name" if absent else ""


def found_memory_full(completed: Completed) -> bool:
    """Whether a program ended as one does that finds /dev/shm full: by SIGBUS, or telling of no space there.

    A line that names another file is about the file system of that one.
    """
    if completed.returncode in (-signal.SIGBUS, 128 + signal.SIGBUS):
        return True
    lines = (completed.stderr + b"\n" + completed.stdout).splitlines() if completed.returncode else []
    return any(_NO_SPACE in line and (b"/dev/shm" in line or b"/" not in line) for line in lines)


def failure_beside(completed: Completed) -> str:
    """Tell why a program failed that was run beside the measured one."""
    why = "it timed out" if completed.timed_out else missing(completed) or completed.last_words
    return f"{ended_with(completed)}{why}"


def ended_with(completed: Completed) -> str:
    """Tell with which code a program ended, where that says something of its own; with a colon behind it."""
    if completed.timed_out or completed.error:
        return ""
    return f"{completed.argv[0]} exited with code {completed.returncode}: "


def why_broke(failure: TrialFailure, server: Completed | None, *, killed: bool) -> str:
    """The message of a trial that failed because of its load, with {} for its own message; empty where it did not.

    The load is the cause of a missed deadline, and of a server that ended by itself or for its memory limit
    (``killed``: the kernel has killed for it in this trial). It is not where somebody killed the server, its disk is
    full, or it printed more than is kept.
    """
    if server is not None and server.too_much:
        return ""
    if failure.outcome is Outcome.DEADLINE:
        return "{}"
    if not isinstance(failure, ServerDied):
        return ""
    if killed:
        return "the server exceeded its memory limit: {}"
    if failure.killed or server is None:
        return "" if failure.killed else "{}"
    signalled = server.returncode in (-signal.SIGKILL, 128 + signal.SIGKILL)
    return "" if signalled or _NO_SPACE in server.stdout + server.stderr else "{}"


def read_result(workload: Workload, options: Any, completed: Mapping[str, Completed]) -> TrialResult:
    """What the outputs say, as the plug-in reads them. Raises TrialFailure."""
    with plugin_faults(workload, Unparseable):
        result = workload.parse(options, completed)
        if not isinstance(result, TrialResult):
            raise TypeError(f"parse returned a {type(result).__name__} instead of a TrialResult")
    return result


def add_up(results: Sequence[TrialResult], seconds: Sequence[float] = ()) -> TrialResult:
    """The sum of what several sites did; of times and shares, which have none, nothing.

    ``seconds``: how long each worked, where an amount of work ended it and not a time. One that ended early has left
    the disk to the others: its rate counts for its share of the longest time, and the sum is all work over that.

    Their latencies stay with each site (`per_site`): a percentile of several is not to be had from theirs.
    """
    first = results[0]
    shares = [each / max(seconds) for each in seconds] if seconds and max(seconds) > 0 else [1.0] * len(results)
    sums = [
        Measurement(each.metric, _sum([_value(result, each.metric) for result in results], each.metric, shares))
        for each in first.measurements
        if each.metric.adds_up
    ]
    headline = [_value(result, sums[0].metric) for result in results] if sums else []
    slowest = [Measurement(SLOWEST, 100 * min(headline) * len(headline) / sum(headline))] if any(headline) else []
    works = [result.work for result in results if result.work is not None]
    total_work = Work(sum(work.amount for work in works), works[0].unit) if len(works) == len(results) else None
    longest = max((result.work_s for result in results if result.work_s is not None), default=None)
    flags = tuple(dict.fromkeys(flag for result in results for flag in result.flags))
    return TrialResult((*sums, *slowest), total_work, longest, flags=flags)


def _sum(values: Sequence[float], metric: Metric, shares: Sequence[float]) -> float:
    return sum(values) if metric.unit == "count" else sum(map(mul, values, shares))


def _value(result: TrialResult, metric: Metric) -> float:
    return next(each.value for each in result.measurements if each.metric == metric)


def per_site(results: Sequence[TrialResult]) -> list[tuple[str, str, float]]:
    """Each site's own result as samples: place, metric, value."""
    return [
        (f"site {number}", each.metric.name, each.value)
        for number, result in enumerate(results, 1)
        for each in result.measurements
    ]
