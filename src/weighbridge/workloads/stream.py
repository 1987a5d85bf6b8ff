"""STREAM's four kernels: the bandwidth of memory."""

from collections.abc import Mapping
from typing import Annotated

from pydantic import Field

from weighbridge.model.command import Command, Completed
from weighbridge.model.measurement import Measurement, Metric
from weighbridge.model.plugin import Endpoint, Workload
from weighbridge.model.quantity import Size
from weighbridge.model.result import TrialResult
from weighbridge.model.study import Options, Role
from weighbridge.workloads._printed_lines import WHOLE, figures

KERNELS = ("copy", "scale", "add", "triad")
"""In the order in which they are printed; as in ``weighbridge/c/stream``."""
METRICS = {kernel: Metric(kernel, "MB/s", "higher") for kernel in ("triad", "copy", "scale", "add")}
_USUAL = 8e9
"""Bytes per second of one core."""


class StreamOptions(Options):
    """What a study file may say about memory bandwidth. Sizes are in bytes."""

    array_size: Annotated[
        Size,
        Field(
            ge=2**20,
            le=2**36,
            description="Of each of the three arrays; STREAM asks for four times the last-level cache",
        ),
    ] = 2**27
    rounds: Annotated[
        int, Field(ge=2, le=1000, description="How often each kernel is run; the first does not count")
    ] = 10
    threads: Annotated[int, Field(ge=1, le=256, description="Threads that share the arrays")] = 1


class Stream(Workload):
    """The best of some rounds of each kernel, in MB (10^6 bytes) a second of what STREAM counts as moved.

    STREAM (McCalpin) is not in Debian, and none of what is gives its four figures in every environment: likwid-bench
    has two of the kernels, as assembly for one CPU family, and pins itself by a topology that guests and sandboxes do
    not show; stress-ng has one rate of all four together, which it does not tell of a slow machine ("run duration too
    short"); hpcc has STREAM, with arrays whose size follows from its matrix, after half a minute of other tests. So
    this is a variant of STREAM of our own (``weighbridge/c/stream``), a static program whose results are checked.

    The size is the same everywhere, and never derived from the cache that an environment shows. Arrays that a cache
    holds measure that cache: the default (128 MiB each, 384 MiB in all) is enough for caches of 32 MiB.
    """

    kind = "stream"
    summary = "STREAM's copy, scale, add and triad: memory bandwidth"
    options = StreamOptions
    packages = ()
    c = "stream"

    def metrics(self, options: StreamOptions) -> tuple[Metric, ...]:
        """MB (10^6 bytes) per second of all threads together, the fastest round's; the headline is triad."""
        return tuple(METRICS.values())

    def command(self, role: Role, options: StreamOptions, at: Endpoint) -> Command:
        """The one process; ``at`` is not used."""
        numbers = (options.array_size, options.rounds, options.threads)
        deadline_s = 120 + 100 * self.expected_s(options)  # an emulated CPU takes that much longer
        return Command(("weighbridge-stream", *(str(number) for number in numbers)), deadline_s)

    def expected_s(self, options: StreamOptions) -> float:
        """Seconds: a round moves ten arrays' bytes, and as much to begin and to check."""
        return 0.1 + options.array_size * 10 * (options.rounds + 1) / _USUAL

    def parse(self, options: StreamOptions, completed: Mapping[str, Completed]) -> TrialResult:
        """The bytes moved over the time of the fastest round. Raises ProgramFailed or Unparseable."""
        pattern = rf'"bytes": {WHOLE}, "best_nanoseconds": {WHOLE}, "mean_nanoseconds": [0-9]{{1,18}}\.[0-9]'
        printed = figures(completed["solo"], [rf'\{{"kernel": "{kernel}", {pattern}\}}' for kernel in KERNELS])
        rates = {kernel: moved / best * 1e3 for kernel, (moved, best) in zip(KERNELS, printed, strict=True)}
        return TrialResult(tuple(Measurement(metric, rates[kernel]) for kernel, metric in METRICS.items()))

    def generator_threads(self, options: StreamOptions) -> int:
        """As many as it is told."""
        return options.threads


PLUGIN = Stream()
