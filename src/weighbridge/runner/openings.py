"""Opens fresh sites in a trial, times each until its first command returns, and closes them in reverse order.

The sites of a burst open at the same time, each in a thread of its own.
"""

import resource
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, ExitStack, suppress
from dataclasses import dataclass, field
from functools import partial
from itertools import pairwise

from weighbridge.errors import EnvironmentLost, Unavailable
from weighbridge.model.command import Command, Completed
from weighbridge.model.openings import Opened, Opening, Openings, StartTimes, are_slow
from weighbridge.model.site import Site
from weighbridge.runner.parallel import Openers
from weighbridge.runner.signals import shield

FLOOR_SHARE, FLOOR_BYTES = 0.1, 2**30
"""At least this share of the machine's memory, and this many bytes, must stay available."""
MANY_SITES = 20
"""The fixed number of sites from which on a trial begins with a start that does not count."""
Memory = Callable[[], Mapping[str, int]]
"""A function with the result of ``Site.memory``."""
SiteOpener = Callable[[], AbstractContextManager[Site]]
"""A function that prepares a site. The time of the site begins when its context is entered."""


@dataclass(slots=True)
class _Fresh:
    stack: ExitStack
    opening: Opening | None = None

    def close(self) -> None:
        started_at = time.monotonic()
        self.stack.close()
        if self.opening is not None:
            self.opening = self.opening.model_copy(update={"close_s": time.monotonic() - started_at})


@dataclass(frozen=True, slots=True)
class _Started:
    """A site that has answered, with the seconds since its burst began."""

    site: Site
    open_s: float
    ready_s: float


@dataclass(slots=True)
class _Trial:
    openings: Openings
    first: Command
    open_site: SiteOpener
    memory: Memory
    counted: bool
    """Whether the sites have control groups (``Site.counted``). The whole machine then needs some of that memory."""
    empty_caches: Callable[[], None]
    threads: Openers | None
    """The threads that open the sites of a burst. They last until the sites are closed."""
    sites: list[_Fresh] = field(default_factory=list)

    def opened(self, total: int | None, available: int | None, stopped: str) -> Opened:
        timings = tuple(each.opening for each in self.sites if each.opening is not None)
        return Opened.model_validate(
            {"total_bytes": total, "available_bytes": available, "openings": timings, "stopped": stopped}
        )

    def open_next(self, everything: ExitStack) -> None:
        """Open the next site, or the next burst."""
        fresh = [_Fresh(ExitStack()) for _ in range(self.openings.at_once)]
        prepared = [self.open_site() for _ in fresh]
        for each in fresh:
            everything.callback(each.close)
        self.sites += fresh
        if self.openings.cold:
            self.empty_caches()
        cpu_s, started_at = _own_cpu_s(), time.monotonic()
        tasks = [partial(self._start, each, site, started_at) for each, site in zip(fresh, prepared, strict=True)]
        started = [tasks[0]()] if self.threads is None else self.threads.run_all(tasks)
        own_cpu_s = (_own_cpu_s() - cpu_s) / len(started)
        time.sleep(self.openings.settle_s)
        for each, its in zip(fresh, started, strict=True):
            each.opening = self._record(its, own_cpu_s)

    def _start(self, fresh: _Fresh, prepared: AbstractContextManager[Site], started_at: float) -> _Started:
        site = fresh.stack.enter_context(prepared)
        open_s = time.monotonic() - started_at
        self._require_first(site)
        return _Started(site, open_s, time.monotonic() - started_at)

    def _require_first(self, site: Site) -> None:
        """Run the first command of a site. Raises Unavailable if it fails."""
        completed = site.run(self.first)
        if completed.returncode != 0:
            name = self.first.argv[0]
            ended = f"exited with code {completed.returncode}"
            raise Unavailable(f"its first command ({name}) {ended}: {completed.last_words}")

    def _record(self, started: _Started, own_cpu_s: float) -> Opening:
        charged = started.site.meters().get("memory_bytes") if self.counted else None
        return Opening(
            open_s=started.open_s,
            ready_s=started.ready_s,
            own_cpu_s=own_cpu_s,
            phases=started.site.opening_phases,
            group_bytes=None if charged is None else int(charged),
            available_bytes=_quietly(self.memory).get("available"),
        )

    def open_idle(self, stack: ExitStack, total: int | None) -> None:
        """Open the sites that are only there. Raises Unavailable if too little memory would stay."""
        for number in range(self.openings.running):
            available = _quietly(self.memory).get("available")
            if total is not None and available is not None and available < self._floor(total):
                raise Unavailable(f"only {number} idle sites fit into the memory: use a smaller number (running)")
            self._require_first(stack.enter_context(self.open_site()))

    def _floor(self, total: int) -> float:
        """Return the number of bytes that must stay available."""
        return max(FLOOR_SHARE * total, FLOOR_BYTES) if self.counted else 0

    def discard_first(self, everything: ExitStack, start_s: StartTimes) -> None:
        """Open and close a site that does not count, unless a start takes longer than the trial shall last.

        The first trial opens a second one, whose time it stores, because the first start after a pause is slower.
        It would also be the slowest one of many, so a large fixed number of sites has a start that does not count.
        """
        asked = self.openings
        key = asked, self.first.argv
        if asked.lasting_s and start_s.get(key, 0.0) <= asked.lasting_s:
            taken_s = self._discard(everything)
            if key not in start_s:
                start_s[key] = min(taken_s, self._discard(everything))
        elif not asked.lasting_s and asked.sites >= MANY_SITES and not asked.together:
            self._discard(everything)

    def _discard(self, everything: ExitStack) -> float:
        started_at = time.monotonic()
        self.open_next(everything)
        with shield():
            everything.close()
        self.sites.clear()
        return time.monotonic() - started_at

    def why_stop(self, total: int | None, available: int | None) -> str:
        """Return why no further site can be opened: ``memory``, ``slow``, or ""."""
        timings = [each.opening for each in self.sites if each.opening is not None]
        if self.openings.slow is not None and are_slow([each.ready_s for each in timings], self.openings.slow):
            return "slow"
        levels = [level for level in (available, *(each.available_bytes for each in timings)) if level is not None]
        if not self.openings.together or total is None or not levels:
            return ""
        largest = max((before - after for before, after in pairwise(levels)), default=0)
        return "memory" if levels[-1] - max(0, largest) < self._floor(total) else ""


def open_sites(
    openings: Openings,
    first: Command,
    open_site: SiteOpener,
    memory: Memory,
    start_s: StartTimes,
    *,
    counted: bool = True,
    empty_caches: Callable[[], None] = lambda: None,
) -> Completed:
    """Open fresh sites, run ``first`` in each, and close them.

    The result has the form of a program's output (`weighbridge.model.openings`). ``memory`` and ``counted`` come from
    a similar site. ``empty_caches`` is called before each cold site, or burst, and is not timed. Only interruptions,
    and the exceptions of ``empty_caches``, are raised.

    The number of sites must not depend on the times that the trial averages. If it did, trials with slow starts
    would have fewer of them, and their mean would be too large. So ``start_s`` sets the number for all trials of the
    session; the first trial writes it.
    """
    started_at, memory_before = time.monotonic(), _quietly(memory)
    total, available = memory_before.get("total"), memory_before.get("available")
    stopped, why = "", ""
    everything, around = ExitStack(), ExitStack()
    threads = None
    if openings.at_once > 1:
        threads = Openers(around.enter_context(ThreadPoolExecutor(openings.at_once, "opens")))
    trial = _Trial(openings, first, open_site, memory, counted, empty_caches, threads)
    try:
        try:
            trial.open_idle(around, total)
            trial.discard_first(everything, start_s)
            for _ in range(openings.number(start_s.get((openings, first.argv), 0.0))):
                if stopped := trial.why_stop(total, available):
                    break
                trial.open_next(everything)
                if not openings.together:
                    with shield():
                        everything.close()
        finally:
            with shield(), around:
                everything.close()
    except (EnvironmentLost, Unavailable, OSError) as failure:
        why = " ".join(str(failure).split()) or type(failure).__name__
    output = trial.opened(total, available, stopped).model_dump_json(indent=1)
    lasted_s = time.monotonic() - started_at
    return Completed(first.argv, 1 if why else 0, f"{output}\n".encode(), why.encode(), lasted_s)


def _own_cpu_s() -> float:
    """Return the CPU time of this process and of its finished children, more exactly than the ticks of times(2)."""
    ended = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + ended.ru_utime + ended.ru_stime


def _quietly(memory: Memory) -> Mapping[str, int]:
    """Return the machine's memory in bytes, by name; empty if it cannot be read."""
    with suppress(OSError, ValueError, EnvironmentLost, Unavailable):
        return memory()
    return {}
