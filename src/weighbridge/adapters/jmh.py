"""JMH: the score of each benchmark."""

from typing import Annotated, Any, Literal

from pydantic import Field

from weighbridge.adapters._benchmarks import BenchmarkOptions, add
from weighbridge.adapters._json import at, number, read_document
from weighbridge.model.adapter import Adapter
from weighbridge.model.measurement import Measurement, Metric, Unparseable
from weighbridge.model.text import one_line

_USAGE = "java -jar benchmarks.jar -rf json -rff /tmp/jmh.json >&2 && cat /tmp/jmh.json"
_WHAT = "JMH"
_SECONDS = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0, "min": 60.0, "hr": 3600.0, "day": 86400.0}


class JmhOptions(BenchmarkOptions):
    """Options of JMH's output. The name of a benchmark is the name of its method, with its parameters.

    ``org.example.Sort.quick``, or ``org.example.Sort.quick:size=64,kind=random``.
    """

    kind: Literal["jmh"] = "jmh"
    mode: Annotated[
        Literal["thrpt", "avgt", "sample", "ss"],
        Field(description="What to read: throughput, or time per operation (avgt, sample, ss)"),
    ] = "thrpt"

    @property
    def only(self) -> Metric:
        """Return operations per second, or microseconds per operation."""
        if self.mode == "thrpt":
            return Metric("throughput", "1/s", "higher")
        return Metric("time_per_op", "us", "lower")

    def read(self, stdout: bytes, stderr: bytes) -> tuple[Measurement, ...]:
        """Return the score of each benchmark in this mode."""
        document = read_document(stdout, _WHAT, _USAGE)
        if not isinstance(document, list):
            raise Unparseable(f"the JSON of JMH is not a list: run it as '{_USAGE}'")
        values: dict[str, float] = {}
        modes = [mode for each in document if (mode := at(each, "mode")) is not None]
        for each in document:
            if at(each, "mode") == self.mode:
                add(values, _name(each), self._score(each), _WHAT)
        if not values and modes:
            raise Unparseable(
                f"JMH's output has no benchmark in mode {self.mode}. Try: mode: {one_line(modes[0], 20)}"
            )
        return self.chosen(values, "JMH's output")

    def _score(self, entry: Any) -> float:
        unit, scale = at(entry, "primaryMetric", "scoreUnit"), None
        above, _, below = unit.partition("/") if isinstance(unit, str) else ("", "", "")
        if self.mode == "thrpt" and above == "ops" and below in _SECONDS:
            scale = 1 / _SECONDS[below]
        if self.mode != "thrpt" and below == "op" and above in _SECONDS:
            scale = _SECONDS[above] * 1e6
        if scale is None:
            raise Unparseable(f"JMH's output has the unknown unit '{one_line(unit, 20)}'")
        return number(entry, _WHAT, "primaryMetric", "score", scale=scale)


def _name(entry: Any) -> object:
    name, parameters = at(entry, "benchmark"), at(entry, "params")
    if not isinstance(parameters, dict) or not isinstance(name, str):
        return name
    return f"{name}:{','.join(f'{key}={value}' for key, value in parameters.items())}"


class Jmh(Adapter):
    """Reads the JSON of ``-rf json``, which must be printed instead of JMH's own report."""

    kind = "jmh"
    summary = "JMH: throughput or time per operation of each benchmark"
    options = JmhOptions
    usage = _USAGE


PLUGIN = Jmh()
