"""The figures of a published study, and the measured metric for each of them: read and checked."""

import csv
from collections.abc import Mapping
from fractions import Fraction
from functools import cache, cached_property
from importlib import resources
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from weighbridge.errors import StudyError
from weighbridge.model.address import grouped
from weighbridge.model.study import Parameter

TEST = "test"
"""The level that numbers the runs of a table with each run's own mean."""

Number = Annotated[float, BeforeValidator(lambda value: float(Fraction(str(value))))]
"""A number, also as a fraction: 1/300."""


Names = Annotated[tuple[str, ...], BeforeValidator(lambda value: (value,) if isinstance(value, str) else value)]
"""Names of environments; a single one can be written alone."""


PAIRED = ("diff_mean", "diff_stdev", "t", "p")
"""The statistics of a `PairTable`, as the figures name them."""
SPREADS = ("mean", "stdev", "cv")
"""The statistics of a `SpreadTable`, as the figures name them."""


class _Data(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Figure(_Data):
    """One printed figure: its table, its subject, its statistic."""

    study: str
    table: str
    environment: str
    workload: str
    metric: str
    unit: str
    level_name: str
    level: str
    statistic: str
    value: float
    better: Literal["higher", "lower"]

    @property
    def levels(self) -> dict[str, str]:
        """Return the factors and their values; several are written ``a=1;b=2``."""
        if ";" not in self.level_name:
            return {self.level_name: self.level} if self.level_name else {}
        return dict(part.split("=", 1) for part in self.level.split(";"))


class Measured(_Data):
    """The same quantity in a run."""

    workload: str
    metric: str
    level: dict[str, str] = {}
    """The levels of measured factors that the published figures do not name."""


class BaselineTables(_Data):
    """The tables with the baseline's figures, if they are separate; missing values are as for the others."""

    labels: tuple[str, ...] = ()
    tests: tuple[str, ...] = ()
    level: dict[str, str] = {}


class Compared(_Data):
    """One table, or one column of it: figures of one metric that a run measures too."""

    title: str
    workload: str
    metric: str
    unit: str
    """The printed unit, which every figure must have."""
    measured: Measured
    labels: tuple[str, ...] = ()
    """The tables with its means; without any, the mean of its tests."""
    tests: tuple[str, ...] = ()
    """The tables with each run's own mean."""
    level: dict[str, str] = {}
    levels: dict[str, str] = {}
    """Published factor -> measured factor: every level of it is a separate row."""
    environments: dict[str, Names] = {}
    """Published -> measured; without any, those of the entire study."""
    statistic: Literal["mean", "ratio"] = "mean"
    """The printed statistic: values of environments, or ratios of two without their values (``xen / qemu``)."""
    against: str = ""
    """The measured environment for the published baseline, if it is not the run's own baseline."""
    baseline: BaselineTables | None = None
    shown: str = ""
    """The unit after ``times`` and ``plus``, if it differs from the printed one."""
    times: Number = 1.0
    plus: Number = 0.0
    scale: Literal["ratio", "difference"] = "ratio"
    spread: Literal["runs", "cv", "tests", "none"] = "none"
    """The source of the spread: printed deviations, coefficients of variation, each run's mean, or nothing."""
    note: str = ""

    @property
    def shown_unit(self) -> str:
        """Return the unit of the shown values."""
        return self.shown or self.unit

    @model_validator(mode="after")
    def _has_figures(self) -> "Compared":
        if not self.labels and not self.tests:
            raise ValueError("needs labels or tests")
        if self.spread == "tests" and not self.tests:
            raise ValueError("spread: tests needs tests")
        if self.statistic == "ratio" and (self.levels or self.tests or self.scale != "ratio"):
            raise ValueError("statistic: ratio has neither levels nor tests, and its scale is a ratio")
        return self


class SpreadTable(_Data):
    """Mean, standard deviation and coefficient of variation, as published and for a run's blocks."""

    title: str
    workload: str
    metric: str
    unit: str
    """The unit of the printed means and deviations."""
    labels: tuple[str, ...]
    measured: Measured
    environments: dict[str, Names] = {}
    """Published -> measured; without any, those of the entire study."""
    note: str = ""

    def fits(self, figure: Figure) -> bool:
        """Return whether a figure is part of it."""
        subject = (figure.workload, figure.metric)
        return figure.table in self.labels and subject == (self.workload, self.metric) and figure.statistic in SPREADS


class PairTable(_Data):
    """Paired differences of two environments with their t-test, as published and for a run's blocks."""

    title: str
    workload: str
    metric: str
    unit: str
    """The unit of the printed means and deviations."""
    labels: tuple[str, ...]
    level: dict[str, str] = {}
    measured: Measured
    pairs: dict[str, tuple[str, str]]
    """Published difference (``docker-volume - nfs-sync``) -> the two measured environments, in its order."""
    note: str = ""

    def fits(self, figure: Figure) -> bool:
        """Return whether a figure is part of it."""
        subject = (figure.workload, figure.metric, figure.levels)
        matches = figure.table in self.labels and figure.environment in self.pairs and figure.statistic in PAIRED
        return matches and subject == (self.workload, self.metric, self.level)


class UncomparedFigures(_Data):
    """Figures without a counterpart, and why. A missing key matches every figure."""

    why: str
    labels: tuple[str, ...] | None = None
    metrics: tuple[str, ...] | None = None
    statistics: tuple[str, ...] | None = None

    def fits(self, figure: Figure) -> bool:
        """Return whether it concerns this figure."""
        criteria = ((self.labels, figure.table), (self.metrics, figure.metric), (self.statistics, figure.statistic))
        return all(any_of is None or value in any_of for any_of, value in criteria)


class Setup(_Data):
    """One part of the published setup, and the source of its counterpart in a run.

    ``facts`` are keys of the run's facts. ``option`` is WORKLOAD.OPTION. ``blocks`` means the run's number of blocks.
    ``said`` applies to every run of the bundled study.
    """

    what: str
    published: str
    facts: tuple[str, ...] = ()
    option: str = ""
    unit: str = ""
    blocks: bool = False
    said: str = ""


class Published(_Data):
    """A published study: its figures and their counterparts."""

    study: str
    source: str
    baseline: str
    runs: Annotated[int, Field(ge=1)]
    environments: dict[str, Names]
    no_environment: dict[str, str] = {}
    """Measured names of environments that no study can have yet, and why; their rows are listed anyway."""
    comparisons: tuple[Compared, ...] = ()
    spreads: tuple[SpreadTable, ...] = ()
    pairs: tuple[PairTable, ...] = ()
    left_out: tuple[UncomparedFigures, ...] = ()
    oddities: tuple[str, ...] = ()
    setup: tuple[Setup, ...] = ()
    figures: tuple[Figure, ...] = ()

    def find(self, compared: Compared, environment: str, level: Mapping[str, str], statistic: str) -> Figure | None:
        """Return the figure of an environment at a level in the comparison's own tables, or None."""
        origin = self._origin(compared, environment)
        factors = {**origin.level, **level}
        return next(iter(self._matching(compared, environment, origin.labels, factors, statistic)), None)

    def variation(self, compared: Compared, environment: str) -> float | None:
        """Return the printed coefficient of variation of an environment, as a fraction, or None."""
        for figure in self.figures:
            subject = (figure.environment, figure.workload, figure.metric, figure.statistic)
            if subject == (environment, compared.workload, compared.metric, "cv") and figure.table in compared.labels:
                return figure.value / 100 if figure.unit == "%" else figure.value
        return None

    def ratios(self, compared: Compared) -> tuple[Figure, ...]:
        """Return the printed ratios of two environments, which the figure names: ``xen / qemu``."""
        return tuple(
            figure
            for figure in self.figures
            if figure.table in compared.labels
            and (figure.workload, figure.metric, figure.statistic) == (compared.workload, compared.metric, "ratio")
            and (figure.unit, figure.levels) == (compared.unit, compared.level)
        )

    def tests(self, compared: Compared, environment: str, level: Mapping[str, str]) -> tuple[Figure, ...]:
        """Return each run's own mean; empty if the study does not print it."""
        origin = self._origin(compared, environment)
        figures = []
        for number in range(1, self.runs + 1):
            factors = {**origin.level, **level, TEST: str(number)}
            figures += self._matching(compared, environment, origin.tests, factors, "mean")
        return tuple(figures)

    @cached_property
    def _by_subject(self) -> Mapping[tuple[str, str, str, str], list[Figure]]:
        """Return the figures by environment, workload, metric and statistic; a page needs thousands of them."""
        return grouped(self.figures, lambda each: (each.environment, each.workload, each.metric, each.statistic))

    def _origin(self, compared: Compared, environment: str) -> BaselineTables:
        usual = BaselineTables(labels=compared.labels, tests=compared.tests, level=compared.level)
        if environment != self.baseline or compared.baseline is None:
            return usual
        other = compared.baseline
        return BaselineTables(labels=other.labels, tests=other.tests, level=other.level)

    def _matching(
        self, compared: Compared, environment: str, labels: tuple[str, ...], level: Mapping[str, str], statistic: str
    ) -> list[Figure]:
        subject = (environment, compared.workload, compared.metric, statistic)
        return [
            figure
            for figure in self._by_subject.get(subject, ())
            if figure.table in labels and figure.levels == level and figure.unit == compared.unit
        ]


def available() -> tuple[str, ...]:
    """Return the studies with published figures."""
    names = (entry.name for entry in resources.files("weighbridge.features.replication").iterdir())
    return tuple(sorted(name.removesuffix(".yaml") for name in names if name.endswith(".yaml")))


@cache
def published(study: str) -> Published:
    """Return the published figures of a study. StudyError names the studies that have some."""
    if study not in available():
        raise StudyError(
            f"'{study:.60}' has no published figures to compare with; these have: {', '.join(available())}"
        )
    from ruamel.yaml import YAML

    folder = resources.files("weighbridge.features.replication")
    record: dict[str, Any] = YAML(typ="safe").load((folder / f"{study}.yaml").read_text())
    rows = csv.DictReader((folder / f"{study}.csv").read_text().splitlines())
    return Published.model_validate({**record, "figures": tuple(Figure.model_validate(row) for row in rows)})


def unused(study: Published) -> list[Figure]:
    """Return the figures without a comparison and without a reason to skip them. There should be none."""
    return [f for f in study.figures if not used(study, f) and not any(out.fits(f) for out in study.left_out)]


def used(study: Published, figure: Figure) -> bool:
    """Return whether any comparison, or table of spreads or pairs, uses a figure."""
    if any(table.fits(figure) for table in study.spreads) or any(table.fits(figure) for table in study.pairs):
        return True
    for compared in study.comparisons:
        if compared.statistic == "ratio":
            if figure in study.ratios(compared):
                return True
            continue
        environments = {*(compared.environments or study.environments), study.baseline}
        subject = (figure.workload, figure.metric, figure.unit)
        if subject != (compared.workload, compared.metric, compared.unit) or figure.environment not in environments:
            continue
        swept = {factor: value for factor, value in figure.levels.items() if factor in compared.levels}
        statistics = ("mean", "stdev") if compared.spread == "runs" else ("mean",)
        if any(study.find(compared, figure.environment, swept, statistic) == figure for statistic in statistics):
            return True
        if TEST in figure.levels and figure in study.tests(compared, figure.environment, swept):
            return True
    return False


def parameters_of(study: str) -> tuple[Parameter, ...]:
    """Return how a published study was run, as stated by its source, in order; empty for any other study."""
    text = (resources.files("weighbridge.features.replication") / "parameters.csv").read_text()
    rows = csv.DictReader(text.splitlines())
    return tuple(Parameter(row["parameter"], row["value"], row["unit"]) for row in rows if row["study"] == study)
