"""sysbench threads: the speed at which threads pass a few mutexes to one another, and yield the CPU in between."""

from collections.abc import Mapping
from typing import Annotated

from pydantic import Field

from weighbridge.model.command import Command, Completed
from weighbridge.model.measurement import Measurement, Metric
from weighbridge.model.options import Options
from weighbridge.model.study import Role
from weighbridge.model.trial import TrialResult
from weighbridge.model.workload import Endpoint, Length, Workload, by_seconds
from weighbridge.workloads import _sysbench
from weighbridge.workloads._seconds import WholeSeconds

EVENTS = Metric("events", "1/s", "higher")


class SysbenchThreadsOptions(Options):
    """Options of a sysbench threads workload. ``duration`` is in seconds."""

    threads: Annotated[int, Field(ge=1, le=1024, description="Worker threads")] = 4
    duration: Annotated[WholeSeconds, Field(ge=1, le=86400, description="Measured time, in whole seconds")] = 10.0
    yields: Annotated[int, Field(ge=1, le=10**6, description="Rounds of lock, yield and unlock per event")] = 1000
    locks: Annotated[int, Field(ge=1, le=1024, description="Mutexes that the threads take in turn")] = 8


class SysbenchThreads(Workload):
    """The scheduler and futexes. Events with different ``yields`` are not comparable.

    More threads than CPUs (or than the CPU limit) make it hard. With one thread it counts yields.
    """

    kind = "sysbench-threads"
    summary = "threads that yield while they hold mutexes: the scheduler and futexes"
    options = SysbenchThreadsOptions
    packages = ("sysbench",)

    def metrics(self, options: SysbenchThreadsOptions) -> tuple[Metric, ...]:
        """Return ``events`` per second of all threads together."""
        return (EVENTS,)

    def command(self, role: Role, options: SysbenchThreadsOptions, at: Endpoint) -> Command:
        own = (f"--thread-yields={options.yields}", f"--thread-locks={options.locks}")
        return _sysbench.command("threads", options.threads, options.duration, *own)

    def length(self, options: SysbenchThreadsOptions) -> Length:
        return by_seconds(1, EVENTS.name)

    def parse(self, options: SysbenchThreadsOptions, completed: Mapping[str, Completed]) -> TrialResult:
        """Divide the events by the total time, which is printed to 0.1 ms. Raises ProgramFailed or Unparseable."""
        total_s, events = _sysbench.totals(_sysbench.report(completed["solo"]))
        return TrialResult((Measurement(EVENTS, events / total_s),))


PLUGIN = SysbenchThreads()
