"""Resource use over the time of one block: a strip of its trials, and below it one panel for each quantity.

The page's script sets the panels' width.
"""

import itertools
from collections.abc import Mapping, Sequence
from typing import Any

from weighbridge.analysis.metered import KINDS
from weighbridge.analysis.overtime import Picture, StepCurve, TimelinePanel, TrialSpan
from weighbridge.analysis.results import Analysis
from weighbridge.analysis.use_by_level import generator_limited
from weighbridge.model.trial import PROMETHEUS
from weighbridge.report.charts.base import (
    SECONDS,
    Chart,
    MarkStyle,
    listed,
    styles,
)
from weighbridge.report.text.environments import display_name
from weighbridge.report.text.formatting import readable_unit
from weighbridge.report.text.trial_flags import flags_text

PANEL_PX, STRIP_PX, BETWEEN_PX = 54, 8, 22
WIDTH_PX = 900
"""The panels' width if no page sets it."""
ALARM = "#c43c35"
KIND_STYLES = {
    kind: MarkStyle(colour, "square")
    for kind, colour in zip(
        dict.fromkeys(KINDS.values()), ("#7f8ea3", "#b9a3d6", "#d9b48f", "#c2544d", "#8c6d31"), strict=True
    )
}
"""The colours of kinds of CPU time, which differ from the colours of environments."""


def over_time(analysis: Analysis, picture: Picture) -> Chart | None:
    """Return the readings of the meters over the time of a block; None if there are none."""
    return _panels(analysis, picture, picture.panels)


def of_prometheus(analysis: Analysis, picture: Picture) -> Chart | None:
    """Return what a Prometheus server had of the same time; None without one."""
    return _panels(analysis, picture, picture.queries)


def _panels(analysis: Analysis, picture: Picture, panels: Sequence[TimelinePanel]) -> Chart | None:
    if not panels:
        return None
    scheme = styles(analysis)
    names = list(dict.fromkeys(span.trial.environment for span in picture.spans))
    scale = {"domain": [display_name(name) for name in names], "range": [scheme[name].colour for name in names]}
    names_of, tables = _columns(panels), _Tables(picture.spans)
    views = [
        _view(picture, panel, columns, tables, scale, last=panel is panels[-1])
        for panel, columns in zip(panels, names_of, strict=True)
    ]
    spans = {"spans": [_span_row(span) for span in picture.spans], "bounds": _bounds(picture.spans)}
    return Chart(
        {
            "datasets": {**spans, "read": tables.rows()},
            "spacing": 6,
            "resolve": {"scale": {"color": "independent"}},
            "vconcat": [_strip(picture, scale), *views],
        },
        STRIP_PX + BETWEEN_PX + len(panels) * (PANEL_PX + BETWEEN_PX),
    )


def _columns(panels: Sequence[TimelinePanel]) -> list[dict[str, str]]:
    """Return the column of each panel's kinds in the rows of all."""
    count = itertools.count()
    return [{kind: f"v{next(count):02d}" for kind in panel.curves} for panel in panels]


class _Tables:
    """The readings, a row for each trial and its times: most quantities of a trial were read at the same times."""

    def __init__(self, spans: Sequence[TrialSpan]) -> None:
        self._spans = spans
        self._rows: dict[tuple[int, tuple[float, ...]], dict[str, Any]] = {}

    def add(self, column: str, curves: Mapping[int, StepCurve], factor: float) -> None:
        """Put the curves of one quantity, by span, in its column."""
        for number, (at, values) in curves.items():
            environment = self._spans[number].trial.environment
            row = self._rows.setdefault((number, at), {"n": number, "e": display_name(environment), "t": at})
            row[column] = [float(f"{value * factor:.3g}") for value in values]

    def rows(self) -> list[dict[str, Any]]:
        """Return all rows."""
        return list(self._rows.values())


def _span_row(span: TrialSpan) -> dict[str, Any]:
    trial = span.trial
    state = "no value" if not trial.ok else "generator" if generator_limited(trial) else ""
    return {
        "a": span.start, "b": span.end, "m": round((span.start + span.end) / 2, 2),
        "e": display_name(trial.environment), "l": span.level, "i": trial.id, "s": state,
        "o": trial.outcome, "f": flags_text(trial.flags) or "none", "w": round(span.wall_s), "h": f"#t{trial.id}",
    }  # fmt: skip


def _bounds(spans: Sequence[TrialSpan]) -> list[dict[str, Any]]:
    """Return where another level begins, and where time was cut out."""
    return [
        {"a": after.start, "c": int(after.cut)}
        for before, after in itertools.pairwise(spans)
        if after.cut or after.level != before.level
    ]


def _x(picture: Picture, **axis: Any) -> dict[str, Any]:
    scale = {"domain": [0, picture.spans[-1].end], "nice": False}
    return {"type": "quantitative", "title": None, "scale": scale, "axis": {"grid": False, **axis} if axis else None}


def _levels(spans: Sequence[TrialSpan]) -> list[tuple[float, str]]:
    """Return the middle of what ran of a level without another one between, and the level."""
    stretches: list[tuple[float, float, str]] = []
    for span in spans:
        if stretches and stretches[-1][2] == span.level:
            stretches[-1] = (stretches[-1][0], span.end, span.level)
        else:
            stretches.append((span.start, span.end, span.level))
    return [(round((start + end) / 2, 2), level) for start, end, level in stretches]


def _rectangles(scale: Mapping[str, Any], x: Mapping[str, Any], opacity: float) -> dict[str, Any]:
    """Return the trials as marked spans with their names, which link to their raw outputs."""
    tooltip = [
        {"field": "l", "title": "level"}, {"field": "e", "title": "environment"}, {"field": "i", "title": "trial"},
        {"field": "o", "title": "outcome"}, {"field": "f", "title": "flags"},
        {"field": "w", "title": "seconds after the round began"},
    ]  # fmt: skip
    return {
        "data": {"name": "spans"},
        "mark": {"type": "rect", "opacity": opacity, "cursor": "pointer"},
        "encoding": {
            "x": {**x, "field": "a"}, "x2": {"field": "b"}, "tooltip": tooltip, "href": {"field": "h"},
            "color": {"field": "e", "type": "nominal", "scale": scale, "legend": None},
        },
    }  # fmt: skip


def _strip(picture: Picture, scale: Mapping[str, Any]) -> dict[str, Any]:
    """Return only the trials, labelled with their levels; a cross has no value, a triangle hit the generator."""
    levels = _levels(picture.spans)
    at = [middle for middle, _ in levels]
    x = _x(
        picture, orient="top", values=at, domain=False, ticks=False, labelOverlap="greedy", labelPadding=3,
        labelExpr=listed(at, [text for _, text in levels]),
    )  # fmt: skip
    marked = {
        "data": {"name": "spans"},
        "transform": [{"filter": "datum.s"}],
        "mark": {"type": "point", "filled": True, "size": 45, "opacity": 1},
        "encoding": {
            "x": {"field": "m", "type": "quantitative"},
            "y": {"value": STRIP_PX / 2},
            "shape": {"field": "s", "type": "nominal", "legend": None,
                      "scale": {"domain": ["no value", "generator"], "range": ["cross", "triangle-up"]}},
            "color": {"value": ALARM},
        },
    }  # fmt: skip
    return {"width": WIDTH_PX, "height": STRIP_PX, "view": {"stroke": None},
            "layer": [_rectangles(scale, x, 0.9), marked]}  # fmt: skip


def _view(
    picture: Picture,
    panel: TimelinePanel,
    columns: Mapping[str, str],
    tables: _Tables,
    scale: Mapping[str, Any],
    *,
    last: bool,
) -> dict[str, Any]:
    """Return one quantity as steps in the colour of the environment, or of the kind of CPU time."""
    unit, factor = readable_unit(panel.most, panel.unit) if panel.unit != "CPUs" else ("CPUs", 1.0)
    for kind, column in columns.items():
        tables.add(column, panel.curves[kind], factor)
    kinds = [kind for kind in panel.curves if kind]
    fields = list(columns.values())
    name = panel.quantity if panel.place == PROMETHEUS else f"{panel.place}: {panel.quantity}"
    title = f"{name}{' by kind' if kinds else ''}, {unit}".rstrip(", ")
    x = _x(picture, orient="bottom", labelExpr=SECONDS) if last else _x(picture)
    by = {"field": "k", "scale": {"domain": fields, "range": [KIND_STYLES[each].colour for each in kinds]}}
    axis = {
        "title": title, "titleAngle": 0, "titleAlign": "left", "titleBaseline": "bottom", "titleX": 0, "titleY": -2,
        "titleLimit": 0, "tickCount": 2, "minExtent": 44, "maxExtent": 44,
    }  # fmt: skip
    # Within a trial alone: stacked by its encoding, an area would be drawn through the time between two trials too.
    stacked = {"stack": "v", "groupby": ["n", "t"], "sort": [{"field": "k"}], "as": ["low", "high"]}
    area = {
        "data": {"name": "read"},
        "transform": [
            {"filter": f"datum.{fields[0]}"},
            {"flatten": ["t", *fields]},
            {"fold": fields, "as": ["k", "v"]},
            stacked,
        ],
        "mark": {"type": "area", "interpolate": "step-after", "opacity": 0.85, "tooltip": None},
        "encoding": {
            "x": {**x, "field": "t"},
            "y": {"field": "low", "type": "quantitative", "axis": axis},
            "y2": {"field": "high"},
            "color": {**(by if kinds else {"field": "e", "scale": scale}), "type": "nominal", "legend": None},
            "detail": {"field": "n"},
        },
    }
    bounds = {
        "data": {"name": "bounds"},
        "mark": {"type": "rule", "color": "#8a93a1", "opacity": 0.7},
        "encoding": {
            "x": {**x, "field": "a"},
            "strokeDash": {"condition": {"test": "datum.c", "value": [3, 3]}, "value": [1, 0]},
        },
    }
    layers = [area, bounds, _rectangles(scale, x, 0.12)]
    return {"width": WIDTH_PX, "height": PANEL_PX, "resolve": {"scale": {"color": "independent"}}, "layer": layers}
