"""BMF, the Bencher Metric Format: any benchmark's results as JSON, by name and measure."""

from typing import Annotated, Literal

from pydantic import Field, model_validator

from weighbridge.adapters._benchmarks import BenchmarkOptions, add
from weighbridge.adapters._json import at, number, read_document
from weighbridge.model.adapter import Adapter, safe_name
from weighbridge.model.measurement import Better, Measurement, Metric, Unparseable

_USAGE = 'PROGRAM, so that it prints {NAME: {MEASURE: {"value": NUMBER}}}'
_WHAT = "BMF"
_KNOWN: dict[str, tuple[str, Better]] = {
    "latency": ("ns", "lower"),
    "throughput": ("1/s", "higher"),
    "file-size": ("B", "lower"),
    "build-time": ("s", "lower"),
}
"""Unit and direction of Bencher's own measures."""


class BmfOptions(BenchmarkOptions):
    """What a study file may say about output in BMF. The format itself has neither units nor directions."""

    kind: Literal["bmf"] = "bmf"
    measure: Annotated[
        str,
        Field(
            pattern=r"^[A-Za-z0-9][A-Za-z0-9_ -]{0,63}$", description="The measure that is read, of each benchmark"
        ),
    ] = "latency"
    unit: Annotated[
        str | None,
        Field(pattern=r"^[^\s\x00-\x1f]{1,20}$", description="Its unit, unless it is one of Bencher's own"),
    ] = None
    better: Annotated[Better | None, Field(description="higher or lower, unless it is one of Bencher's own")] = None

    @model_validator(mode="after")
    def _is_known(self) -> "BmfOptions":
        if self.measure not in _KNOWN and (self.unit is None or self.better is None):
            known = ", ".join(_KNOWN)
            raise ValueError(f"measure: '{self.measure}' is none of Bencher's ({known}): say its 'unit' and 'better'")
        return self

    @property
    def only(self) -> Metric:
        """The measure by its own name."""
        unit, better = _KNOWN.get(self.measure, ("", "lower"))
        return Metric(safe_name(self.measure), self.unit or unit, self.better or better)

    def read(self, stdout: bytes, stderr: bytes) -> tuple[Measurement, ...]:
        """The value of the measure, of each benchmark that has it; its bounds are not read."""
        document = read_document(stdout, _WHAT, _USAGE)
        if not isinstance(document, dict):
            raise Unparseable(f"BMF is an object of benchmarks: run it as '{_USAGE}'")
        values: dict[str, float] = {}
        for name, measures in document.items():
            if at(measures, self.measure) is not None:
                add(values, name, number(measures, _WHAT, self.measure, "value"), _WHAT)
        return self.chosen(values, f"the output in BMF, of the measure '{self.measure}',")


class Bmf(Adapter):
    """One JSON object on standard output."""

    kind = "bmf"
    summary = "BMF, Bencher's metric format: one measure of each benchmark"
    options = BmfOptions
    usage = _USAGE


PLUGIN = Bmf()
