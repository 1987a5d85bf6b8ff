"""Allocations: how many blocks of memory a second the C library's allocator hands out and takes back."""

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
from weighbridge.workloads._printed_lines import WHOLE, figures

RATE = Metric("rate", "1/s", "higher")
_BEFORE_S = 0.02
"""What the blocks take that are held from the beginning."""


class AllocationsOptions(Options):
    """Options of allocations. ``duration`` is in seconds, ``largest`` in bytes."""

    duration: Annotated[Duration, Field(ge=0.01, le=3600, description="Measured time")] = 1.0
    threads: Annotated[int, Field(ge=1, le=256, description="Threads that allocate at the same time")] = 1
    largest: Annotated[
        Size, Field(ge=1, le=2**30, description="Size of the largest block; sizes are even from one byte to it")
    ] = 1024


class Allocations(Workload):
    """The allocator alone (malloc, free), where C libraries differ: musl's has one lock, glibc's an arena a thread.

    mimalloc-bench builds allocators to be compared in one image, and sysbench's memory test allocates once. So the
    program is our own (``weighbridge/c/allocations``) and static: its allocator is that of the C library that it was
    built with, and ``userland: {kind: packages, libc: musl}`` gives it another one. Each thread holds 1024 blocks,
    and again and again frees one of them and allocates another in its place.

    It is CPU-bound: its bottleneck is the CPU in every environment, and that is what is measured.
    """

    kind = "allocations"
    summary = "the C library's allocator: blocks of memory allocated and freed by one or more threads"
    options = AllocationsOptions
    packages = ()
    c = "allocations"

    def metrics(self, options: AllocationsOptions) -> tuple[Metric, ...]:
        """Blocks allocated per second by all threads together; as many are freed."""
        return (RATE,)

    def command(self, role: Role, options: AllocationsOptions, at: Endpoint) -> Command:
        """The one process; ``at`` is not used."""
        numbers = (round(options.duration * 1000), options.threads, options.largest)
        deadline_s = 3 * self.expected_s(options) + 60
        return Command(("weighbridge-allocations", *(str(number) for number in numbers)), deadline_s)

    def expected_s(self, options: AllocationsOptions) -> float:
        """Seconds."""
        return options.duration + _BEFORE_S

    def parse(self, options: AllocationsOptions, completed: Mapping[str, Completed]) -> TrialResult:
        """The blocks over the time from the first thread's begin. Raises ProgramFailed or Unparseable."""
        line = rf'\{{"threads": {options.threads}, "allocations": {WHOLE}, "nanoseconds": {WHOLE}\}}'
        ((count, nanoseconds),) = figures(completed["solo"], [line])
        return TrialResult((Measurement(RATE, count / (nanoseconds / 1e9)),), work_s=nanoseconds / 1e9)

    def generator_threads(self, options: AllocationsOptions) -> int:
        """As many as it is told."""
        return options.threads


PLUGIN = Allocations()
