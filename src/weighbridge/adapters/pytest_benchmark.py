"""pytest-benchmark: the mean time of each test."""

from typing import Literal

from weighbridge.adapters._benchmarks import BenchmarkOptions, add
from weighbridge.adapters._json import at, entries, number, read_document
from weighbridge.model.adapter import Adapter
from weighbridge.model.measurement import Measurement, Metric

_USAGE = "pytest --benchmark-json=/tmp/b.json >&2 && cat /tmp/b.json"
_WHAT = "pytest-benchmark"


class PytestBenchmarkOptions(BenchmarkOptions):
    """Options of pytest-benchmark's output. The name of a benchmark is the full name of its test."""

    kind: Literal["pytest-benchmark"] = "pytest-benchmark"

    @property
    def only(self) -> Metric:
        """Return the mean time in microseconds."""
        return Metric("mean_time", "us", "lower")

    def read(self, stdout: bytes, stderr: bytes) -> tuple[Measurement, ...]:
        """Return the mean of each test's rounds. pytest-benchmark prints seconds."""
        values: dict[str, float] = {}
        for each in entries(read_document(stdout, _WHAT, _USAGE), "benchmarks", _WHAT):
            add(values, at(each, "fullname"), number(each, _WHAT, "stats", "mean", scale=1e6), _WHAT)
        return self.chosen(values, "pytest-benchmark's output")


class PytestBenchmark(Adapter):
    """Reads the JSON of ``--benchmark-json``, which must be printed instead of pytest's own report."""

    kind = "pytest-benchmark"
    summary = "pytest-benchmark: the mean time of each test"
    options = PytestBenchmarkOptions
    usage = _USAGE


PLUGIN = PytestBenchmark()
