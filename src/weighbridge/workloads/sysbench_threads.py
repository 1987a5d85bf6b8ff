"""sysbench threads: how fast threads hand a few mutexes to one another, giving up the CPU in between."""

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
    """The scheduler and futexes. Events of different ``yields`` do not compare.

    Threads in excess of the CPUs (and of the CPU limit) are what makes it hard; with one thread it counts yields.
    """

    kind = "sysbench-threads"
    summary = "threads that yield while they hold mutexes: the scheduler and futexes"
    options = SysbenchThreadsOptions
    packages = ("sysbench",)

    def metrics(self, options: SysbenchThreadsOptions) -> tuple[Metric, ...]:
        """``events``: events per second of all threads together."""
        return (EVENTS,)

    def command(self, role: Role, options: SysbenchThreadsOptions, at: Endpoint) -> Command:
        """The one process; ``at`` is not used."""
        own = (f"--thread-yields={options.yields}", f"--thread-locks={options.locks}")
        return _sysbench.command("threads", options.threads, options.duration, *own)

    def expected_s(self, options: SysbenchThreadsOptions) -> float:
        """Seconds."""
        return options.duration + 0.1

    def length(self, options: SysbenchThreadsOptions) -> Length:
        """By its time."""
        return by_seconds(1, EVENTS.name)

    def parse(self, options: SysbenchThreadsOptions, completed: Mapping[str, Completed]) -> TrialResult:
        """Events over the total time, which is printed to 0.1 ms. Raises ProgramFailed or Unparseable."""
        total_s, events = _sysbench.totals(_sysbench.report(completed["solo"]))
        return TrialResult((Measurement(EVENTS, events / total_s),))

    def generator_threads(self, options: SysbenchThreadsOptions) -> int:
        """As many as it is told."""
        return options.threads


PLUGIN = SysbenchThreads()
