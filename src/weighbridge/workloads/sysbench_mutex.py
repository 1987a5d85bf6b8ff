"""sysbench mutex: the time of threads that lock mutexes a fixed number of times."""

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
"""The approximate times of one lock, and of one iteration of the loop before it."""


class SysbenchMutexOptions(Options):
    """Options of a sysbench mutex workload. It has no duration: the work is fixed."""

    threads: Annotated[int, Field(ge=1, le=1024, description="Worker threads")] = 4
    mutexes: Annotated[int, Field(ge=1, le=10**6, description="Mutexes; each lock uses a random one")] = 4096
    locks: Annotated[int, Field(ge=1, le=10**8, description="Locks that each thread takes")] = 1_000_000
    loops: Annotated[int, Field(ge=1, le=10**8, description="Iterations of an empty loop before each lock")] = 100


class SysbenchMutex(Workload):
    """Locks that are mostly free, in user space: a CPU-bound control, like `sysbench-cpu`.

    With few mutexes, threads wait for each other in futexes. The defaults have more locks and fewer iterations than
    sysbench's own (50,000 and 10,000), which spend nearly all of their time in the loop.
    """

    kind = "sysbench-mutex"
    summary = "threads that take a fixed number of locks: mutexes, mostly in user space"
    options = SysbenchMutexOptions
    packages = ("sysbench",)

    def metrics(self, options: SysbenchMutexOptions) -> tuple[Metric, ...]:
        """Return ``time``: seconds until all threads have taken their locks."""
        return (TIME,)

    def command(self, role: Role, options: SysbenchMutexOptions, at: Endpoint) -> Command:
        """Run until the number of locks ends it, not its time."""
        own = (
            f"--mutex-num={options.mutexes}",
            f"--mutex-locks={options.locks}",
            f"--mutex-loops={options.loops}",
        )
        return _sysbench.command("mutex", options.threads, max(60.0, 20 * self.expected_s(options)), *own)

    def expected_s(self, options: SysbenchMutexOptions) -> float:
        """Assume two CPUs."""
        return 0.1 + options.threads / min(options.threads, 2) * options.locks * (_LOCK_S + options.loops * _LOOP_S)

    def parse(self, options: SysbenchMutexOptions, completed: Mapping[str, Completed]) -> TrialResult:
        """Read the total time, which is printed to 0.1 ms. Raises ProgramFailed or Unparseable.

        The locks of a thread are one event, so fewer events than threads are not all of the work.
        """
        total_s, events = _sysbench.totals(_sysbench.report(completed["solo"]))
        if events != options.threads:
            raise Unparseable(f"sysbench finished {events} of {options.threads} threads")
        return TrialResult((Measurement(TIME, total_s),))


PLUGIN = SysbenchMutex()
