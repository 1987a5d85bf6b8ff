"""go test -bench: the time of one operation of each benchmark."""

import re
from statistics import median
from typing import Annotated, Literal

from pydantic import Field

from weighbridge.adapters._benchmarks import BenchmarkOptions
from weighbridge.model.adapter import Adapter
from weighbridge.model.measurement import Measurement, Metric, ProgramFailed, Unparseable, is_plausible

_USAGE = "go test -run=^$ -bench=."
_ROW = re.compile(r"^Benchmark(\S+)\s+\d{1,18}\s+([0-9.]{1,30}(?:e[+-]?\d{1,3})?) ns/op(?:\s|$)", re.MULTILINE)
_PACKAGE = re.compile(r"^pkg: (\S+)$", re.MULTILINE)
_FAILED = re.compile(r"^(--- FAIL: .*|FAIL\b.*|panic: .*)$", re.MULTILINE)
_PROCESSORS = re.compile(r"-\d+$")


class GoBenchOptions(BenchmarkOptions):
    """Options of Go's benchmarks. Write their names without ``Benchmark`` and ``-CPUS``."""

    kind: Literal["go-bench"] = "go-bench"
    package: Annotated[
        str, Field(max_length=200, description="The package to read, if several have a benchmark of this name")
    ] = ""

    @property
    def only(self) -> Metric:
        """Return the time of an operation in nanoseconds."""
        return Metric("time_per_op", "ns", "lower")

    def read(self, stdout: bytes, stderr: bytes) -> tuple[Measurement, ...]:
        """Return the median of each benchmark's runs (``-count``). The last line must say that all of them passed."""
        text = stdout.decode(errors="replace")
        if failed := _FAILED.search(text):
            raise ProgramFailed(f"go test: {failed[1]:.200}")
        if not re.search(r"^(?:PASS|ok\s+\S.*)\n", text, re.MULTILINE):
            raise Unparseable(f"go test printed no PASS: run it as '{_USAGE}'")
        parts = _PACKAGE.split(text)  # what comes first, then name and output of each package
        named = [*zip(parts[1::2], parts[2::2], strict=True)] or [("", text)]
        every = {name: _runs(part) for name, part in named if self.package in ("", name)}
        values: dict[str, float] = {}
        for name, runs in every.items():
            for benchmark, times in runs.items():
                if benchmark in values:
                    raise Unparseable(f"two packages have a benchmark '{benchmark:.60}'. Try: package: {name}")
                values[benchmark] = median(times)
        return self.chosen(values, "go test's output")


def _runs(text: str) -> dict[str, list[float]]:
    """Return the nanoseconds of each run, by benchmark, without the suffix that gives the number of CPUs."""
    rows = [(match[1], float(match[2])) for match in _ROW.finditer(text) if _is_number(match[2])]
    suffixes = {match[0] if (match := _PROCESSORS.search(name)) else "" for name, _ in rows}
    suffix = suffixes.pop() if len(suffixes) == 1 else ""
    runs: dict[str, list[float]] = {}
    for name, time in rows:
        runs.setdefault(name.removesuffix(suffix), []).append(time)
    return runs


def _is_number(text: str) -> bool:
    try:
        return is_plausible(float(text))
    except ValueError:
        return False


class GoBench(Adapter):
    """The text that ``go test -bench`` prints, or a test's program with ``-test.bench``."""

    kind = "go-bench"
    summary = "go test -bench: time per operation of each benchmark"
    options = GoBenchOptions
    usage = _USAGE


PLUGIN = GoBench()
