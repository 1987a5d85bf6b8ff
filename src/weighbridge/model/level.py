"""A level of a workload: the value of each factor that is swept, and how it is written."""

import json
from collections.abc import Iterable, Mapping

Level = tuple[tuple[str, str], ...]
"""The swept factors of one cell with their values as written, sorted by factor; empty where nothing is swept."""


def level_label(level: Mapping[str, object] | Iterable[tuple[str, object]]) -> str:
    """A level as people read it: ``clients=50, size=1KiB``; empty where nothing is swept."""
    factors = level.items() if isinstance(level, Mapping) else level
    return ", ".join(f"{factor}={value}" for factor, value in factors)


def cell_label(workload: str, level: Mapping[str, object] | Iterable[tuple[str, object]]) -> str:
    """A workload with its level, as people read it: ``redis (clients=50)``."""
    label = level_label(level)
    return f"{workload} ({label})" if label else workload


def level_text(level: Level) -> str:
    """A level as a key: JSON of its factors, an empty object where nothing is swept."""
    return json.dumps(dict(level), sort_keys=True)
