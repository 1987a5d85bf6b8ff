"""The recipes of docs/reference/run-file.md run on a kept run, if their libraries are installed."""

import re
from pathlib import Path

import pytest

import weighbridge
from weighbridge.analysis.analyse import analyse
from weighbridge.report.export.csv import tables
from weighbridge.report.export.parquet import write_parquet
from weighbridge.store.run import RunStore

PAGE = Path(__file__).parents[2] / "docs/reference/run-file.md"


def recipe(library: str) -> str:
    (code,) = [each for each in re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL) if library in each]
    return code


def test_the_recipe_for_pandas_gives_the_cost(runs: Path, monkeypatch: pytest.MonkeyPatch, capsys):
    pytest.importorskip("pandas")
    monkeypatch.chdir(runs / "weigh")
    exec(recipe("pandas"), {})
    (cost,) = weighbridge.load(runs / "weigh").costs.where(primary=True, control=False)
    assert float(capsys.readouterr().out) == pytest.approx(1 + (cost.cost or 0) / 100, rel=0.02)


def test_the_recipe_for_duckdb_reads_the_exported_tables(
    runs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys
):
    parquet = pytest.importorskip("pyarrow.parquet")
    pytest.importorskip("duckdb")
    with RunStore(runs / "weigh") as store:
        analysis = analyse(store)
        paths = write_parquet(tables(store, analysis), tmp_path / "tables")
        counts = {name: (len(columns), len(rows)) for name, columns, rows in tables(store, analysis)}
    for path in paths:
        table = parquet.read_table(path)
        assert (table.num_columns, table.num_rows) == counts[path.stem] > (0, 0)
    monkeypatch.chdir(tmp_path)
    exec(recipe("duckdb"), {})
    said = capsys.readouterr().out
    assert re.search(r"docker .*0\.1", said) and re.search(r"native .*0\.1", said)
