"""Compares a run with the published study that it repeats: tables of published and measured figures with verdicts.

All tables have one form. A row has one published figure and its proof (`replication.proof`), the run's
counterpart, their agreement, and the reason if nothing is measured. The published figure is a comparison, a spread of
runs, or a paired difference with its t-test.
"""

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, Literal, TypeVar

from weighbridge.analysis.comparisons import Unjudged, comparison, judged_together
from weighbridge.analysis.conditions import NO_HYPERVISOR
from weighbridge.analysis.overload import without_retries
from weighbridge.analysis.results import Analysis, Comparison, MetricReport
from weighbridge.features.replication import proof
from weighbridge.features.replication.proof import PublishedPair, PublishedRow, PublishedSpread
from weighbridge.features.replication.published import Compared, Measured, PairTable, Published, SpreadTable
from weighbridge.model.address import MetricId
from weighbridge.model.level import level_label
from weighbridge.report.text.environments import names_of
from weighbridge.report.text.metric_names import metric_words
from weighbridge.report.text.verdicts import broke_count
from weighbridge.statistics import Contrast, Interval
from weighbridge.statistics.one_sample import RunSpread, spread
from weighbridge.statistics.parametric import TTest, t_test
from weighbridge.statistics.sample_size import MIN_BLOCKS_VERDICT
from weighbridge.store.run import Value

Direction = Literal[
    "agrees", "disagrees", "measured inconclusive", "published inconclusive", "hidden", "not measured"
]
DIRECTIONS: dict[Direction, str] = {
    "agrees": "both differ with the same sign, or both are equivalent",
    "disagrees": "they differ with opposite signs, or one differs and the other is equivalent",
    "measured inconclusive": "the run proves neither",
    "published inconclusive": "the published spread proves neither",
    "hidden": "both sides of the run hit the same limit, which hides a difference",
    "not measured": "the run has no such comparison",
}
"""The verdicts on a published comparison, and their meanings."""
SIGN_ONLY = "sign only"
"""The addition to a verdict on a comparison that was published without a spread."""
INCONCLUSIVE = "inconclusive"
SUMMARISED = {"agrees": "agrees", "disagrees": "disagrees", "hidden": "hidden", "not measured": "not measured"}
"""Directions that a summary names; the two others are inconclusive."""
OUTCOMES = ("agrees", "disagrees", INCONCLUSIVE, "hidden", "not measured")
"""The counts of a summary."""
Agreement = Literal[
    "sign and significance", "sign", "significance", "neither", "sign, in too few blocks",
    "other sign, in too few blocks", "not measured",
]  # fmt: skip
"""The verdicts on a paired difference.

With fewer than `MIN_BLOCKS_VERDICT` pairs a test is hardly ever significant, so it agrees with nothing."""
SIGNIFICANT = 0.05
"""The level at which the published study, and this table, call a difference significant."""
Size = Literal["inside", "overlaps", "outside", "not compared", "not measured"]
SIZES: dict[Size, str] = {
    "inside": "the published value lies inside of the measured interval",
    "overlaps": "the published value lies outside of it, but the two intervals overlap",
    "outside": "the published value, with its entire interval if it has one, lies outside of it",
    "not compared": "a paired difference, other units, emulation, or no interval: sizes cannot be compared",
    "not measured": "the run has no such value",
}
"""Where a published value lies, and what this means. It says nothing about the direction."""

SourceT = TypeVar("SourceT")
PublishedT = TypeVar("PublishedT")
MeasuredT = TypeVar("MeasuredT")
VerdictT = TypeVar("VerdictT")


@dataclass(frozen=True, slots=True)
class FigureRow(Generic[PublishedT, MeasuredT, VerdictT]):
    """One published figure and its measured counterpart."""

    name: str
    """The displayed names of the environments, with hypervisors if measured, and the level."""
    published: PublishedT
    measured: MeasuredT | None
    unit: str
    """The unit of the measured metric."""
    verdict: VerdictT
    """How the two tests agree; None if they are not compared."""
    reason: str = ""
    """Why nothing is measured; empty if something is."""
    judged: Comparison | None = None
    """The comparison by the run's own rules: a ratio with its interval and its verdict; None for a spread."""
    emulated: bool = False
    """Whether a side was measured under emulation; sizes are then not compared with those of hardware."""
    size: Size = "not measured"
    """Where the published value lies. Two costs of the same sign can differ in size."""

    @property
    def outside(self) -> bool:
        """Return whether the published figure, or its entire interval, lies outside of the measured interval."""
        return self.size == "outside"


@dataclass(frozen=True, slots=True)
class FigureTable(Generic[SourceT, PublishedT, MeasuredT, VerdictT]):
    """One published table with its rows."""

    source: SourceT
    rows: tuple[FigureRow[PublishedT, MeasuredT, VerdictT], ...]


ComparedRow = FigureRow[PublishedRow, Comparison, Direction]
SpreadRow = FigureRow[PublishedSpread, RunSpread, None]
PairRow = FigureRow[PublishedPair, TTest, Agreement]
ComparedTable = FigureTable[Compared, PublishedRow, Comparison, Direction]
Spreads = FigureTable[SpreadTable, PublishedSpread, RunSpread, None]
"""The spread of runs, as published and in the run."""
Pairs = FigureTable[PairTable, PublishedPair, TTest, Agreement]
"""Paired differences with their t-test."""


@dataclass(frozen=True, slots=True)
class Replication:
    """A complete run and its published study."""

    study: Published
    analysis: Analysis
    tables: tuple[ComparedTable, ...]
    spreads: tuple[Spreads, ...] = ()
    pairs: tuple[Pairs, ...] = ()

    @property
    def rows(self) -> list[ComparedRow]:
        """Return the published comparisons of all tables."""
        return [row for table in self.tables for row in table.rows]

    @property
    def counts(self) -> dict[Direction, int]:
        """Return the number of rows for each direction."""
        counts = Counter(row.verdict for row in self.rows)
        return {direction: counts[direction] for direction in DIRECTIONS}

    @property
    def outcomes(self) -> dict[str, dict[str, int]]:
        """Return the number of comparisons for each environment and each of the `OUTCOMES`."""
        counts: dict[str, Counter[str]] = {}
        for row in self.rows:
            counts.setdefault(row.published.environment, Counter())[SUMMARISED.get(row.verdict, INCONCLUSIVE)] += 1
        return {name: {each: number[each] for each in OUTCOMES} for name, number in counts.items()}

    @property
    def all_emulated(self) -> bool:
        """Return whether every measured comparison has an emulated side."""
        measured = [row for row in self.rows if row.measured is not None]
        return bool(measured) and all(row.emulated for row in measured)

    @property
    def summary(self) -> list[tuple[str, str]]:
        """Return a line for each environment: ``agrees 3, disagrees 1, inconclusive 2, not measured 4``."""
        return [
            (name, ", ".join(f"{each} {number}" for each, number in counts.items() if number or each in OUTCOMES[:3]))
            for name, counts in self.outcomes.items()
        ]

    def name(self, environment: str) -> str:
        """Return an environment's name with the hypervisors around it in the run."""
        return _name(self.analysis, environment)


def _name(analysis: Analysis, environment: str) -> str:
    return names_of(analysis).get(environment, environment)


@dataclass(frozen=True, slots=True)
class Offer:
    """The environments and workloads that one of the study's profiles measures."""

    profile: str
    workloads: frozenset[str]
    environments: frozenset[str]


def replication(analysis: Analysis, study: Published, offers: Sequence[Offer] = ()) -> Replication:
    """Compare a run's analysis with the published figures. Pure. ``offers`` describe the study's profiles.

    Measured verdicts form a separate family of exactly the comparisons that the source publishes.
    """
    published = [
        (compared, tuple(proof.rows(study, compared, analysis.equivalence))) for compared in study.comparisons
    ]
    measured = judged_rows(analysis, published)
    return Replication(
        study,
        analysis,
        tuple(
            FigureTable(
                compared, tuple(_compared_row(study, analysis, compared, row, offers, measured) for row in rows)
            )
            for compared, rows in published
        ),
        tuple(FigureTable(table, tuple(_spread_rows(study, analysis, table))) for table in study.spreads),
        tuple(FigureTable(table, tuple(_pair_rows(study, analysis, table))) for table in study.pairs),
    )


def report_of(analysis: Analysis, measured: Measured, level: Mapping[str, str]) -> MetricReport | None:
    """Return the run's metric for published figures at a level; None if the run does not have it."""
    key = measured.workload, measured.metric, {**measured.level, **level}
    return next((each for each in analysis.metrics if (each.workload, each.metric, each.level.factors) == key), None)


# -- comparisons of a run that a published study asks for ------------------------------------------

ComparedPair = tuple[MetricId, str, str]
"""A metric, an environment, and the environment that it is compared with."""


def compare_environments(analysis: Analysis, report: MetricReport, environment: str, against: str) -> Unjudged | None:
    """Compare an environment with the baseline or with another one; None if no block has both."""
    values = [*_values(analysis, report)]
    if not values:
        return None
    row, p_values = comparison(values, analysis.plan, environment, against)
    return None if row.cost is None else Unjudged(report, row, p_values)


def judged_rows(
    analysis: Analysis, published: Iterable[tuple[Compared, Sequence[PublishedRow]]]
) -> dict[ComparedPair, Comparison]:
    """Return a run's verdicts on the published comparisons, each once even if it has several published figures."""
    pairs = dict.fromkeys(
        (report.metric_id, row.environment, row.against or analysis.baseline)
        for compared, rows in published
        for row in rows
        if (report := report_of(analysis, compared.measured, row.level)) is not None
    )
    reports = {each.metric_id: each for each in analysis.metrics}
    compared = {pair: compare_environments(analysis, reports[pair[0]], *pair[1:]) for pair in pairs}
    family = {pair: each for pair, each in compared.items() if each is not None}
    return dict(zip(family, judged_together([*family.values()], analysis.context), strict=True))


def compare_pair(analysis: Analysis, report: MetricReport, environment: str, against: str) -> Comparison | None:
    """Compare two environments alone, as a family of one."""
    pair = compare_environments(analysis, report, environment, against)
    return None if pair is None else judged_together([pair], analysis.context)[0]


def _values(analysis: Analysis, report: MetricReport) -> Iterator[Value]:
    """Yield the metric's values, except repetitions of trials that were overloaded."""
    for trial in without_retries(analysis.trials_of.get(report.label, ())):
        if report.metric in trial.values:
            yield Value(
                trial.id, trial.block, trial.attempt, trial.environment, trial.workload, trial.level, report.metric,
                report.unit, report.better, trial.values[report.metric], trial.started_at, trial.flags,
            )  # fmt: skip


# -- rows ------------------------------------------------------------------------------------------


def _compared_row(
    study: Published, analysis: Analysis, compared: Compared, row: PublishedRow, offers: Sequence[Offer],
    measured: Mapping[ComparedPair, Comparison],
) -> ComparedRow:  # fmt: skip
    report, both = (
        report_of(analysis, compared.measured, row.level),
        (row.environment, row.against or analysis.baseline),
    )
    counterpart = measured.get((report.metric_id, *both)) if report else None
    level = level_label(row.level)
    if report is None or counterpart is None or counterpart.cost is None:
        name = f"{row.environment} / {row.against}" if row.against else row.environment
        reason = _why_no_comparison(study, analysis, row, report, offers)
        return FigureRow(
            f"{name} ({level})" if level else name, row, None, report.unit if report else "", "not measured", reason
        )
    name = _name(analysis, row.environment)
    name = f"{name} / {_name(analysis, row.against)}" if row.against else name
    emulated = any(analysis.isolation.get(side, NO_HYPERVISOR).emulated for side in both)
    hidden = counterpart.verdict == "hidden"
    return FigureRow(
        f"{name} ({level})" if level else name, row, counterpart, report.unit,
        "hidden" if hidden else direction(row, counterpart, analysis.equivalence or 0.0), judged=counterpart,
        emulated=emulated,
        size="not compared" if emulated else _size(row, counterpart, report.unit),
    )  # fmt: skip


def _size(row: PublishedRow, measured: Comparison, unit: str) -> Size:
    cost, compared = measured.cost, row.compared
    if cost is None or cost.scale != compared.scale:
        return "not compared"
    if cost.scale == "difference" and unit != compared.shown_unit:
        return "not compared"
    if cost.blocks < 2 or (math.isinf(cost.high) and cost.low in (0.0, -math.inf)):  # it has no limits
        return "not compared"
    return size_of(row.effect, row.interval, (cost.low, cost.high))


def size_of(value: float, interval: Interval | None, limits: tuple[float, float]) -> Size:
    """Return where a published value, with its interval if it has one, lies; ``limits`` are the measured ones."""
    low, high = limits
    if low <= value <= high:
        return "inside"
    first, last = (interval.low, interval.high) if interval is not None else (value, value)
    return "outside" if last < low or first > high else "overlaps"


def direction(row: PublishedRow, measured: Comparison, margin: float) -> Direction:
    """Return whether a measured comparison has the direction of the published one.

    If one is different and the other equivalent they disagree, unless the estimate of the different one lies within
    ``margin``: it then does not contradict the other, and is inconclusive.
    """
    cost, own_proof, verdict = measured.cost, row.proof, measured.verdict
    if cost is None or verdict == "inconclusive":
        return "measured inconclusive"
    if own_proof == "inconclusive" or (own_proof == "sign only" and (row.sign == 0 or verdict == "equivalent")):
        return "published inconclusive"
    if "equivalent" not in (verdict, own_proof):  # both are different
        none = 1.0 if cost.scale == "ratio" else 0.0
        return "agrees" if (cost.typical > none) - (cost.typical < none) == row.sign else "disagrees"
    if verdict != own_proof and verdict == "equivalent":
        return "published inconclusive" if _small(row.effect, row.compared.scale, margin) else "disagrees"
    if verdict != own_proof:
        return "measured inconclusive" if _small(cost.typical, cost.scale, margin) else "disagrees"
    return "agrees"


def _small(effect: float, scale: str, margin: float) -> bool:
    return scale == "ratio" and effect > 0 and abs(math.log(effect)) <= math.log1p(margin)


def _spread_rows(study: Published, analysis: Analysis, table: SpreadTable) -> Iterator[SpreadRow]:
    report = report_of(analysis, table.measured, {})
    for printed in proof.spread_rows(study, table):
        measured = spread(analysis.block_values(report, printed.environment)) if report is not None else None
        name, reason = _name(analysis, printed.environment), ""
        if measured is None:
            name, reason = printed.environment, _why_not_measured(study, analysis, printed.environment)
            reason = reason or f"fewer than two blocks of {table.measured.workload} in this run"
        emulated = analysis.isolation.get(printed.environment, NO_HYPERVISOR).emulated
        yield FigureRow(
            name, printed, measured, report.unit if report is not None else "", None, reason,
            emulated=emulated, size=_size_of_spread(printed, measured, emulated=emulated),
        )  # fmt: skip


def _size_of_spread(printed: PublishedSpread, measured: RunSpread | None, *, emulated: bool) -> Size:
    if measured is None:
        return "not measured"
    if emulated or printed.variation is None or measured.limits is None:
        return "not compared"
    return size_of(printed.variation, None, measured.limits)


def _pair_rows(study: Published, analysis: Analysis, table: PairTable) -> Iterator[PairRow]:
    report = report_of(analysis, table.measured, {})
    for printed in proof.pair_rows(study, table):
        both, test, rule = (printed.first, printed.second), None, None
        if report is not None:
            contrast = Contrast.between(*both)
            arms = [analysis.by_block(report, name) for name in contrast.arms]
            blocks = sorted(arms[0].keys() & arms[1].keys())
            test = t_test(contrast.effects([[arm[block] for block in blocks] for arm in arms], "difference"))
            rule = compare_pair(analysis, report, *both)
        name, reason = f"{printed.first} − {printed.second}", ""
        if test is not None:
            first, second = (_name(analysis, each) for each in both)
            both_there = second == printed.second + first.removeprefix(printed.first)
            name = f"{printed.first if both_there else first} − {second}"
        else:
            reason = next(filter(None, (_why_not_measured(study, analysis, each) for each in both)), "")
            reason = reason or f"fewer than two blocks of {table.measured.workload} at this level in this run"
        size: Size = "not measured" if test is None else "not compared"  # both depend on the speed of the machine
        unit = report.unit if report else ""
        yield FigureRow(name, printed, test, unit, agreement(printed, test), reason, rule, size=size)


def agreement(printed: PublishedPair, measured: TTest | None) -> Agreement:
    """Return the agreement between the measured and the published test of a difference."""
    if measured is None:
        return "not measured"
    sign = measured.mean * printed.mean > 0
    if measured.pairs < MIN_BLOCKS_VERDICT:
        return "sign, in too few blocks" if sign else "other sign, in too few blocks"
    significant = measured.p is not None and measured.p < SIGNIFICANT
    same_significance = significant == (printed.p < SIGNIFICANT)
    if sign:
        return "sign and significance" if same_significance else "sign"
    return "significance" if same_significance else "neither"


# -- why nothing is measured -----------------------------------------------------------------------


def _why_impossible(study: Published, analysis: Analysis, environment: str) -> str:
    """Return why no profile can measure an environment here: no such kind, or it could not be opened; else ""."""
    if environment in study.no_environment:
        return f"{environment}: {study.no_environment[environment]}"
    left_out = next((each for each in analysis.left_out if each.environment == environment), None)
    return f"{environment} was skipped: {left_out.reason}" if left_out else ""


def _why_not_measured(study: Published, analysis: Analysis, environment: str) -> str:
    impossible = _why_impossible(study, analysis, environment)
    return impossible or ("" if environment in analysis.environments else f"{environment} is not in this run")


def _why_no_comparison(
    study: Published, analysis: Analysis, row: PublishedRow, report: MetricReport | None, offers: Sequence[Offer]
) -> str:
    """Return why a published comparison has no measured one: overload, a failed opening, or absence from the run."""
    both = row.environment, row.against or analysis.baseline
    if broke := _broke(analysis, row, both):
        return broke
    for reason in (_why_impossible(study, analysis, name) for name in both):
        if reason:
            return reason
    target = row.compared.measured
    reports = [each for each in analysis.metrics if each.workload == target.workload]
    reason = next(filter(None, (_why_not_measured(study, analysis, name) for name in both)), "")
    if not reason and not reports:
        reason = f"no finished trial of {target.workload}"
    elif not reason and report is None:
        has_metric = any(each.metric == target.metric for each in reports)
        reason = "this level is not in the run"
        reason = reason if has_metric else f"{target.workload} has no {metric_words(target.metric)} in this run"
    return (reason or "no block has both values") + ("" if reports else _offered(row, offers))


def _broke(analysis: Analysis, row: PublishedRow, environments: Sequence[str]) -> str:
    """Return how often and why the environment or the baseline was overloaded at this level; empty if never."""
    target = row.compared.measured
    level, workload = {**target.level, **row.level}, target.workload
    broken = {
        arm.environment: broke
        for arm, broke in analysis.broken.items()
        if (arm.cell.workload, arm.cell.level.factors) == (workload, level)
    }
    return "; ".join(
        f"{name} {broke_count(broken[name])}: {broken[name].reason}" for name in environments if name in broken
    )


def _offered(row: PublishedRow, offers: Sequence[Offer]) -> str:
    """Return the profile with the fewest workloads that measures it; empty if there is none."""
    workload = row.compared.measured.workload
    fitting = [each for each in offers if workload in each.workloads and row.environment in each.environments]
    if not fitting:
        return ""
    return f": --profile {min(fitting, key=lambda each: len(each.workloads)).profile} measures it"
