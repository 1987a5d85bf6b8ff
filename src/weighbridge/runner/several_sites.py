"""A program that runs in several sites of an environment at a time: started in all, waited for, and added up."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from operator import mul
from typing import Any

from weighbridge.model.command import Command, Completed, Running
from weighbridge.model.measurement import Measurement, Metric, ProgramFailed
from weighbridge.model.site import Site
from weighbridge.model.trial import TrialResult, Work
from weighbridge.model.workload import Endpoint, Workload
from weighbridge.runner.evaluation import read_result

SLOWEST = Metric("slowest_site", "%", "higher")
"""The slowest site's share of what a site did on average, by the first metric: 100 % where all are alike."""
_MADE_S = 10.0


def place(role: str, number: int) -> str:
    """The name under which the program of a site is kept: the first one's is the role itself."""
    return role if number == 1 else f"{role} {number}"


def endpoints(at: Endpoint, sites: Sequence[Site], *, keeps: bool) -> list[Endpoint]:
    """Where each of several sites works: where one ``keeps`` data, in a folder of its own, which is made here.

    Raises ProgramFailed.
    """
    if len(sites) == 1 or not keeps:
        return [at] * len(sites)
    found = [replace(at, data=f"{at.data}/site-{number}") for number, _ in enumerate(sites, 1)]
    for site, its in zip(sites, found, strict=True):
        done = site.run(Command(("mkdir", "-p", its.data), _MADE_S))
        if done.returncode != 0:
            raise ProgramFailed(f"{site.name}: {its.data} cannot be made: {done.last_words}")
    return found


@dataclass(slots=True)
class Together:
    """Programs in several sites, waited for as one that has ended when all have. Implements ``Running``."""

    running: Sequence[Running]
    left: tuple[Completed, ...] = ()
    """What each of them left, once they are stopped."""

    def poll(self) -> int | None:
        """The first code that is not 0, once all have ended."""
        codes = [each.poll() for each in self.running]
        return None if None in codes else next((code for code in codes if code), 0)

    def wait(self, timeout_s: float) -> bool:
        """Wait for all of them."""
        until = time.monotonic() + timeout_s
        return all(each.wait(max(0.0, until - time.monotonic())) for each in self.running)

    def stop(self, *, timed_out: bool = False) -> Completed:
        """End all; gives what the one left that was longest at work."""
        if not self.left:
            self.left = tuple(each.stop(timed_out=timed_out) for each in self.running)
        return max(self.left, key=lambda each: each.duration_s)


def start_in_all(sites: Sequence[Site], commands: Sequence[Command]) -> Together:
    """Start a command in each site, one right after the other. What has started is ended where one cannot be."""
    begun: list[Running] = []
    try:
        for site, command in zip(sites, commands, strict=True):
            begun.append(site.start(command))
    except BaseException:
        Together(begun).stop()
        raise
    return Together(begun)


def read_all(workload: Workload, options: Any, role: str, completed: Mapping[str, Completed]) -> list[TrialResult]:
    """What the output of each site says, in their order. Raises TrialFailure."""
    found = []
    for number in range(1, len(completed) + 1):
        if (name := place(role, number)) in completed:
            found.append(read_result(workload, options, {role: completed[name]}))
    return found


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
    whole = Work(sum(work.amount for work in works), works[0].unit) if len(works) == len(results) else None
    longest = max((result.work_s for result in results if result.work_s is not None), default=None)
    flags = tuple(dict.fromkeys(flag for result in results for flag in result.flags))
    return TrialResult((*sums, *slowest), whole, longest, flags=flags)


def _sum(values: Sequence[float], metric: Metric, shares: Sequence[float]) -> float:
    return sum(values) if metric.unit == "count" else sum(map(mul, values, shares))


def per_site(results: Sequence[TrialResult]) -> list[tuple[str, str, float]]:
    """Each site's own result as samples: place, metric, value."""
    return [
        (f"site {number}", each.metric.name, each.value)
        for number, result in enumerate(results, 1)
        for each in result.measurements
    ]


def _value(result: TrialResult, metric: Metric) -> float:
    return next(each.value for each in result.measurements if each.metric == metric)
