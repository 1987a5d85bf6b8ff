"""Allocations: the blocks of memory per second that the C library's allocator allocates and frees."""

from collections.abc import Mapping
from typing import Annotated

from pydantic import Field

from weighbridge.model.command import Command, Completed
from weighbridge.model.measurement import Measurement, Metric
from weighbridge.model.options import Options
from weighbridge.model.quantity import Duration, Size
from weighbridge.model.study import Role
from weighbridge.model.trial import TrialResult
from weighbridge.model.workload import Endpoint, Workload
from weighbridge.workloads._printed_lines import POSITIVE, figures

RATE = Metric("rate", "1/s", "higher")


class AllocationsOptions(Options):
    """Options of allocations. ``duration`` is in seconds, ``largest`` in bytes."""

    duration: Annotated[Duration, Field(ge=0.01, le=3600, description="Measured time")] = 1.0
    threads: Annotated[int, Field(ge=1, le=256, description="Threads that allocate at the same time")] = 1
    largest: Annotated[
        Size, Field(ge=1, le=2**30, description="Size of the largest block; sizes are even from one byte to it")
    ] = 1024


class Allocations(Workload):
    """The allocator alone (malloc, free). C libraries differ here: musl has one lock, glibc has an arena per thread.

    mimalloc-bench builds several allocators for one image, and sysbench's memory test allocates only once. So the
    program is our own (``programs/allocations``). It is static, so its allocator is that of its C library, and
    ``userland: {kind: packages, libc: musl}`` selects another one. Each thread holds 1,024 blocks, and repeatedly
    frees one and allocates another in its place.

    It measures the CPU, which is its bottleneck in every environment.
    """

    kind = "allocations"
    summary = "the C library's allocator: blocks of memory allocated and freed by one or more threads"
    options = AllocationsOptions
    packages = ()
    c = "allocations"
    overhead_s = 0.02  # to allocate the first blocks

    def metrics(self, options: AllocationsOptions) -> tuple[Metric, ...]:
        """Return the blocks allocated per second by all threads together. The same number is freed."""
        return (RATE,)

    def command(self, role: Role, options: AllocationsOptions, at: Endpoint) -> Command:
        numbers = (round(options.duration * 1000), options.threads, options.largest)
        deadline_s = 3 * self.expected_s(options) + 60
        return Command(("weighbridge-allocations", *(str(number) for number in numbers)), deadline_s)

    def parse(self, options: AllocationsOptions, completed: Mapping[str, Completed]) -> TrialResult:
        """Divide the blocks by the time since the first thread started. Raises ProgramFailed or Unparseable."""
        line = rf'\{{"threads": {options.threads}, "allocations": {POSITIVE}, "nanoseconds": {POSITIVE}\}}'
        ((count, nanoseconds),) = figures(completed["solo"], [line])
        return TrialResult((Measurement(RATE, count / (nanoseconds / 1e9)),), work_s=nanoseconds / 1e9)


PLUGIN = Allocations()
