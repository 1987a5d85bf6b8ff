"""Selects benchmarks of an output that has several, and names their metrics. This module is not an adapter."""

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import replace
from typing import Annotated

from pydantic import AfterValidator, Field

from weighbridge.model.adapter import AdapterOptions, named_twice, safe_name
from weighbridge.model.measurement import Measurement, Metric, Unparseable
from weighbridge.model.text import one_line

_SHOWN = 12
"""The largest number of names in a message that asks for a choice."""


def _distinct(names: tuple[str, ...]) -> tuple[str, ...]:
    safe_names = [safe_name(name) for name in names]
    if twice := named_twice(safe_names):
        one, other = [name for name, safe in zip(names, safe_names, strict=True) if safe == twice][:2]
        raise ValueError(f"'{one:.60}' and '{other:.60}' would both become the metric '{twice}'. Choose one of them")
    return names


class BenchmarkOptions(AdapterOptions):
    """Base of adapters that make a metric of each benchmark.

    If no benchmark is named, the output must have exactly one. Otherwise a benchmark that is missing in one
    environment would look like a difference.
    """

    benchmarks: Annotated[
        tuple[Annotated[str, Field(min_length=1, max_length=200)], ...],
        AfterValidator(_distinct),
        Field(
            max_length=200,
            description="Benchmarks to read, by the names that the program prints; the first is the primary metric",
        ),
    ] = ()

    @property
    @abstractmethod
    def only(self) -> Metric:
        """Return the metric if no benchmark is named. Metrics of named benchmarks copy its unit and direction."""

    def metrics(self) -> tuple[Metric, ...]:
        """Return one metric for each named benchmark, or one metric in total if none is named."""
        return tuple(replace(self.only, name=safe_name(name)) for name in self.benchmarks) or (self.only,)

    def chosen(self, values: Mapping[str, float], what: str) -> tuple[Measurement, ...]:
        """Return the values of the requested benchmarks. Unparseable lists the available benchmarks."""
        available = ", ".join(one_line(name, 60) for name in [*values][:_SHOWN]) + (
            ", ..." if len(values) > _SHOWN else ""
        )
        if not values:
            raise Unparseable(f"{what} has no benchmarks")
        if not self.benchmarks:
            if len(values) > 1:
                raise Unparseable(
                    f"{what} has {len(values)} benchmarks. Name those to read: benchmarks: [{available}]"
                )
            return (Measurement(self.only, next(iter(values.values()))),)
        missing = [name for name in self.benchmarks if name not in values]
        if missing:
            raise Unparseable(f"{what} has no benchmark '{missing[0]}'. Choose from {available}")
        metrics = zip(self.metrics(), self.benchmarks, strict=True)
        return tuple(Measurement(metric, values[name]) for metric, name in metrics)


def add(values: dict[str, float], name: object, value: float, what: str) -> None:
    """Add a benchmark's value. Raises Unparseable if its name is missing or appears twice."""
    if not isinstance(name, str) or not name:
        raise Unparseable(f"{what} has a benchmark without a name")
    if name in values:
        raise Unparseable(f"{what} has two benchmarks named '{one_line(name, 60)}'")
    values[name] = value
