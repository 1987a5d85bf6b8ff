"""Opens fresh sites in a trial, times each until its first command returns, and closes them in reverse order."""

import resource
import time
from collections.abc import Callable, Mapping, MutableMapping
from contextlib import AbstractContextManager, ExitStack, suppress
from dataclasses import dataclass, field
from itertools import pairwise

from weighbridge.errors import EnvironmentLost, Unavailable
from weighbridge.model.command import Command, Completed
from weighbridge.model.openings import Opened, Opening, Openings, are_slow
from weighbridge.model.site import Site
from weighbridge.runner.signals import shield

FLOOR_SHARE, FLOOR_BYTES = 0.1, 2**30
"""At least this share of the machine's memory, and this many bytes, must stay available."""
Memory = Callable[[], Mapping[str, int]]
"""A function with the result of ``Site.memory``."""
SiteOpener = Callable[[], AbstractContextManager[Site]]
StartTimes = MutableMapping[tuple[str, ...], float]
"""The seconds to start and close a site that did not count, by the first command."""


@dataclass(slots=True)
class _Fresh:
    stack: ExitStack
    opening: Opening | None = None

    def close(self) -> None:
        started_at = time.monotonic()
        self.stack.close()
        if self.opening is not None:
            self.opening = self.opening.model_copy(update={"close_s": time.monotonic() - started_at})


@dataclass(slots=True)
class _Trial:
    openings: Openings
    first: Command
    open_site: SiteOpener
    memory: Memory
    counted: bool
    """Whether the sites have control groups (``Site.counted``). The whole machine then needs some of that memory."""
    sites: list[_Fresh] = field(default_factory=list)

    def opened(self, total: int | None, available: int | None, stopped: str) -> Opened:
        timings = tuple(each.opening for each in self.sites if each.opening is not None)
        return Opened.model_validate(
            {"total_bytes": total, "available_bytes": available, "openings": timings, "stopped": stopped}
        )

    def open_next(self, everything: ExitStack) -> None:
        fresh = _Fresh(ExitStack())
        everything.callback(fresh.close)
        self.sites.append(fresh)
        cpu_s, started_at = _own_cpu_s(), time.monotonic()
        site = fresh.stack.enter_context(self.open_site())
        open_s = time.monotonic() - started_at
        completed = site.run(self.first)
        ready_s, own_cpu_s = time.monotonic() - started_at, _own_cpu_s() - cpu_s
        if completed.returncode != 0:
            name = self.first.argv[0]
            ended = f"exited with code {completed.returncode}"
            raise Unavailable(f"its first command ({name}) {ended}: {completed.last_words}")
        time.sleep(self.openings.settle_s)
        charged = site.meters().get("memory_bytes") if self.counted else None
        fresh.opening = Opening(
            open_s=open_s,
            ready_s=ready_s,
            own_cpu_s=own_cpu_s,
            group_bytes=None if charged is None else int(charged),
            available_bytes=_quietly(self.memory).get("available"),
        )

    def discard_first(self, everything: ExitStack, start_s: StartTimes) -> None:
        """Open and close a site that does not count, unless a start takes longer than the trial shall last.

        The first trial opens a second one, whose time it stores, because the first start after a pause is slower.
        """
        asked, command = self.openings, self.first.argv
        if asked.lasting_s and start_s.get(command, 0.0) <= asked.lasting_s:
            taken_s = self._discard(everything)
            if command not in start_s:
                start_s[command] = min(taken_s, self._discard(everything))

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
        floor = max(FLOOR_SHARE * total, FLOOR_BYTES) if self.counted else 0
        return "memory" if levels[-1] - max(0, largest) < floor else ""


def open_sites(
    openings: Openings,
    first: Command,
    open_site: SiteOpener,
    memory: Memory,
    start_s: StartTimes,
    *,
    counted: bool = True,
) -> Completed:
    """Open fresh sites, run ``first`` in each, and close them.

    The result has the form of a program's output (`weighbridge.model.openings`). ``memory`` and ``counted`` come from
    a similar site. Only interruptions are raised.

    The number of sites must not depend on the times that the trial averages. If it did, trials with slow starts
    would have fewer of them, and their mean would be too large. So ``start_s`` sets the number for all trials of the
    session; the first trial writes it.
    """
    started_at, memory_before = time.monotonic(), _quietly(memory)
    total, available = memory_before.get("total"), memory_before.get("available")
    trial, stopped, why = _Trial(openings, first, open_site, memory, counted), "", ""
    everything = ExitStack()
    try:
        try:
            trial.discard_first(everything, start_s)
            for _ in range(openings.number(start_s.get(first.argv, 0.0))):
                if stopped := trial.why_stop(total, available):
                    break
                trial.open_next(everything)
                if not openings.together:
                    with shield():
                        everything.close()
        finally:
            with shield():
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
