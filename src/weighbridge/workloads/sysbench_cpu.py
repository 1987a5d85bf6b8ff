"""sysbench cpu: how often per second all primes up to a limit are found by division."""

from collections.abc import Mapping
from typing import Annotated

from pydantic import Field

from weighbridge.model.command import Command, Completed
from weighbridge.model.measurement import Measurement, Metric
from weighbridge.model.options import Options
from weighbridge.model.study import Role
from weighbridge.model.trial import TrialResult
from weighbridge.model.workload import Endpoint, Length, Workload
from weighbridge.workloads import _sysbench
from weighbridge.workloads._seconds import WholeSeconds

EVENTS = Metric("events", "1/s", "higher")
_SHORTEST_S = 0.1
"""The shortest trial: the start of its threads lowers its rate by 1%. At 0.02 s it is 9%."""


class SysbenchCpuOptions(Options):
    """Options of a sysbench cpu workload. ``duration`` is in seconds."""

    threads: Annotated[int, Field(ge=1, le=1024, description="Worker threads")] = 1
    duration: Annotated[WholeSeconds, Field(ge=1, le=86400, description="Measured time, in whole seconds")] = 10.0
    count: Annotated[
        int | None, Field(ge=1, le=10**9, description="Events to make on all threads, in about the duration")
    ] = None
    prime_limit: Annotated[int, Field(ge=3, le=10**6, description="Each event finds all primes up to this")] = 10_000


class SysbenchCpu(Workload):
    """Integer arithmetic in the CPU's registers. Events with different prime limits are not comparable.

    Its latencies are not measured. The mean is threads / events per second, and the percentiles are single numbers
    from sysbench's logarithmic buckets, 1.8% wide, which cannot be merged.
    """

    kind = "sysbench-cpu"
    summary = "prime numbers by division: CPU speed without memory or system calls"
    options = SysbenchCpuOptions
    packages = ("sysbench",)

    def metrics(self, options: SysbenchCpuOptions) -> tuple[Metric, ...]:
        """Return ``events`` per second of all threads together."""
        return (EVENTS,)

    def command(self, role: Role, options: SysbenchCpuOptions, at: Endpoint) -> Command:
        prime = f"--cpu-max-prime={options.prime_limit}"
        return _sysbench.command("cpu", options.threads, options.duration, prime, events=options.count)

    def length(self, options: SysbenchCpuOptions) -> Length:
        """Return events, at least one for each thread."""
        return Length(_SHORTEST_S, "count", lambda measured: measured[EVENTS.name], options.threads)

    def parse(self, options: SysbenchCpuOptions, completed: Mapping[str, Completed]) -> TrialResult:
        """Read the events per second as printed, with two decimals. Raises ProgramFailed or Unparseable."""
        text = _sysbench.report(completed["solo"])
        pattern = rf"\n +events per second: +{_sysbench.NUMBER}\n"
        rate = Measurement(EVENTS, _sysbench.figure(text, pattern, "events per second"))
        return TrialResult((rate,), work_s=_sysbench.totals(text)[0] if options.count is not None else None)


PLUGIN = SysbenchCpu()
