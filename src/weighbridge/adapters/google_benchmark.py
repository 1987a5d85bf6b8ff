"""Google Benchmark: the real time of one iteration of each benchmark."""

from statistics import median
from typing import Any, Literal

from weighbridge.adapters._benchmarks import BenchmarkOptions
from weighbridge.adapters._json import at, entries, number, read_document
from weighbridge.model.adapter import Adapter
from weighbridge.model.measurement import Measurement, Metric, ProgramFailed, Unparseable
from weighbridge.model.text import one_line

_USAGE = "PROGRAM --benchmark_format=json"
_WHAT = "Google Benchmark"
_NANOSECONDS = {"ns": 1.0, "us": 1e3, "ms": 1e6, "s": 1e9}


class GoogleBenchmarkOptions(BenchmarkOptions):
    """Options of Google Benchmark's output. Write names as printed, without the name of an aggregate."""

    kind: Literal["google-benchmark"] = "google-benchmark"

    @property
    def only(self) -> Metric:
        """Return the time of an iteration in nanoseconds."""
        return Metric("time_per_iteration", "ns", "lower")

    def read(self, stdout: bytes, stderr: bytes) -> tuple[Measurement, ...]:
        """Return the median of each benchmark's repetitions, or ``median`` if only aggregates are printed."""
        runs: dict[str, list[float]] = {}
        medians: dict[str, float] = {}
        for each in entries(read_document(stdout, _WHAT, _USAGE), "benchmarks", _WHAT):
            name = at(each, "run_name") or at(each, "name")
            if not isinstance(name, str) or not name:
                raise Unparseable("Google Benchmark's output has a benchmark without a name")
            if at(each, "error_occurred"):
                raise ProgramFailed(
                    f"Google Benchmark: {one_line(name, 60)}: {one_line(at(each, 'error_message'), 200)}"
                )
            if at(each, "run_type") != "aggregate":
                runs.setdefault(name, []).append(_time(each))
            elif at(each, "aggregate_name") == "median":
                medians[name] = _time(each)
        values = medians | {name: median(times) for name, times in runs.items()}
        return self.chosen(values, "Google Benchmark's output")


def _time(entry: Any) -> float:
    """Return the time of a benchmark in nanoseconds."""
    unit = at(entry, "time_unit")
    if not isinstance(unit, str) or unit not in _NANOSECONDS:
        raise Unparseable(f"Google Benchmark's output has an unknown time unit '{one_line(unit, 20)}'")
    return number(entry, _WHAT, "real_time", scale=_NANOSECONDS[unit])


class GoogleBenchmark(Adapter):
    """What ``--benchmark_format=json`` prints."""

    kind = "google-benchmark"
    summary = "Google Benchmark: real time per iteration of each benchmark"
    options = GoogleBenchmarkOptions
    usage = _USAGE


PLUGIN = GoogleBenchmark()
