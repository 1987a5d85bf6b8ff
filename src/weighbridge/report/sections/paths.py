"""What changes on the path, for the page's template."""

from typing import Any

from weighbridge.analysis.paths import PathTable, path_tables
from weighbridge.analysis.results import Analysis
from weighbridge.report.text.paths import HEADS, figure_cells, figure_heads, first_of_each_client, path_cells, title


def path_sections(analysis: Analysis) -> list[dict[str, Any]]:
    """Give for the clients in each place: ``title``, one table with the paths, and those of the other workloads."""
    return [_section(group) for group in first_of_each_client(path_tables(analysis))]


def _section(group: list[PathTable]) -> dict[str, Any]:
    first, others = group[0], group[1:]
    return {
        "title": title(first),
        "label": first.label if first.metrics else "",
        "heads": [*HEADS, *figure_heads(first)],
        "rows": [[*path_cells(row), *figure_cells(row)] for row in first.rows],
        "others": [
            {
                "label": each.label,
                "heads": ["environment", *figure_heads(each)],
                "rows": [[row.environment, *figure_cells(row)] for row in each.rows],
            }
            for each in others
            if each.metrics
        ],
    }
