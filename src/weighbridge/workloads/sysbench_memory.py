"""sysbench memory: the speed at which threads repeatedly read or write a block of memory."""

from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from weighbridge.model.command import Command, Completed
from weighbridge.model.measurement import Measurement, Metric
from weighbridge.model.options import Options
from weighbridge.model.quantity import Size
from weighbridge.model.study import Role
from weighbridge.model.trial import TrialResult
from weighbridge.model.workload import Endpoint, Length, Workload
from weighbridge.workloads import _sysbench
from weighbridge.workloads._seconds import WholeSeconds

BANDWIDTH = Metric("bandwidth", "MiB/s", "higher")

_SHORTEST_S = 0.1
"""The shortest trial: the start of its threads changes less than trials differ. At 0.03 s it is 10%."""
_NO_END = "1048576T"
"""A total size (2^60 bytes) that no run reaches, so that the duration ends every run."""


def _power_of_two(size: int) -> int:
    if size & (size - 1):
        raise ValueError(f"{size} bytes is not a power of two, which sysbench needs")
    return size


BlockSize = Annotated[Size, AfterValidator(_power_of_two), Field(ge=8, le=2**30)]
"""A number of bytes that is a power of two."""


class SysbenchMemoryOptions(Options):
    """Options of a sysbench memory workload. ``duration`` is in seconds, sizes in bytes."""

    threads: Annotated[int, Field(ge=1, le=1024, description="Worker threads")] = 1
    duration: Annotated[WholeSeconds, Field(ge=1, le=86400, description="Measured time, in whole seconds")] = 10.0
    count: Annotated[
        int | None, Field(ge=1, le=10**12, description="Blocks to move on all threads, in about the duration")
    ] = None
    block_size: Annotated[BlockSize, Field(description="Size of the block; a power of two")] = 2**20
    operation: Annotated[Literal["read", "write"], Field(description="Read or write the block")] = "write"
    scope: Annotated[Literal["global", "local"], Field(description="One block for all threads, or one each")] = (
        "global"
    )
    access: Annotated[Literal["seq", "rnd"], Field(description="In order, or at random places in the block")] = "seq"


class SysbenchMemory(Workload):
    """Memory bandwidth. A block that fits into a cache of the CPU, as the default can, measures that cache."""

    kind = "sysbench-memory"
    summary = "reads or writes a block of memory over and over: memory and cache bandwidth"
    options = SysbenchMemoryOptions
    packages = ("sysbench",)

    def metrics(self, options: SysbenchMemoryOptions) -> tuple[Metric, ...]:
        """Return ``bandwidth``: MiB (2^20 bytes) per second of all threads together."""
        return (BANDWIDTH,)

    def command(self, role: Role, options: SysbenchMemoryOptions, at: Endpoint) -> Command:
        return _sysbench.command(
            "memory",
            options.threads,
            options.duration,
            f"--memory-block-size={options.block_size}",
            f"--memory-total-size={_NO_END if options.count is None else options.count * options.block_size}",
            f"--memory-oper={options.operation}",
            f"--memory-scope={options.scope}",
            f"--memory-access-mode={options.access}",
            timed=options.count is None,
        )

    def length(self, options: SysbenchMemoryOptions) -> Length:
        """Return blocks, at least one for each thread."""
        per_mib = 2**20 / options.block_size
        return Length(_SHORTEST_S, "count", lambda measured: measured[BANDWIDTH.name] * per_mib, options.threads)

    def parse(self, options: SysbenchMemoryOptions, completed: Mapping[str, Completed]) -> TrialResult:
        """Read the bandwidth as printed, with two decimals. Raises ProgramFailed or Unparseable."""
        text = _sysbench.report(completed["solo"])
        pattern = rf" MiB transferred \( *{_sysbench.NUMBER} MiB/sec\)"
        bandwidth = Measurement(BANDWIDTH, _sysbench.figure(text, pattern, "bandwidth"))
        return TrialResult((bandwidth,), work_s=_sysbench.totals(text)[0] if options.count is not None else None)


PLUGIN = SysbenchMemory()
