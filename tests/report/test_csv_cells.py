"""Cells of the exported CSV, byte for byte as polars 2.1.0 wrote them before this was our own."""

from pathlib import Path

import pytest

from weighbridge.report.export.csv import _write

FLOATS = {
    0.0: "0.0", 1.0: "1.0", -1.5: "-1.5", 0.1: "0.1", 1e15: "1000000000000000.0", 1e16: "1e+16",
    1.2345678901234568e17: "1.2345678901234568e+17", 1e-4: "0.0001", 1e-5: "0.00001", -1.5e-5: "-0.000015",
    1e-6: "1e-6", 1.234e-10: "1.234e-10", 1e-300: "1e-300", float("inf"): "inf", float("nan"): "NaN",
    1732577000.123456: "1732577000.123456", None: "", 3: "3.0",
}  # fmt: skip
TEXTS = {
    "": '""', "a": "a", "a,b": '"a,b"', 'q"x': '"q""x"', "a b": "a b", " lead": " lead", "it's": "it's", "é": "é",
    None: "", "#x": "#x", "1": "1", "null": "null", "true": "true", "a\nb": "a b", "=1": "'=1",
}  # fmt: skip


@pytest.mark.parametrize(("kind", "cells"), [(float, FLOATS), (str, TEXTS), (bool, {True: "true", False: "false"})])
def test_cells(tmp_path: Path, kind: type, cells: dict[object, str]):
    file = tmp_path / "cells.csv"
    _write(file, {"n": int, "cell": kind}, [{"n": n, "cell": value} for n, value in enumerate(cells)])
    expected = ["n,cell", *(f"{n},{cell}" for n, cell in enumerate(cells.values())), ""]
    assert file.read_bytes().decode() == "\n".join(expected)


def test_no_rows_are_a_line_of_names(tmp_path: Path):
    _write(tmp_path / "none.csv", {"a": str, "b": bool}, [])
    assert (tmp_path / "none.csv").read_text() == "a,b\n"
