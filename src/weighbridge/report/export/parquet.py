"""A run as Parquet files with the tables of `weighbridge.report.export.csv`, if PyArrow is installed."""

from collections.abc import Iterable, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from weighbridge.errors import Unavailable

_TYPES = {bool: "bool_", int: "int64", float: "float64", str: "string"}
"""The Arrow type of each type of a column."""
Tables = Iterable[tuple[str, Mapping[str, type], Sequence[Mapping[str, object]]]]
"""Tables by name: the type of each column, and rows in which a missing value is None or absent."""


def write_parquet(tables: Tables, directory: Path) -> list[Path]:
    """Write each table into `directory`, which is made if it is missing, and return the paths.

    Texts are as they are in the run: unlike in CSV, no spreadsheet takes them for formulas. Raises Unavailable.
    """
    parquet = optional_library("pyarrow", "pyarrow.parquet")
    directory.mkdir(parents=True, exist_ok=True)
    paths = []
    for name, columns, rows in tables:
        paths.append(directory / f"{name}.parquet")
        parquet.write_table(arrow_table(columns, rows), paths[-1])
    return paths


def arrow_table(columns: Mapping[str, type], rows: Sequence[Mapping[str, object]]) -> Any:
    """Return rows as a ``pyarrow.Table`` with typed columns, also if it has no rows. Raises Unavailable."""
    arrow = optional_library("pyarrow")
    arrays = {
        name: arrow.array([_plain(kind, row.get(name)) for row in rows], getattr(arrow, _TYPES[kind])())
        for name, kind in columns.items()
    }
    return arrow.table(arrays)


def _plain(kind: type, value: object) -> object:
    """Return a text as str: Arrow does not know the classes of codes."""
    return str(value) if kind is str and value is not None else value


def optional_library(name: str, module: str = "") -> Any:
    """Return a module of a library that Weighbridge does not require. Raises Unavailable if it is not installed."""
    try:
        return import_module(module or name)
    except ImportError as error:
        raise Unavailable(f"{name} is not installed: run 'pip install {name}'") from error
