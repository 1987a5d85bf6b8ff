"""sysbench mutex: how long threads take that lock mutexes a fixed number of times."""

from collections.abc import Mapping
from typing import Annotated

from pydantic import Field

from weighbridge.model.command import Command, Completed
from weighbridge.model.measurement import Measurement, Metric, Unparseable
from weighbridge.model.options import Options
from weighbridge.model.study import Role
from weighbridge.model.trial import TrialResult
from weighbridge.model.workload import Endpoint, Workload
from weighbridge.workloads import _sysbench

TIME = Metric("time", "s", "lower")
_LOCK_S, _LOOP_S = 2e-7, 1e-9
"""What one lock, and one turn of the loop before it, take about."""


class SysbenchMutexOptions(Options):
    """Options of a sysbench mutex workload. It has no duration: the work is fixed."""

    threads: Annotated[int, Field(ge=1, le=1024, description="Worker threads")] = 4
    mutexes: Annotated[int, Field(ge=1, le=10**6, description="Mutexes; each lock uses a random one")] = 4096
    locks: Annotated[int, Field(ge=1, le=10**8, description="Locks that each thread takes")] = 1_000_000
    loops: Annotated[int, Field(ge=1, le=10**8, description="Iterations of an empty loop before each lock")] = 100


class SysbenchMutex(Workload):
    """Locks that are mostly free, in user space: a control, as `sysbench-cpu` is one. CPU-bound.

    With few mutexes threads wait for each other, in futexes. The defaults take more locks and fewer turns
    of the loop than sysbench's own (50,000 and 10,000), with which nearly all of the time is the loop's.
    """

    kind = "sysbench-mutex"
    summary = "threads that take a fixed number of locks: mutexes, mostly in user space"
    options = SysbenchMutexOptions
    packages = ("sysbench",)

    def metrics(self, options: SysbenchMutexOptions) -> tuple[Metric, ...]:
        """``time``: seconds until all threads have taken their locks."""
        return (TIME,)

    def command(self, role: Role, options: SysbenchMutexOptions, at: Endpoint) -> Command:
        """The one process, which the number of locks ends and its time does not; ``at`` is not used."""
        own = (
            f"--mutex-num={options.mutexes}",
            f"--mutex-locks={options.locks}",
            f"--mutex-loops={options.loops}",
        )
        return _sysbench.command("mutex", options.threads, max(60.0, 20 * self.expected_s(options)), *own)

    def expected_s(self, options: SysbenchMutexOptions) -> float:
        """Seconds, with the threads of two CPUs."""
        return 0.1 + options.threads / min(options.threads, 2) * options.locks * (_LOCK_S + options.loops * _LOOP_S)

    def parse(self, options: SysbenchMutexOptions, completed: Mapping[str, Completed]) -> TrialResult:
        """The total time, which is printed to 0.1 ms. Raises ProgramFailed or Unparseable.

        Each thread's locks are one event: fewer events are less than all of the work.
        """
        total_s, events = _sysbench.totals(_sysbench.report(completed["solo"]))
        if events != options.threads:
            raise Unparseable(f"sysbench finished {events} of {options.threads} threads")
        return TrialResult((Measurement(TIME, total_s),))

    def generator_threads(self, options: SysbenchMutexOptions) -> int:
        """As many as it is told."""
        return options.threads


PLUGIN = SysbenchMutex()
