"""The page's part about resource use by level and over time: what the template ``overtime.html.j2`` shows."""

from collections.abc import Mapping
from typing import Any

from weighbridge.analysis.metered import HOST, QUANTITIES, Key
from weighbridge.analysis.overtime import BlockChoice, Picture, pictures
from weighbridge.analysis.results import Analysis
from weighbridge.analysis.use_by_level import ByLevel, Row, by_level, generator_limited, never, unit_of
from weighbridge.report.charts.by_level import use_against_level
from weighbridge.report.charts.overtime import KIND_COLOURS, of_prometheus, over_time
from weighbridge.report.page import FULL_PX, SMALL_PX, place
from weighbridge.report.text.formatting import plain, quantity
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
            "limits": _limits(use),
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


def _limits(use: ByLevel) -> str:
    """What the band round the medians is."""
    intervals = [value.interval for row in use.rows for value in row.use.values()]
    most = max((value.blocks for row in use.rows for value in row.use.values()), default=0)
    if most < 2:
        return "there is one block, and so no interval"
    if all(intervals):
        return "the band is the 95 % interval of the median, from order statistics"
    if not any(intervals):
        return "the band is from the smallest to the largest of the blocks: fewer than six have no 95 % interval"
    return "the band is the 95 % interval of the median, or all blocks where they are fewer than six"


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


def _row(analysis: Analysis, row: Row, columns: list[Key]) -> Shown:
    return {
        "environment": row.environment,
        "link": analysis.group(row.level.label, row.environment),
        "cells": [_median(row.use, key) for key in columns],
        "limit": _limit(row),
    }


def _median(use: Mapping[Key, Any], key: Key) -> str:
    if key not in use:
        return "–"
    value, unit = use[key].middle, unit_of(key)
    return f"{value:.2f}" if unit == "CPUs" else quantity(value if value >= 0.5 else 0.0, unit)


def _limit(row: Row) -> list[Shown]:
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
        "caption": _caption(picture),
    }


def _why(choice: BlockChoice) -> str:
    """Why it is this block."""
    return {
        "nearest": f"of {choice.complete} blocks the one whose results are nearest to their medians",
        "only": "the only one",
        "most-results": "the one with the most results",
        "first-of-most-results": "the first of those with the most results",
    }[choice.why]


def _caption(picture: Picture) -> str:
    said = [f"Block {picture.block} ({_why(picture.choice)}) in the order in which it ran"]
    said.append("a band is a trial in its environment's colour, with its level above: it leads to the raw output")
    if any(span.cut for span in picture.spans):
        said.append(f"dashed: time in which nothing of {picture.group.title} ran is cut out")
    if any(not span.trial.ok for span in picture.spans):
        said.append("cross: a trial without a value, broken under its load or failed")
    if any(generator_limited(span.trial) for span in picture.spans):
        said.append("triangle: the generator was the limit, not the server")
    step = f"the mean over at least {plain(picture.step_s, 2)} s" if picture.step_s else "one reading"
    said.append(f"each step is {step}")
    return ". ".join(each[0].upper() + each[1:] for each in said) + "."
