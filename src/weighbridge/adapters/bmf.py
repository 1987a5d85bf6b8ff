"""Bencher Metric Format (BMF): one measure of each benchmark, as bencher.dev's ``json`` adapter reads it."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from weighbridge.adapters._benchmarks import BenchmarkOptions
from weighbridge.adapters._json import at, number, read_document
from weighbridge.model.adapter import Adapter, safe_name
from weighbridge.model.measurement import Better, Measurement, Metric, Unparseable, is_resource_use
from weighbridge.model.text import one_line

_USAGE = "PROGRAM --output /tmp/bmf.json >&2 && cat /tmp/bmf.json"
_WHAT = "the program"
_OF = "Bencher Metric Format"
_BUILT_IN = {
    "latency": Metric("latency", "ns", "lower"),
    "throughput": Metric("throughput", "1/s", "higher"),
    "build-time": Metric("build_time", "s", "lower"),
    "file-size": Metric("file_size", "B", "lower"),
}
"""The predefined measures of Bencher by slug. Their values are never below zero."""
_NAMES = {"Latency": "latency", "Throughput": "throughput", "Build Time": "build-time", "File Size": "file-size"}
_USUAL_MEASURE = "latency"
_SHOWN = 8
_LONGEST = 60

Measures = Mapping[str, Any]


class BmfOptions(BenchmarkOptions):
    """Options of Bencher Metric Format. The name of a benchmark is its key."""

    kind: Literal["bmf"] = "bmf"
    measure: Annotated[
        str | None,
        Field(
            min_length=1,
            max_length=200,
            description="The measure to read, by its key; default: latency, if it is the only one",
        ),
    ] = None
    unit: Annotated[
        str | None,
        Field(pattern=r"^[^\s\x00-\x1f]{1,20}$", description="Its unit, if Bencher does not define it"),
    ] = None
    better: Annotated[Better | None, Field(description="higher or lower, if Bencher does not define it")] = None

    @model_validator(mode="after")
    def _unit_is_known(self) -> "BmfOptions":
        if self.measure is None and (self.unit or self.better):
            raise ValueError("'unit' and 'better' need a measure (measure: NAME)")
        if self.measure is not None and _slug(self.measure) not in _BUILT_IN:
            safe_name(self.measure)
            if self.unit is None or self.better is None:
                raise ValueError(
                    f"the unit of the measure '{self.measure:.60}' is unknown. Give its 'unit' and 'better', or use "
                    "one of "
                    f"{', '.join(_BUILT_IN)}"
                )
        return self

    @property
    def only(self) -> Metric:
        """Return the metric of the measure, in Bencher's unit or the study's unit."""
        measure = self.measure or _USUAL_MEASURE
        built_in = _BUILT_IN.get(_slug(measure))
        if built_in is None:  # then the message names both
            return Metric(_free(safe_name(measure)), self.unit or "", self.better or "lower")
        return Metric(built_in.name, self.unit or built_in.unit, self.better or built_in.better)

    def read(self, stdout: bytes, stderr: bytes) -> tuple[Measurement, ...]:
        """Return the measure's value for each benchmark. Its limits are specific to the program and are not read."""
        benchmarks = _benchmarks(read_document(stdout, _WHAT, _USAGE))
        self._require(benchmarks)
        measure = self._measure(benchmarks)
        values = {}
        for name, measures in benchmarks.items():
            if measure in measures and (not self.benchmarks or name in self.benchmarks):
                values[name] = self._value(name, measures[measure])
        return self.chosen(values, f"the {_OF}")

    def _require(self, benchmarks: Mapping[str, Measures]) -> None:
        """Raise Unparseable if a named benchmark is missing."""
        if not benchmarks or any(name not in benchmarks for name in self.benchmarks):
            self.chosen(dict.fromkeys(benchmarks, 0.0), f"the {_OF}")

    def _measure(self, benchmarks: Mapping[str, Measures]) -> str:
        """Return the key of the measure to read. Raises Unparseable if the study must choose, or chose wrongly."""
        selected = [
            measures for name, measures in benchmarks.items() if not self.benchmarks or name in self.benchmarks
        ]
        keys = [*dict.fromkeys(key for measures in selected for key in measures)]
        available = ", ".join(one_line(key, 60) for key in keys[:_SHOWN]) + (", ..." if len(keys) > _SHOWN else "")
        if not keys:
            raise Unparseable(f"the {_OF} has a benchmark without a measure")
        if self.measure is None:
            if len(keys) > 1:
                raise Unparseable(f"the {_OF} has {len(keys)} measures. Name one of them: measure: {available}")
            if _slug(keys[0]) != _USUAL_MEASURE:
                raise Unparseable(
                    f"the {_OF} has no latency, which is the default measure. Name another one: measure: {available}"
                )
            return keys[0]
        same = [key for key in keys if _slug(key) == _slug(self.measure)]
        measure = self.measure if self.measure in keys or len(same) != 1 else same[0]
        lacking = [name for name in self.benchmarks if measure not in benchmarks[name]]
        if lacking:
            has = ", ".join(one_line(key, 60) for key in [*benchmarks[lacking[0]]][:_SHOWN]) or "none"
            raise Unparseable(f"the benchmark '{lacking[0]}' has no measure '{measure:.60}' (it has: {has})")
        if measure not in keys:
            raise Unparseable(f"the {_OF} has no measure '{measure:.60}' (it has: {available})")
        return measure

    def _value(self, name: str, measure_document: Any) -> float:
        benchmark = f"the benchmark '{one_line(name, 60)}'"
        value = number(measure_document, benchmark, "value")
        if value < 0 and _slug(self.measure or _USUAL_MEASURE) in _BUILT_IN:
            raise Unparseable(f"{self.only.name} of {benchmark} is {value:g}, but cannot be negative")
        return value


def _benchmarks(document: Any) -> dict[str, Measures]:
    """Return each benchmark's measures. Raises Unparseable."""
    if not isinstance(document, dict):
        raise Unparseable(f"the JSON is not {_OF}, an object of benchmarks: run it as '{_USAGE}'")
    for name, measures in document.items():
        if not name or not isinstance(measures, dict) or any(at(each, "value") is None for each in measures.values()):
            raise Unparseable(f"the JSON is not {_OF}: '{one_line(name, 60)}' has a measure without a value")
    return document


def _free(name: str) -> str:
    """Return another name for a metric if every command already has a metric of its name."""
    return f"measure_{name}"[:_LONGEST] if name == "time" or is_resource_use(name) else name


def _slug(measure: str) -> str:
    """Return the slug of a measure, which can also be given in words: ``Build Time``."""
    return _NAMES.get(measure, measure)


class Bmf(Adapter):
    """What Bencher's ``json`` adapter takes, and what ``weighbridge gate --bmf`` writes."""

    kind = "bmf"
    summary = "Bencher Metric Format: a measure of each benchmark"
    options = BmfOptions
    usage = _USAGE


PLUGIN = Bmf()
