"""The matrix in the page: what the template shows of it."""

from typing import Any

from weighbridge.analysis.results import Analysis
from weighbridge.report.sections.metrics import levels_id, metric_id
from weighbridge.report.text.matrix import Cell, MatrixRow, large, matrix, native, small, whole
from weighbridge.report.text.verdicts import effect

MOST_WIDE = 5
"""Environments up to which a page has room for values on one line with their units."""
NO_BREAK = "\u00a0"


def matrix_section(analysis: Analysis) -> dict[str, Any]:
    """Return environments and rows; ``rows`` is empty where there is nothing to compare."""
    found = matrix(analysis)
    rows = [_row(analysis, row) for row in found.rows] if found.environments else []
    many = len(found.environments) > MOST_WIDE
    for cell in (cell for row in rows for cell in row["cells"] if many):
        number, space, unit = cell["large"].rpartition(NO_BREAK)
        values = analysis.few and number  # whose unit stands beside the row's title, and why there is no cost on top
        cell["large"] = number if values else f"{number} {unit}" if space else unit
        cell["small"] = "" if values else cell["small"]
    return {"environments": found.environments, "rows": rows, "many": many}


def _row(analysis: Analysis, row: MatrixRow) -> dict[str, Any]:
    link = _link(analysis, row)
    return {
        "title": row.title,
        "native": native(analysis, row),
        "link": link,
        "cells": [_cell(row, cell) for cell in row.cells],
    }


def _cell(row: MatrixRow, cell: Cell | None) -> dict[str, str]:
    return {
        "large": large(row, cell),
        "small": small(row, cell),
        "style": _style(cell),
        "title": whole(row, cell) if cell else "not measured here",
    }


def _style(cell: Cell | None) -> str:
    """The classes of a cell: the verdict, and whether it is a gain."""
    if cell is None:
        return ""
    found = [effect(*each) for each in cell.different]
    gain = bool(found) and not any(each is not None and each.worse for each in found)
    return f"{cell.shown_as} gain" if gain else cell.shown_as


def _link(analysis: Analysis, row: MatrixRow) -> str:
    """The id of what tells more: the metric, or the curve or the table of its levels."""
    first = row.reports[0]
    for number, sweep in enumerate(analysis.sweeps):
        if sweep.workload == first.workload and any(level.level == first.level for level in sweep.levels):
            return f"load{number}"
    return levels_id(first.workload) if row.levels > 1 else metric_id(analysis.labels.index(first.label), 0)
