"""The rows that the Python API returns, and their conversion to data frames."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, Generic, Literal, TypeVar, get_args, get_type_hints, overload

from weighbridge.api.html import cost_text, table_html
from weighbridge.model.level import level_label
from weighbridge.model.text import one_line
from weighbridge.report.export.parquet import arrow_table, optional_library
from weighbridge.report.text.formatting import quantity

_LISTED = 20
"""The most rows that a notebook or ``print`` shows."""
Row = TypeVar("Row")


@dataclass(frozen=True, slots=True, kw_only=True)
class EnvironmentCost:
    """The cost of one environment in one metric: how much worse it does than the baseline."""

    environment: str
    workload: str
    level: Mapping[str, str]
    """The options that the study varies, with their values; empty if it varies none."""
    metric: str
    unit: str
    better: Literal["higher", "lower"]
    primary: bool
    """Whether this is the workload's first metric, which the report's answer is about."""
    resource_use: bool
    """Whether the metric is about the use of resources, such as CPU time or memory."""
    control: bool
    """Whether the environment is the control: the baseline, measured a second time."""
    baseline: str
    """The environment that it is compared with."""
    baseline_value: float | None
    """The median of the baseline over the compared rounds, in ``unit``."""
    value: float | None
    """The median of the environment over the same rounds, in ``unit``."""
    cost: float | None
    """The cost in ``cost_unit``, positive if the environment does worse; None without a complete round."""
    cost_low: float | None
    """The lower limit of the interval; None without an interval."""
    cost_high: float | None
    """The upper limit of the interval."""
    cost_unit: str | None
    """"%" of the baseline, or the metric's unit if the cost is a difference ("points" for a share)."""
    confidence: float
    """The confidence level of the interval: 0.95, or more if the run was extended or is unfinished."""
    verdict: Literal["significant", "equivalent", "undecided", "hidden"] | None
    """The verdict; None for the control."""
    rounds: int
    """The number of rounds that were compared."""
    adjusted_p: float | None
    """The p-value of "no cost" after Holm's correction."""
    noise_low: float | None
    """The lowest cost within the noise floor, in ``cost_unit``; None if unknown."""
    noise_high: float | None
    """The highest cost within the noise floor, in ``cost_unit``."""
    visible_cost: float | None
    """The smallest cost that four of five such runs would find significant, in ``cost_unit``; None if unknown."""
    emulated: bool
    """Whether the environment, or the baseline, ran in an emulator."""
    remarks: tuple[str, ...]
    """Everything that a reader should know about this number, as sentences."""

    @property
    def text(self) -> str:
        """The cost with its interval, such as ``5.82% [2.96, 9.01]``."""
        return cost_text(self.cost, self.cost_low, self.cost_high, self.cost_unit)

    def __str__(self) -> str:
        return _line(self, self.text, self.verdict or "control")

    def _repr_html_(self) -> str:
        level = level_label(self.level)
        name = f"{self.workload} {self.metric}{f' ({level})' if level else ''}"
        heads = ["metric", "environment", self.baseline, "value", f"cost [{self.confidence:.4g}]", "verdict"]
        values = [quantity(each, self.unit) for each in (self.baseline_value, self.value)]
        row = [name, self.environment, *values, self.text, self.verdict or "control"]
        return table_html(heads, [row], note="A positive cost is worse than the baseline.")


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialValue:
    """The value of one metric in one trial. A trial without a value has one row without a metric."""

    trial: int
    """The number of the trial in the run."""
    round: int
    attempt: int
    """The repetitions of the round, counted from 0."""
    order: int
    """The place of the trial in the session, from 1."""
    environment: str
    workload: str
    level: Mapping[str, str]
    metric: str | None
    unit: str | None
    better: str | None
    value: float | None
    outcome: str
    """"ok", or why the trial has no value."""
    message: str
    started_at: float
    """The start in seconds since the epoch."""
    duration_s: float
    """Everything that the trial took, in seconds."""
    flags: tuple[str, ...]
    """The codes of unusual conditions during the trial."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MeterSample:
    """A number that a meter measured for a whole trial. The unit is the end of the name, such as ``cpu_s``."""

    trial: int
    site: str
    """The role whose site was metered, or "host NAME"."""
    name: str
    value: float


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedFact:
    """A fact about a machine, an environment or the programs, as text."""

    scope: str
    """"host", "userland", "before", "after", "ENVIRONMENT/ROLE", ..."""
    key: str
    value: str
    at: float
    """The time of the reading in seconds since the epoch."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PairedValues:
    """The values of the baseline and of an environment in the same round, in the metric's unit."""

    round: int
    baseline: float
    environment: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparedCost:
    """One cost in two runs, and its change from the first to the second."""

    environment: str
    workload: str
    level: Mapping[str, str]
    metric: str
    unit: str
    better: Literal["higher", "lower"]
    primary: bool
    resource_use: bool
    control: bool
    before: float | None
    """The cost in the first run, in ``cost_unit``; positive is worse."""
    before_low: float | None
    before_high: float | None
    after: float | None
    """The cost in the second run."""
    after_low: float | None
    after_high: float | None
    cost_unit: str | None
    change: float | None
    """The change of the cost in ``change_unit``, positive if the second run's cost is worse."""
    change_low: float | None
    """The lower limit of the change's 95% interval."""
    change_high: float | None
    allowed_low: float | None
    """The lower limit with the allowance for differences between sessions, which the verdict uses."""
    allowed_high: float | None
    change_unit: str | None
    adjusted_p: float | None
    """The p-value of "no change" after Holm's correction."""
    verdict: Literal["significant", "equivalent", "undecided", "hidden"]
    """The verdict about the change, not about the costs."""

    def __str__(self) -> str:
        change = cost_text(self.change, self.change_low, self.change_high, self.change_unit)
        return _line(self, f"change {change}", self.verdict)


class Rows(Sequence[Row], Generic[Row]):
    """Rows of one kind, like a list. They convert to a data frame if its library is installed.

    A level becomes a text such as ``clients=50`` in a data frame, and several flags or remarks one text.
    """

    def __init__(self, kind: type[Row], rows: Iterable[Row]) -> None:
        self._kind = kind
        self._rows = tuple(rows)

    def __len__(self) -> int:
        return len(self._rows)

    def __iter__(self) -> Iterator[Row]:
        return iter(self._rows)

    @overload
    def __getitem__(self, place: int) -> Row: ...
    @overload
    def __getitem__(self, place: slice) -> "Rows[Row]": ...
    def __getitem__(self, place: int | slice) -> "Row | Rows[Row]":
        return Rows(self._kind, self._rows[place]) if isinstance(place, slice) else self._rows[place]

    def __repr__(self) -> str:
        return f"<{len(self)} rows of {self._kind.__name__}>"

    def __str__(self) -> str:
        return "\n".join([repr(self), *map(str, self[:_LISTED]), *filter(None, [self._rest()])])

    def where(self, **values: object) -> "Rows[Row]":
        """Return the rows whose fields have these values: ``run.costs.where(primary=True, environment="docker")``.

        Raises AttributeError if the rows have no field of this name.
        """
        known = _columns(self._kind)
        for name in values:
            if name not in known:
                listed = ", ".join(known)
                raise AttributeError(f"{self._kind.__name__} has no field '{name}': its fields are {listed}")
        return Rows(self._kind, (row for row in self if all(getattr(row, k) == v for k, v in values.items())))

    def to_pandas(self) -> Any:
        """Return a ``pandas.DataFrame``. Raises WeighbridgeError if pandas is not installed."""
        pandas = optional_library("pandas")
        columns = _columns(self._kind)
        frame = pandas.DataFrame([*self._flat()], columns=[*columns])
        return frame.astype({name: "float64" for name, kind in columns.items() if kind is float})

    def to_polars(self) -> Any:
        """Return a ``polars.DataFrame``. Raises WeighbridgeError if Polars is not installed."""
        return optional_library("polars").DataFrame([*self._flat()], schema=_columns(self._kind))

    def to_arrow(self) -> Any:
        """Return a ``pyarrow.Table``. Raises WeighbridgeError if PyArrow is not installed."""
        return arrow_table(_columns(self._kind), [*self._flat()])

    def _flat(self) -> Iterator[dict[str, object]]:
        names = [*_columns(self._kind)]
        return ({name: _flat(getattr(row, name)) for name in names} for row in self)

    def _rest(self) -> str:
        return f"{len(self) - _LISTED} more rows" if len(self) > _LISTED else ""

    def _repr_html_(self) -> str:
        rows = [[*row.values()] for row in self[:_LISTED]._flat()]
        return table_html([*_columns(self._kind)], rows, note=self._rest())


def _line(cost: EnvironmentCost | ComparedCost, figures: str, verdict: str) -> str:
    """Return a cost in one line, with its address: ``docker command time: 5.82% [2.96, 9.01], significant``."""
    name = filter(None, (cost.environment, cost.workload, level_label(cost.level), cost.metric))
    return one_line(f"{' '.join(name)}: {figures}, {verdict}")


def _columns(kind: Any) -> dict[str, type]:
    """Return the columns of a data frame, with their types."""
    hints = get_type_hints(kind)
    return {each.name: _column_type(hints[each.name]) for each in fields(kind)}


def _column_type(hint: Any) -> type:
    """Return the type of a column: bool, int, float, or str for everything else."""
    return next((kind for kind in (bool, int, float) if kind in (hint, *get_args(hint))), str)


def _flat(value: object) -> object:
    """Return a value as a data frame holds it."""
    if isinstance(value, Mapping):
        return level_label(value)
    return "; ".join(map(str, value)) if isinstance(value, tuple) else value
