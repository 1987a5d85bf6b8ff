"""The rows of a CSV that a run was exported to, as tests compare them."""

import csv
from pathlib import Path
from typing import Any


def csv_rows(file: Path) -> list[dict[str, Any]]:
    """Each row by the names of its columns; numbers as numbers, true and false as bool, an empty cell as None."""
    with file.open(newline="", encoding="utf-8") as lines:
        return [{name: _value(cell) for name, cell in row.items()} for row in csv.DictReader(lines)]


def _value(cell: str) -> Any:
    if cell in ("true", "false"):
        return cell == "true"
    for kind in (int, float):
        try:
            return kind(cell)
        except ValueError:
            continue
    return cell or None
