"""Reads what the programs of a trial left: failures, results, and the sum over several sites."""

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
"""The slowest site's share of the average result of a site, for the first metric: 100% if all are the same."""
_NO_PROGRAM = re.compile(r"exec: (\S+): not found")
"""The message of a shell for a missing program."""
_NO_SPACE = b"No space left on device"


@contextmanager
def plugin_faults(workload: Workload, outcome: type[TrialFailure]) -> Iterator[None]:
    """Turn a plug-in's fault into a failed trial, and keep its output. Faults of the runner are not caught."""
    try:
        yield
    except (ArithmeticError, LookupError, TypeError, ValueError, AttributeError) as fault:
        raise outcome(f"{workload.kind} failed with {type(fault).__name__}: {fault}") from fault


def missing(completed: Completed) -> str:
    """Return a message if a program, or one that a shell starts, is not in the root filesystem; "" otherwise."""
    if completed.error == errno.ENOENT:
        return f"the program {completed.argv[0]} is not in the root filesystem: add it, or check its name"
    if completed.error:
        return f"the program {completed.argv[0]} cannot be started: {os.strerror(completed.error)}"
    output = (completed.stderr + b"\n" + completed.stdout).decode(errors="replace")
    absent = _NO_PROGRAM.search(output) if completed.returncode in (126, 127) else None
    return f"the program {absent[1]} is not in the root filesystem: add it, or check its name" if absent else ""


def found_memory_full(completed: Completed) -> bool:
    """Return whether a full /dev/shm stopped a program: SIGBUS, or "no space left" without another file."""
    if completed.returncode in (-signal.SIGBUS, 128 + signal.SIGBUS):
        return True
    lines = (completed.stderr + b"\n" + completed.stdout).splitlines() if completed.returncode else []
    return any(_NO_SPACE in line and (b"/dev/shm" in line or b"/" not in line) for line in lines)


def why_unmeasured_failed(completed: Completed) -> str:
    """Return why a program failed that is not the measured one."""
    why = "it timed out" if completed.timed_out else missing(completed) or completed.last_words
    return f"{ended_with(completed)}{why}"


def ended_with(completed: Completed) -> str:
    """Return the exit code of a program as the beginning of a message; "" if the exit code says nothing."""
    if completed.timed_out or completed.error:
        return ""
    return f"{completed.argv[0]} exited with code {completed.returncode}: "


def why_broke(failure: TrialFailure, server: Completed | None, *, killed: bool) -> str:
    """Return the message of a trial that failed because of its load, with {} for its own message; "" if it did not.

    The load is the cause of a missed deadline, and of a server that exited or exceeded its memory limit (``killed``:
    the kernel has killed a process for that in this trial). The load is not the cause if another process killed the
    server, its disk is full, or its output exceeds the limit.
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
    """Return the result that the plug-in reads from the outputs. Raises TrialFailure."""
    with plugin_faults(workload, Unparseable):
        result = workload.parse(options, completed)
        if not isinstance(result, TrialResult):
            raise TypeError(f"parse returned a {type(result).__name__} instead of a TrialResult")
    return result


def add_up(results: Sequence[TrialResult], seconds: Sequence[float] = ()) -> TrialResult:
    """Return the sum of the results of several sites, without times and shares, which cannot be added.

    ``seconds`` is how long each site worked, if an amount of work ended it and not a time limit. A site that ended
    early left the disk to the others. Its rate is therefore scaled by its share of the longest time, so that the sum
    is all work divided by the longest time.

    Latencies stay with each site (`per_site`), because percentiles cannot be added.
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
    """Return each site's own results as samples: place, metric, value."""
    return [
        (f"site {number}", each.metric.name, each.value)
        for number, result in enumerate(results, 1)
        for each in result.measurements
    ]
