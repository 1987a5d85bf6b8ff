import csv
import json
from pathlib import Path

import polars
import pytest

from weighbridge.model.measurement import Outcome
from weighbridge.report.machine import JSON_SCHEMA, report_json, write_csv

from .made_up_runs import LOSS, TCP, THROUGHPUT, Workload

KEYS = {
    "environment", "workload", "metric", "level", "unit", "better", "baseline_value", "typical", "low", "high",
    "geometric", "arithmetic", "blocks", "exploratory", "resource_use", "verdict", "hidden", "flags",
}  # fmt: skip


def test_the_document_has_the_promised_shape(run):
    document = report_json(run(costs={"bridge": 1.25, "host": 1.0}))
    json.dumps(document, allow_nan=False)
    assert list(document) == ["study", "run", "schema", "noise_floor", "trusted", "costs", "ladder", "percentiles",
                              "curves", "bottlenecks", "broke"]  # fmt: skip
    assert document["study"] == "first-look" and document["run"] == "20240101-abcd"
    assert document["schema"] == JSON_SCHEMA and document["trusted"] is True and 0 < document["noise_floor"] < 0.05
    assert all(set(cost) == KEYS for cost in document["costs"])
    bridge = document["costs"][0]
    assert bridge["environment"] == "bridge" and bridge["level"] == {} and bridge["unit"] == "bit/s"
    assert bridge["low"] < 0.8 < bridge["high"] and bridge["low"] <= bridge["typical"] <= bridge["high"]
    assert abs(bridge["geometric"] - 0.8) < 0.02 and abs(bridge["arithmetic"] - 0.8) < 0.02
    assert bridge["blocks"] == 10 and bridge["exploratory"] is False and bridge["verdict"] == "different"
    aa = [cost for cost in document["costs"] if cost["environment"] == "native-again"]
    assert all(any(flag.startswith("aa: ") for flag in cost["flags"]) for cost in aa) and len(aa) == 2


def test_what_cannot_be_given_is_null(run):
    lossy = Workload("udp", [(LOSS, 0.05, 2.0)], (("rate", "10Mbit/s"),))
    zero = report_json(run(costs={"bridge": 1.0}, workloads=[lossy]))["costs"][0]
    assert zero["typical"] is zero["low"] is zero["geometric"] is None and zero["level"] == {"rate": "10Mbit/s"}
    assert any(flag.startswith("difference: ") and "points" in flag for flag in zero["flags"])
    one = report_json(run(costs={"bridge": 1.2}, blocks=1))["costs"][0]
    assert one["low"] is one["high"] is None and one["exploratory"] is True
    none = report_json(run(costs={"bridge": 1.2}, blocks=0))
    assert none["costs"] == [] and none["trusted"] is None and none["noise_floor"] is None


def test_exploratory_verdicts_are_the_same_words_for_machines(run):
    document = report_json(run(costs={"bridge": 1.5}, blocks=3))
    bridge = document["costs"][0]
    assert bridge["verdict"] == "different" and bridge["exploratory"] is True and document["trusted"] is True


def test_csv_comes_back_as_it_was(run, tmp_path):
    store = run(costs={"bridge": 1.25}, workloads=[TCP], failing={(2, "bridge"): Outcome.DEADLINE}, study="a,b")
    measurements, costs = write_csv(store, tmp_path / "tables")
    table = polars.read_csv(measurements)
    values = {(v.trial_id, v.metric): v.value for v in store.values()}
    good = table.filter(polars.col("outcome") == "ok")
    assert {(r["trial"], r["metric"]): r["value"] for r in good.to_dicts()} == values
    bad = table.filter(polars.col("outcome") == "deadline").to_dicts()
    assert len(bad) == 1 and bad[0]["value"] is None and bad[0]["message"].startswith("iperf3: error")
    assert table["order"].to_list() == sorted(table["order"].to_list()) and table["order"][0] == 1
    rows = polars.read_csv(costs).to_dicts()
    assert [r["environment"] for r in rows] == ["bridge", "native-again"] * 2
    expected = report_json(store)["costs"][0]
    assert rows[0]["typical"] == expected["typical"] and rows[0]["scale"] == "ratio" and rows[1]["aa"] is True


def test_csv_of_nothing_has_its_columns(run, tmp_path):
    measurements, costs = write_csv(run(costs={}, blocks=0), tmp_path)
    assert measurements.read_text().startswith("trial,block,attempt,order,environment,workload,level,metric,unit")
    assert costs.read_text().startswith("environment,workload,level,metric,unit,better,baseline_value")


def test_csv_keeps_differences(run, tmp_path):
    lossy = Workload("udp", [(LOSS, 0.05, 2.0), (THROUGHPUT, 1e7, 0.001)])
    _, costs = write_csv(run(costs={"bridge": 1.0}, workloads=[lossy]), tmp_path)
    first = polars.read_csv(costs).to_dicts()[0]
    assert first["scale"] == "difference" and first["typical"] is not None and first["geometric"] is None


@pytest.mark.parametrize("text", ["=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\n=1", "\x1b[31m=1", "a\r\n=1"])
def test_no_cell_is_a_formula_or_an_order(run, tmp_path: Path, text: str):
    store = run(costs={text: 1.1}, blocks=2, failing={(1, text): Outcome.PROGRAM_FAILED}, message=text)
    for path in write_csv(store, tmp_path):
        names, *rows = csv.reader(path.open(newline=""))
        cells = {row[names.index(name)] for row in rows for name in ("environment", "message") if name in names}
        assert len(cells) > 1
        for cell in filter(None, cells):
            assert cell.isprintable()
            assert cell.lstrip()[0] not in "=+-@"
