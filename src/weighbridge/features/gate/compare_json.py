"""The document of ``compare --json``: its types, from which its JSON Schema is made, and how they are filled.

docs/reference/json.md says what the keys mean.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

from pydantic import ConfigDict, with_config

from weighbridge.analysis.comparisons import cost_unit
from weighbridge.analysis.results import Comparison, MetricReport
from weighbridge.analysis.run_result import Number, document_json
from weighbridge.features.gate import between_runs as between
from weighbridge.features.gate.between_runs import ChangeRow, MetricChanges
from weighbridge.features.gate.compare_text import run_letter
from weighbridge.features.gate.compared_run import ComparedRun, FactChange, FactKind, Part, SettingChange
from weighbridge.report.export.disturbance import DisturbanceRow, disturbance_json
from weighbridge.report.export.json import penalty
from weighbridge.report.export.provenance import date_of
from weighbridge.statistics import Better, Interval, Scale, Verdict

COMPARE_VERSION: Final = 1


@dataclass(frozen=True, slots=True)
class RunRow:
    """One of the runs."""

    letter: str
    name: str
    run: str
    study: str
    question: str
    date: str | None
    version: str
    trusted: bool | None
    noise_floor: float | None
    disturbance: DisturbanceRow


@dataclass(frozen=True, slots=True)
class FactRow:
    """A fact that differs between the runs; null if a run does not have it."""

    kind: FactKind
    fact: str
    host: str
    environments: tuple[str, ...]
    before: str | None
    after: str | None
    of_machine: bool


@dataclass(frozen=True, slots=True)
class OnlyRow:
    """What only one of the two runs has; ``run`` is its letter."""

    part: Part
    name: str
    run: str


@dataclass(frozen=True, slots=True)
class CostLimits:
    """A cost with its limits; positive is worse."""

    cost: Number
    cost_low: Number
    cost_high: Number
    cost_unit: str | None


@dataclass(frozen=True, slots=True)
class CostInRun(CostLimits):
    """A cost in one of the runs."""

    verdict: Verdict
    blocks: int


@dataclass(frozen=True, slots=True)
class ChangeJson:
    """How much a cost changed.

    ``typical``, ``low`` and ``high``: the second run's cost ratio divided by the first's, or the second's difference
    minus the first's. ``change`` and its limits are the same in ``change_unit``, positive is worse;
    ``allowed_low`` and ``allowed_high`` are its limits with the session allowance.
    """

    scale: Scale
    typical: Number
    low: Number
    high: Number
    change: Number
    change_low: Number
    change_high: Number
    allowed_low: Number
    allowed_high: Number
    change_unit: str
    exploratory: bool
    adjusted_p: float | None
    noise_floor: Number
    allowance: float
    margin: float | None


@dataclass(frozen=True, slots=True)
class ChangedCost:
    """One environment in one metric, in both runs."""

    environment: str
    aa: bool
    workload: str
    level: Mapping[str, str]
    metric: str
    unit: str
    better: Better
    headline: bool
    resource_use: bool
    before: CostInRun
    after: CostInRun
    change: ChangeJson | None
    unknown: between.NoChange | None
    verdict: Verdict


@dataclass(frozen=True, slots=True)
class ChangedValue:
    """An environment's own medians in both runs, and the shift between them (positive is worse); without verdict."""

    environment: str
    workload: str
    level: Mapping[str, str]
    metric: str
    unit: str
    before: float
    after: float
    change: Number
    change_low: Number
    change_high: Number
    change_unit: str


@dataclass(frozen=True, slots=True)
class PairRow:
    """One run against the first; ``first`` and ``second`` are letters.

    ``disturbed_alike``: whether other load was about the same in both runs; else no cost is "different".
    """

    first: str
    second: str
    disturbed_alike: bool
    facts: tuple[FactRow, ...]
    on_purpose: tuple[FactRow, ...]
    settings: tuple[SettingChange, ...]
    only: tuple[OnlyRow, ...]
    costs: tuple[ChangedCost, ...]
    values: tuple[ChangedValue, ...]
    values_not_compared: tuple[between.WhyNoOwnValues, ...]


@with_config(ConfigDict(extra="forbid"))
@dataclass(frozen=True, slots=True)
class CompareDocument:
    """The document of ``weighbridge compare --json``."""

    version: Literal[1]
    runs: tuple[RunRow, ...]
    pairs: tuple[PairRow, ...]


# -- from a comparison -----------------------------------------------------------------------------


def compare_json(comparison: between.RunsCompared) -> dict[str, Any]:
    """Return the document of ``compare --json``."""
    runs = tuple(_run(run_letter(number), run) for number, run in enumerate(comparison.runs))
    pairs = tuple(_pair(run_letter(0), run_letter(number), pair) for number, pair in enumerate(comparison.pairs, 1))
    return document_json(CompareDocument(COMPARE_VERSION, runs, pairs))


def fact_rows(facts: Sequence[FactChange]) -> tuple[FactRow, ...]:
    """Return the rows of facts that changed."""
    return tuple(
        FactRow(fact.kind, fact.fact, fact.place or "here", fact.environments, fact.before or None,
                fact.after or None, fact.of_machine)
        for fact in facts
    )  # fmt: skip


def _run(letter: str, run: ComparedRun) -> RunRow:
    analysis, trust = run.analysis, run.analysis.trust
    return RunRow(
        letter, run.name, analysis.run_id, analysis.study, analysis.question, date_of(run.created), run.version,
        trust.trusted, trust.noise_floor, disturbance_json(analysis),
    )  # fmt: skip


def _pair(first: str, second: str, pair: between.RunPair) -> PairRow:
    return PairRow(
        first, second, between.disturbed_alike(pair.first, pair.second), fact_rows(pair.facts),
        fact_rows(pair.on_purpose), pair.settings,
        tuple(OnlyRow(each.part, each.name, second if each.second else first) for each in pair.only),
        changed_costs(pair),
        tuple(
            ChangedValue(own.environment, *_place(metric.before), own.before, own.after, *_limits(own.penalty),
                         cost_unit(own.scale, metric.before.unit))
            for metric in pair.metrics for own in metric.own_values
        ),
        pair.no_own_values,
    )  # fmt: skip


def changed_costs(pair: between.RunPair) -> tuple[ChangedCost, ...]:
    """Return the rows of every cost that both runs have."""
    return tuple(_cost(metric, row) for metric in pair.metrics for row in metric.rows)


def _cost(metric: MetricChanges, row: ChangeRow) -> ChangedCost:
    report = metric.before
    return ChangedCost(
        row.environment, row.aa, *_place(report), report.better, report.headline, report.resource_use,
        _in_run(row.before, report.unit), _in_run(row.after, metric.after.unit), change_json(row, report.unit),
        row.unknown, "inconclusive" if row.few else row.verdict,
    )  # fmt: skip


def _in_run(row: Comparison, unit: str) -> CostInRun:
    return CostInRun(**penalty(row.cost, unit), verdict=row.verdict, blocks=row.blocks)


def change_json(row: ChangeRow, unit: str) -> ChangeJson | None:
    """Return the change of a cost; None if there is none."""
    if (change := row.change) is None:
        return None
    allowed = change.penalty_with_allowance
    return ChangeJson(
        change.scale, change.typical, change.low, change.high, *_limits(change.penalty), allowed.low, allowed.high,
        cost_unit(change.scale, unit), change.exploratory, row.adjusted_p, change.floor, change.allowance,
        change.margin,
    )  # fmt: skip


def _place(report: MetricReport) -> tuple[str, Mapping[str, str], str, str]:
    return report.workload, report.level.factors, report.metric, report.unit


def _limits(change: Interval | None) -> tuple[float | None, float | None, float | None]:
    return (None, None, None) if change is None else (change.estimate, change.low, change.high)
