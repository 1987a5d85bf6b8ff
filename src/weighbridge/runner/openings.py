"""Opens fresh sites in a trial, and times each until its first command has been answered, and its closing.

Closed in reverse, whatever happens, Ctrl-C too; one that cannot be opened is the trial's failure, not the run's.
"""

import resource
import time
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, ExitStack, suppress
from dataclasses import dataclass, field
from itertools import pairwise

from weighbridge.errors import EnvironmentLost, Unavailable
from weighbridge.model.command import Command, Completed
from weighbridge.model.openings import Opened, Opening, Openings, are_slow
from weighbridge.model.site import Site
from weighbridge.runner.signals import shield

FLOOR_SHARE, FLOOR_BYTES = 0.1, 2**30
"""Of the machine's memory at least so much, and at least so many bytes, stay available."""
Memory = Callable[[], Mapping[str, int]]
"""As ``Site.memory``."""
SiteOpener = Callable[[], AbstractContextManager[Site]]


@dataclass(slots=True)
class _Fresh:
    """One site that is open, or was."""

    stack: ExitStack
    opening: Opening | None = None

    def close(self) -> None:
        started_at = time.monotonic()
        self.stack.close()
        if self.opening is not None:
            self.opening = self.opening.model_copy(update={"close_s": time.monotonic() - started_at})


@dataclass(slots=True)
class _Trial:
    """The fresh sites of one trial."""

    openings: Openings
    first: Command
    open_site: SiteOpener
    memory: Memory
    counted: bool
    """As ``Site.counted``: then all that the machine does needs of that memory, too, and the sites have groups."""
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

    def why_stop(self, total: int | None, available: int | None) -> str:
        """Why no further site may be opened: ``memory``, ``slow``; empty where one may."""
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
    openings: Openings, first: Command, open_site: SiteOpener, memory: Memory, *, counted: bool = True
) -> Completed:
    """Open as many fresh sites as are asked for, each until ``first`` has run in it, and close them.

    Gives what was found as a program's output (`weighbridge.model.openings`); ``memory`` and ``counted`` are those of
    a site like them. Nothing is raised but an interruption.
    """
    started_at, memory_before = time.monotonic(), _quietly(memory)
    total, available = memory_before.get("total"), memory_before.get("available")
    trial, stopped, why = _Trial(openings, first, open_site, memory, counted), "", ""
    everything = ExitStack()
    try:
        try:
            while len(trial.sites) < openings.sites and not (stopped := trial.why_stop(total, available)):
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
    """CPU time of this process, and of those that it started and that have ended; those of times(2) are in ticks."""
    ended = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + ended.ru_utime + ended.ru_stime


def _quietly(memory: Memory) -> Mapping[str, int]:
    """The machine's memory in bytes, by name; empty where it cannot be read."""
    with suppress(OSError, ValueError, EnvironmentLost, Unavailable):
        return memory()
    return {}
