"""The page's part about resource use by level and over time: what the template ``overtime.html.j2`` shows."""

from collections.abc import Mapping
from typing import Any

from weighbridge.analysis.metered import HOST, QUANTITIES, Key
from weighbridge.analysis.overtime import Picture, pictures
from weighbridge.analysis.results import Analysis
from weighbridge.analysis.use_by_level import ByLevel, UseRow, by_level, never, unit_of
from weighbridge.report.anchors import group
from weighbridge.report.charts.by_level import use_against_level
from weighbridge.report.charts.overtime import KIND_COLOURS, of_prometheus, over_time
from weighbridge.report.page import FULL_PX, SMALL_PX, place
from weighbridge.report.text.formatting import quantity
from weighbridge.report.text.overtime import interval_words, picture_caption
from weighbridge.store.run import RunStore

Shown = dict[str, Any]


def overtime_sections(store: RunStore, analysis: Analysis, specs: dict[str, str]) -> list[Shown]:
    """Give what the template shows of each workload; empty where the run has no readings over time."""
    drawn = {picture.group.title: picture for picture in pictures(store, analysis)}
    found = []
    for number, use in enumerate(by_level(store, analysis)):
        picture = drawn.get(use.group.title)
        found.append({
            "id": f"use{number}",
            "title": use.group.title,
            "load": use.group.load or "level",
            "table": _table(analysis, use),
            "levels": _levels(analysis, specs, use, static=not number),
            "limits": interval_words(use),
            "time": _time(analysis, specs, picture, static=not number) if picture else None,
        })  # fmt: skip
    return found


# -- by level --------------------------------------------------------------------------------------


def _levels(analysis: Analysis, specs: dict[str, str], use: ByLevel, *, static: bool) -> list[Shown]:
    """A small chart for each quantity that is used at all; none where there is one level only."""
    if len(use.group.levels) < 2:
        return []
    keys = sorted((key for key in use.quantities if not never(use, key)), key=_by_quantity)
    width = SMALL_PX if static else 0  # all but the first workload's are folded
    return [
        {"name": _name(key), "chart": place(specs, use_against_level(analysis, use, key), static_px=width)}
        for key in keys
    ]


def _by_quantity(key: Key) -> tuple[int, bool]:
    """CPU of everyone before memory of everyone; sites before hosts."""
    return QUANTITIES.index(key.what), key.place.startswith(HOST)


def _name(key: Key) -> str:
    return f"{key.place}: {key.what}"


def _table(analysis: Analysis, use: ByLevel) -> Shown:
    """The medians: a row for each level and environment, columns by place."""
    unused = [key for key in use.quantities if never(use, key)]
    places: dict[str, list[Key]] = {}
    for key in [each for each in use.quantities if each not in unused]:
        places.setdefault(key.place, []).append(key)
    columns = [key for keys in places.values() for key in keys]
    levels: dict[str, list[Shown]] = {}
    for row in use.rows:
        levels.setdefault(row.level.text or use.group.title, []).append(_row(analysis, row, columns))
    return {
        "places": [(name, len(keys)) for name, keys in places.items()],
        "columns": [key.what for key in columns],
        "levels": levels,
        "limits": any(_limit(row) for row in use.rows),
        "unused": ", ".join(f"{key.place} {key.what}" for key in unused),
    }


def _row(analysis: Analysis, row: UseRow, columns: list[Key]) -> Shown:
    return {
        "environment": row.environment,
        "link": group(analysis, row.level.label, row.environment),
        "cells": [_median(row.use, key) for key in columns],
        "limit": _limit(row),
    }


def _median(use: Mapping[Key, Any], key: Key) -> str:
    if key not in use:
        return "–"
    value, unit = use[key].middle, unit_of(key)
    return f"{value:.2f}" if unit == "CPUs" else quantity(value if value >= 0.5 else 0.0, unit)


def _limit(row: UseRow) -> list[Shown]:
    """What the trials were flagged with that says which side was the limit."""
    found = []
    if row.generator:
        found.append({"text": f"generator in {row.generator} of {row.trials}", "style": "failed"})
    found += [
        {"text": f"{who} throttled in {count} of {row.trials}", "style": ""} for who, count in row.throttled.items()
    ]
    if row.broke:
        found.append({"text": f"broke in {row.broke} of {row.trials}", "style": "broke"})
    return found


# -- over time -------------------------------------------------------------------------------------


def _time(analysis: Analysis, specs: dict[str, str], picture: Picture, *, static: bool) -> Shown:
    width = FULL_PX if static else 0
    drawn = over_time(analysis, picture)
    watched = of_prometheus(analysis, picture)
    kinds = {kind for panel in picture.panels for kind in panel.curves if kind}
    return {
        "title": f"block {picture.block}",
        "chart": place(specs, drawn, static_px=width),
        "prometheus": place(specs, watched, static_px=width),
        "further": picture.further,
        "kinds": {kind: colour for kind, colour in KIND_COLOURS.items() if kind in kinds},
        "caption": picture_caption(picture),
    }
