"""The parts of the page about each workload and level, over its levels, and step by step."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from weighbridge.analysis.latency import PERCENTS, Latency, LatencyReport
from weighbridge.analysis.metered import PLACES
from weighbridge.analysis.overload import reason
from weighbridge.analysis.program_use import UNITS, ProgramUse
from weighbridge.analysis.results import Analysis, Comparison, LadderStep, MetricReport
from weighbridge.model.flag import FlagKind
from weighbridge.report import charts
from weighbridge.report.anchors import (
    comparison_id,
    ladder_id,
    levels_id,
    metric_id,
    resource_id,
    trials_id,
    workload_id,
)
from weighbridge.report.page import FULL_PX, HALF_PX, ChartPlace, PageCharts
from weighbridge.report.text.conditions import durability_of
from weighbridge.report.text.environments import display_name
from weighbridge.report.text.explanation import (
    HEADS,
    cause_lines,
    causes_title,
    explanation_rows,
)
from weighbridge.report.text.formatting import (
    Shown,
    in_percent,
    percent_text,
    plain,
    quantities,
    quantity,
    shared_unit,
    whole,
)
from weighbridge.report.text.metric_names import (
    PROGRAM_COLUMNS,
    difference_unit_of,
    metric_label,
    metric_name,
    value_unit,
)
from weighbridge.report.text.summary import baseline_sentence, remark_lines, swept
from weighbridge.report.text.verdicts import broke_count, judged_cost_text, open_text, reasoned_verdict
from weighbridge.statistics import cost_percent

EXPLAINED_ON_TOP = 2
"""The number of explained costs whose causes are on top of the page."""
UNFOLDED = 4
"""Primary metrics whose waterfalls are not folded; with more metrics, only the first is not."""


# -- rows ------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class CostLine:
    """One environment's cost on one metric in words, with its figures."""

    row: Comparison
    id: str
    """The row's id, for links to this comparison."""
    size: str
    """The cost as a number to sort by, positive is worse; empty if there is none."""
    cost: str
    median: str
    verdict: str
    open: str
    """The cost that an undecided comparison detects, and the rounds that would decide it."""
    broke: str
    """How often and why it was overloaded, if it has a cost nevertheless."""
    link: str
    """The id of its trials; empty if there is none."""
    geometric: str
    arithmetic: str
    slow: str
    p: str
    step: LadderStep | None = None
    """The step of the ladder that the cost belongs to."""


def _row(
    analysis: Analysis, report: MetricReport, row: Comparison, metric: str, step: LadderStep | None = None
) -> CostLine:
    has_trials = any(t.environment == row.environment for t in analysis.trials_of.get(report.label, ()))
    shown, by = value_unit(report), difference_unit_of(report.comparisons, report.unit)
    values = analysis.block_values(report, row.environment) if row.few else ()
    means = {"geometric": "–", "arithmetic": "–"}
    if row.cost is not None and row.cost.scale == "ratio":
        for name, interval in (("geometric", row.cost.geometric), ("arithmetic", row.cost.arithmetic)):
            if interval is not None:
                means[name] = in_percent(f"{cost_percent(interval, row.cost.better).estimate:.1f}")
    slow = row.slow
    return CostLine(
        row=row,
        id=comparison_id(analysis, metric, row.environment),
        size=f"{row.cost.penalty.estimate:.4g}" if row.cost and not row.few else "",
        cost=quantities(values, report.unit, shown_in=shown) if values else judged_cost_text(row, report.unit, by),
        median=quantity(row.value, report.unit, shown),
        verdict=reasoned_verdict(row),
        open=open_text(report, row),
        broke=f"{broke_count(row.broke)}: {row.broke.reason}" if row.broke and row.cost else "",
        link=trials_id(analysis, report.label, row.environment) if has_trials else "",
        slow=f"{slow.slow} of {slow.runs} (at most {in_percent(f'{100 * slow.high:.0f}')} of runs, 95% confidence)"
        if slow
        else "–",
        p="–" if row.adjusted_p is None else plain(row.adjusted_p, 2),
        step=step,
        **means,
    )


# -- metrics ---------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class MetricTable:
    """A metric as a table alone."""

    report: MetricReport
    id: str
    name: str
    baseline: str
    """The baseline's value and the noise floor; of few blocks every value."""
    baseline_link: str
    remarks: Sequence[str]
    rows: Sequence[CostLine]

    @property
    def differs(self) -> bool:
        """Whether some environment differs: the heading of the fold names the metric first."""
        return any(row.row.shown_as in ("different", "hidden") for row in self.rows)


@dataclass(frozen=True, slots=True)
class MetricArticle(MetricTable):
    """A metric with its charts."""

    forest: ChartPlace
    caption: str
    runs: ChartPlace
    distribution: ChartPlace


@dataclass(frozen=True, slots=True)
class _ShownRemarks:
    """Remarks that a metric does not repeat: lines shown before, and codes and flags shown elsewhere."""

    lines: set[str]
    without: set[str]
    kinds: Collection[FlagKind]


def _table(analysis: Analysis, metric: str, report: MetricReport, shown_remarks: _ShownRemarks) -> MetricTable:
    if any(row.few for row in report.comparisons):
        values = {name: analysis.block_values(report, name) for name in analysis.references(report)}
        shown = value_unit(report)
        baseline = ", ".join(
            f"{display_name(name)} {quantities(each, report.unit, shown_in=shown)}" for name, each in values.items()
        )
    else:
        baseline = baseline_sentence(analysis, report)
    return MetricTable(
        report=report,
        id=metric,
        name=metric_name(report),
        baseline=baseline,
        baseline_link=trials_id(analysis, report.label, analysis.baseline),
        remarks=remark_lines(report, shown_remarks.lines, shown_remarks.without, shown_remarks.kinds),
        rows=[_row(analysis, report, row, metric) for row in report.comparisons],
    )


def _article(
    analysis: Analysis,
    page: PageCharts,
    number: int,
    report: MetricReport,
    shown_remarks: _ShownRemarks,
    *,
    folded: bool,
) -> MetricArticle:
    table = _table(analysis, metric_id(analysis, report.label, number), report, shown_remarks)
    visible = not folded and report.headline
    return MetricArticle(
        table.report, table.id, table.name, table.baseline, table.baseline_link, table.remarks, table.rows,
        forest=page.place(charts.forest(analysis, report), static_px=HALF_PX if visible else 0),
        caption=charts.caption(analysis, report),
        runs=page.place(charts.runs(analysis, report)),
        distribution=page.place(charts.distribution(analysis, report)),
    )  # fmt: skip


# -- latency, resource use, programs ---------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class LatencyRow:
    """One environment's percentiles, each with the cost of the runs' own (empty: none), in words."""

    row: Latency
    requests: str
    cells: Sequence[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class LatencyArticle:
    """The percentiles of all requests of all runs."""

    name: str
    percents: Sequence[str]
    rows: Sequence[LatencyRow]
    curve: ChartPlace


def _latency(analysis: Analysis, page: PageCharts, report: LatencyReport) -> LatencyArticle:
    units = [shared_unit(column, "s") for column in zip(*(row.percentiles for row in report.rows), strict=True)]
    return LatencyArticle(
        name=metric_label(report.workload, report.metric, "s"),
        percents=[f"p{percent:g}" for percent in PERCENTS],
        rows=[
            LatencyRow(
                row,
                whole(row.requests),
                [_percentile(row, number, unit) for number, unit in enumerate(units)],
            )
            for row in report.rows
        ],
        curve=page.place(charts.percentile_curve(analysis, report)),
    )


def _percentile(row: Latency, number: int, unit: Shown) -> tuple[str, str]:
    cost = row.costs[number]
    percent = cost.percent if cost else None
    value = quantity(row.percentiles[number], "s", unit)
    return value, percent_text(percent, cost.blocks) if cost and percent else ""


@dataclass(frozen=True, slots=True)
class ProgramTable:
    """The resource use of each program and its site: heads of columns, and rows by role."""

    heads: Sequence[str]
    roles: Mapping[str, Sequence[Sequence[str]]]


def program_table(used: Sequence[ProgramUse]) -> ProgramTable:
    """Return the table of the programs' resource use; without rows if a workload has no program."""
    names = [name for name in PROGRAM_COLUMNS if any(name in each.medians for each in used)]
    units = {name: shared_unit([each.medians.get(name) for each in used], UNITS.get(name, "s")) for name in names}
    roles: dict[str, list[list[str]]] = {}
    for each in used:
        cells = [quantity(each.medians.get(name), UNITS.get(name, "s"), units[name]) for name in names]
        roles.setdefault(PLACES[each.role], []).append([display_name(each.environment), *cells])
    return ProgramTable([PROGRAM_COLUMNS[name] for name in names], roles)


# -- each workload and level -----------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class WorkloadSection:
    """One workload at one level."""

    id: str
    workload: str
    label: str
    durability: str
    articles: Sequence[MetricArticle]
    """The primary metric."""
    folded_articles: Sequence[MetricArticle]
    folded_summary: str
    latencies: Sequence[LatencyArticle]
    resources: Sequence[MetricTable]
    """The metrics with a significant cost first."""
    resources_summary: str
    programs: ProgramTable
    broke: str
    """Why its trials were overloaded; empty if none was."""


def workload_sections(
    analysis: Analysis,
    page: PageCharts,
    programs: Mapping[str, Sequence[ProgramUse]],
    kinds: Collection[FlagKind] = (),
    *,
    folded: bool = False,
) -> Iterator[WorkloadSection]:
    """Yield the section of each workload and level.

    The page shows flags of trials of these `kinds` elsewhere. Charts in `folded` sections need the page's script.
    """
    without = {"confounder", *({"exploratory"} if analysis.exploratory else ())}
    for label in analysis.labels:
        shown_remarks = _ShownRemarks(set(), without, kinds)
        own = [each for each in analysis.of(label) if not each.resource_use]
        articles = [_article(analysis, page, n, report, shown_remarks, folded=folded) for n, report in enumerate(own)]
        used_resources = [each for each in analysis.of(label) if each.resource_use]
        resources = [
            _table(analysis, resource_id(analysis, label, n), each, shown_remarks)
            for n, each in enumerate(used_resources)
        ]
        yield WorkloadSection(
            id=workload_id(analysis, label),
            workload=next((trial.workload for trial in analysis.trials_of.get(label, ())), ""),
            label=label,
            durability=durability_of(analysis, label),
            articles=articles[:1],
            folded_articles=articles[1:],
            folded_summary=_summary("more metrics", articles[1:]),
            latencies=[_latency(analysis, page, each) for each in analysis.latencies if each.label == label],
            resources=sorted(resources, key=lambda each: not each.differs),
            resources_summary=_summary("resource use", resources, others=False),
            programs=program_table(programs.get(label, ())),
            broke=reason(trial for trial in analysis.trials_of.get(label, ()) if trial.broke),
        )


def _summary(title: str, metrics: Sequence[MetricTable], *, others: bool = True) -> str:
    """Return the heading of folded metrics: ``more metrics: mean, p99 (significant or hidden); p50``."""
    different = [each.name for each in metrics if each.differs]
    rest = [each.name for each in metrics if not each.differs] if others else []
    parts = [f"{', '.join(different)} (significant)"] if different else []
    return ": ".join(filter(None, (title, "; ".join([*parts, *filter(None, [", ".join(rest)])]))))


# -- over the levels, and step by step -------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class LevelRow:
    """One level: the baseline's value, and each environment's cost."""

    level: str
    id: str
    """The id of its section; empty without one."""
    baseline: str
    cells: Sequence[CostLine]


@dataclass(frozen=True, slots=True)
class LevelTable:
    """A workload's headline costs at many levels: a row for each level, a column for each environment."""

    id: str
    workload: str
    metric: str
    environments: Sequence[tuple[str, str]]
    """Each with the name that is shown."""
    rows: Sequence[LevelRow]


def level_tables(analysis: Analysis) -> list[LevelTable]:
    """Return the table of each workload with many levels.

    Workloads under a rising load have curves instead; of fewer levels the matrix on top has each.
    """
    many, drawn = swept(analysis), {sweep.workload for sweep in analysis.sweeps}
    tables = []
    for workload in dict.fromkeys(each.workload for each in analysis.headlines):
        reports = [each for each in analysis.headlines if each.workload == workload]
        if workload not in many or not reports[0].comparisons or workload in drawn:
            continue
        shown = shared_unit([report.baseline_value for report in reports], reports[0].unit)
        rows = [
            LevelRow(
                level=report.level.label or report.label,
                id=workload_id(analysis, report.label) if report.label in analysis.labels else "",
                baseline=quantity(report.baseline_value, report.unit, shown),
                cells=[_row(analysis, report, row, metric_id(analysis, report.label)) for row in report.comparisons],
            )
            for report in reports
        ]
        names = [(row.environment, display_name(row.environment)) for row in reports[0].comparisons]
        tables.append(LevelTable(levels_id(workload), workload, metric_name(reports[0]), names, rows))
    return tables


@dataclass(frozen=True, slots=True)
class LadderArticle:
    """A ladder's steps on one metric with their cost, and its waterfall."""

    report: MetricReport
    unfolded: bool
    steps: Sequence[CostLine]
    remarks: Sequence[str]
    chart: ChartPlace
    caption: str


def ladder_articles(analysis: Analysis, page: PageCharts, kinds: Collection[FlagKind] = ()) -> list[LadderArticle]:
    """Return each ladder's steps; flags of trials of these `kinds` are said elsewhere."""
    articles = []
    headlines = sum(ladder.report.headline for ladder in analysis.ladder)
    for number, ladder in enumerate(analysis.ladder):
        unfolded = ladder.report.headline and number < (UNFOLDED if headlines <= UNFOLDED else 1)
        steps_alone = replace(ladder.report, comparisons=tuple(step.row for step in ladder.steps))
        drawn = page.place(charts.waterfall(analysis, ladder), static_px=FULL_PX if unfolded else 0)
        articles.append(
            LadderArticle(
                report=ladder.report,
                unfolded=unfolded,
                steps=[_row(analysis, steps_alone, step.row, ladder_id(number), step) for step in ladder.steps],
                remarks=remark_lines(steps_alone, set(), {"exploratory"}, kinds),
                chart=drawn,
                caption=charts.ladder_caption(analysis, ladder),
            )
        )
    return articles


@dataclass(frozen=True, slots=True)
class ExplanationArticle:
    """The causes of an environment's cost on one metric: sentences, a table and a waterfall."""

    title: str
    workload: str
    on_top: bool
    """Whether its causes are on top of the page, which has the causes of the largest costs."""
    causes: Sequence[str]
    heads: Sequence[str]
    rows: Sequence[Sequence[str]]
    sources: Sequence[str]
    chart: ChartPlace
    caption: str = charts.EXPLANATION_CAPTION


def explanation_articles(analysis: Analysis, page: PageCharts) -> list[ExplanationArticle]:
    """Return the causes of each explained cost, the largest first."""
    articles = []
    for number, explanation in enumerate(analysis.explanations):
        rows = explanation_rows(analysis, explanation)
        on_top = number < EXPLAINED_ON_TOP
        drawn = page.place(charts.explained(analysis, explanation), static_px=FULL_PX)
        articles.append(
            ExplanationArticle(
                title=causes_title(explanation),
                workload=explanation.report.workload,
                on_top=on_top,
                causes=cause_lines(analysis, explanation),
                heads=HEADS,
                rows=[row.cells for row in rows],
                sources=[f"{row.part}: {row.source}" for row in rows if row.source],
                chart=drawn,
            )
        )
    return articles
