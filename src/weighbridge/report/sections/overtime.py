"""The page's part about resource use by level and over time: what the template ``overtime.html.j2`` shows."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from weighbridge.analysis.metered import HOST, QUANTITIES, QuantityId
from weighbridge.analysis.overtime import Picture, pictures
from weighbridge.analysis.results import Analysis
from weighbridge.analysis.use_by_level import ByLevel, MedianUse, UseRow, by_level, never, unit_of
from weighbridge.model.address import grouped
from weighbridge.report.anchors import trials_id
from weighbridge.report.charts.base import MarkStyle
from weighbridge.report.charts.overtime import KIND_STYLES, of_prometheus, over_time
from weighbridge.report.charts.usage import use_against_level
from weighbridge.report.page import ChartPlace, PageCharts
from weighbridge.report.text.environments import display_name
from weighbridge.report.text.formatting import quantity
from weighbridge.report.text.overtime import interval_words, picture_caption
from weighbridge.store.run import RunStore


@dataclass(frozen=True, slots=True)
class UseCells:
    """One environment at one level: its medians, and what limited its trials (words, and their style)."""

    environment: str
    link: str
    cells: Sequence[str]
    limits: Sequence[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class UseTable:
    """The medians: a row for each level and environment, columns by place."""

    places: Sequence[tuple[str, int]]
    """Each with how many columns it has."""
    columns: Sequence[str]
    levels: Mapping[str, Sequence[UseCells]]
    unused: str

    @property
    def limited(self) -> bool:
        """Whether any trial was limited."""
        return any(row.limits for rows in self.levels.values() for row in rows)


@dataclass(frozen=True, slots=True)
class TimeCharts:
    """Resource use over the time of one block."""

    title: str
    chart: ChartPlace
    prometheus: ChartPlace
    further: int
    """Series of Prometheus that are not drawn."""
    kinds: Mapping[str, MarkStyle]
    """The kinds of CPU time with their colours."""
    caption: str


@dataclass(frozen=True, slots=True)
class UseSection:
    """One workload's resource use, by level and over time."""

    id: str
    workload: str
    title: str
    load: str
    table: UseTable
    levels: Sequence[tuple[str, ChartPlace]]
    """A small chart for each quantity that is used at all; none where there is one level only."""
    limits: str
    time: TimeCharts | None


def overtime_sections(store: RunStore, analysis: Analysis, page: PageCharts) -> list[UseSection]:
    """Give what the template shows of each workload; empty where the run has no readings over time."""
    drawn = {picture.group.title: picture for picture in pictures(store, analysis)}
    return [
        UseSection(
            id=f"use{number}",
            workload=use.group.workload,
            title=use.group.title,
            load=use.group.load or "level",
            table=_table(analysis, use),
            levels=_levels(analysis, page, use),
            limits=interval_words(use),
            time=_time(analysis, page, drawn[use.group.title]) if use.group.title in drawn else None,
        )
        for number, use in enumerate(by_level(store, analysis))
    ]


# -- by level --------------------------------------------------------------------------------------


def _levels(analysis: Analysis, page: PageCharts, use: ByLevel) -> list[tuple[str, ChartPlace]]:
    if len(use.group.levels) < 2:
        return []
    keys = sorted((key for key in use.quantities if not never(use, key)), key=_by_quantity)
    return [(f"{key.place}: {key.quantity}", page.place(use_against_level(analysis, use, key))) for key in keys]


def _by_quantity(key: QuantityId) -> tuple[int, bool]:
    """CPU of everyone before memory of everyone; sites before hosts."""
    return QUANTITIES.index(key.quantity), key.place.startswith(HOST)


def _table(analysis: Analysis, use: ByLevel) -> UseTable:
    unused = [key for key in use.quantities if never(use, key)]
    places = grouped((key for key in use.quantities if key not in unused), lambda key: key.place)
    columns = [key for keys in places.values() for key in keys]
    levels: dict[str, list[UseCells]] = {}
    for row in use.rows:
        cells = UseCells(
            environment=display_name(row.environment),
            link=trials_id(analysis, row.level.cell.label, row.environment),
            cells=[_median(row.use, key) for key in columns],
            limits=_limits(row),
        )
        levels.setdefault(row.level.text or use.group.title, []).append(cells)
    return UseTable(
        places=[(name, len(keys)) for name, keys in places.items()],
        columns=[key.quantity for key in columns],
        levels=levels,
        unused=", ".join(f"{key.place} {key.quantity}" for key in unused),
    )


def _median(use: Mapping[QuantityId, MedianUse], key: QuantityId) -> str:
    if key not in use:
        return "–"
    value, unit = use[key].middle, unit_of(key)
    return f"{value:.2f}" if unit == "CPUs" else quantity(value if value >= 0.5 else 0.0, unit)


def _limits(row: UseRow) -> list[tuple[str, str]]:
    """Return in how many trials the generator or a CPU limit held the load back, or the server broke."""
    generator = [(f"generator in {row.generator} of {row.trials}", "failed")] if row.generator else []
    throttled = [(f"{who} throttled in {count} of {row.trials}", "") for who, count in row.throttled.items()]
    broke = [(f"overloaded in {row.broke} of {row.trials}", "broke")] if row.broke else []
    return [*generator, *throttled, *broke]


# -- over time -------------------------------------------------------------------------------------


def _time(analysis: Analysis, page: PageCharts, picture: Picture) -> TimeCharts:
    kinds = {kind for panel in picture.panels for kind in panel.curves if kind}
    return TimeCharts(
        title=f"round {picture.block}",
        chart=page.place(over_time(analysis, picture)),
        prometheus=page.place(of_prometheus(analysis, picture)),
        further=picture.further,
        kinds={kind: style for kind, style in KIND_STYLES.items() if kind in kinds},
        caption=picture_caption(picture),
    )
