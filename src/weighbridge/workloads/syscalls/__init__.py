"""System calls: how often per second the kernel performs each of some elementary operations."""

from collections.abc import Mapping
from typing import Annotated

from pydantic import Field

from weighbridge.model.command import Command, Completed
from weighbridge.model.measurement import Measurement, Metric
from weighbridge.model.options import Options
from weighbridge.model.quantity import Duration
from weighbridge.model.study import Role
from weighbridge.model.trial import TrialResult
from weighbridge.model.workload import Endpoint, Workload
from weighbridge.workloads._printed_lines import POSITIVE, figures

CALLS = ("getppid", "open_close", "read", "mmap", "fork_exit", "fork_exec", "pipe")
"""The calls in the order of their measurement, as in ``programs/syscalls/calls.c``."""
METRICS = tuple(Metric(call, "1/s", "higher") for call in CALLS)
_BEFORE_S = 0.03
"""The time to find the number of calls in a batch, for each kind of call."""


class SyscallsOptions(Options):
    """Options of system calls. ``duration`` is in seconds."""

    duration: Annotated[
        Duration, Field(ge=0.01, le=3600, description="Measured time of each of the seven kinds of calls")
    ] = 1.0


class Syscalls(Workload):
    """The boundary between a program and its kernel, at which seccomp, gVisor and virtual machines differ.

    The field uses lmbench for this, which is not free software. stress-ng counts operations of many calls each, and
    ``perf bench`` depends on the kernel's version. So the program is our own (``programs/syscalls``) and static.
    `getppid` only enters and leaves the kernel. `open_close` opens a file in memory, and `read` reads one byte of
    /dev/zero. `mmap` maps 64 KiB, touches each page and unmaps them. `fork_exit` and `fork_exec` end when the child
    ends. `pipe` sends a byte to another process on the same CPU and back, with two context switches.

    It measures the CPU, which is its bottleneck in every environment.
    """

    kind = "syscalls"
    summary = "rates of elementary system calls: the cost of entering the kernel or its replacement"
    options = SyscallsOptions
    packages = ()
    c = "syscalls"

    def metrics(self, options: SyscallsOptions) -> tuple[Metric, ...]:
        """Return calls per second of each kind, and ``pipe`` round trips. The headline is getppid's rate."""
        return METRICS

    def command(self, role: Role, options: SyscallsOptions, at: Endpoint) -> Command:
        milliseconds = str(round(options.duration * 1000))
        return Command(("weighbridge-syscalls", milliseconds), deadline_s=3 * self.expected_s(options) + 60)

    def expected_s(self, options: SyscallsOptions) -> float:
        return len(CALLS) * (options.duration + _BEFORE_S)

    def parse(self, options: SyscallsOptions, completed: Mapping[str, Completed]) -> TrialResult:
        """Divide the number of calls by their time. Raises ProgramFailed or Unparseable."""
        lines = [rf'\{{"call": "{call}", "count": {POSITIVE}, "nanoseconds": {POSITIVE}\}}' for call in CALLS]
        counted = figures(completed["solo"], lines)
        rates = (count / (nanoseconds / 1e9) for count, nanoseconds in counted)
        return TrialResult(
            tuple(Measurement(metric, rate) for metric, rate in zip(METRICS, rates, strict=True)),
            work_s=sum(nanoseconds for _, nanoseconds in counted) / 1e9,
        )


PLUGIN = Syscalls()
