"""STREAM's four kernels: the bandwidth of memory."""

from collections.abc import Mapping
from typing import Annotated

from pydantic import Field

from weighbridge.model.command import Command, Completed
from weighbridge.model.measurement import Measurement, Metric
from weighbridge.model.options import Options
from weighbridge.model.quantity import Size
from weighbridge.model.study import Role
from weighbridge.model.trial import TrialResult
from weighbridge.model.workload import Endpoint, Workload
from weighbridge.workloads._printed_lines import POSITIVE, figures

KERNELS = ("copy", "scale", "add", "triad")
"""The kernels in the order of the output, as in ``programs/stream``."""
MEANS = {kernel: Metric(f"{kernel}_mean", "MB/s", "higher") for kernel in ("triad", "copy", "scale", "add")}
TRIAD_BEST = Metric("triad_best", "MB/s", "higher")
_USUAL = 8e9
"""The usual bytes per second of one core."""


class StreamOptions(Options):
    """Options of memory bandwidth. Sizes are in bytes."""

    array_size: Annotated[
        Size,
        Field(
            ge=2**20,
            le=2**36,
            description="Size of each of the three arrays; STREAM asks for four times the last-level cache",
        ),
    ] = 2**27
    rounds: Annotated[int, Field(ge=2, le=1000, description="Runs of each kernel; the first does not count")] = 10
    threads: Annotated[int, Field(ge=1, le=256, description="Threads that share the arrays")] = 1


class StreamBenchmark(Workload):
    """Reports each kernel's mean over the rounds in MB (10^6 bytes) per second, as STREAM counts, and triad's best.

    STREAM itself reports the best round. Under a CPU quota that hides the limit: a round that fits into the quota's
    slice is not throttled, and is the best one. So the headline is the mean, and the best is there for comparison
    with STREAM's own figures. A round of several threads lasts from the first start of a thread's part to the last
    end. A clock that only one thread reads misses the work of the others before it was scheduled.

    Debian does not have STREAM (McCalpin), and no program in it gives its four figures in every environment.
    likwid-bench has two of the kernels, in assembly for one CPU family, and needs a topology that guests and
    sandboxes do not show. stress-ng has one rate for all four together, and none on a slow machine ("run duration too
    short"). hpcc has STREAM, with a size that follows from its matrix, after half a minute of other tests. So this is
    our own variant of STREAM (``programs/stream``), a static program that checks its results.

    The size is the same everywhere, and never derived from the cache that an environment shows. Arrays that fit into
    a cache measure that cache: the default (128 MiB each, 384 MiB in total) is enough for caches of 32 MiB.
    """

    kind = "stream"
    summary = "STREAM's copy, scale, add and triad: memory bandwidth"
    options = StreamOptions
    packages = ()
    c = "stream"

    def metrics(self, options: StreamOptions) -> tuple[Metric, ...]:
        """Return MB (10^6 bytes) per second of all threads together. The mean of triad is the headline."""
        return *MEANS.values(), TRIAD_BEST

    def command(self, role: Role, options: StreamOptions, at: Endpoint) -> Command:
        numbers = (options.array_size, options.rounds, options.threads)
        deadline_s = 120 + 100 * self.expected_s(options)  # an emulated CPU takes that much longer
        return Command(("weighbridge-stream", *(str(number) for number in numbers)), deadline_s)

    def expected_s(self, options: StreamOptions) -> float:
        """Assume that a round moves ten arrays, and that the start and the check move the same."""
        return 0.1 + options.array_size * 10 * (options.rounds + 1) / _USUAL

    def parse(self, options: StreamOptions, completed: Mapping[str, Completed]) -> TrialResult:
        """Divide the moved bytes by their time. Raises ProgramFailed or Unparseable."""
        times = rf'"best_nanoseconds": {POSITIVE}, "nanoseconds": {POSITIVE}'
        pattern = rf'"bytes": {POSITIVE}, "runs": {options.rounds - 1}, {times}'
        printed = figures(completed["solo"], [rf'\{{"kernel": "{kernel}", {pattern}\}}' for kernel in KERNELS])
        counts = dict(zip(KERNELS, printed, strict=True))
        means = {kernel: moved * (options.rounds - 1) / total * 1e3 for kernel, (moved, _, total) in counts.items()}
        measured = [Measurement(metric, means[kernel]) for kernel, metric in MEANS.items()]
        moved, best, _ = counts["triad"]
        return TrialResult((*measured, Measurement(TRIAD_BEST, moved / best * 1e3)))


PLUGIN = StreamBenchmark()
