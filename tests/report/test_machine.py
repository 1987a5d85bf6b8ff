import csv
import json
from datetime import UTC, datetime
from pathlib import Path

import pytest

from csv_rows import csv_rows
from documents import fits
from weighbridge.analysis.run_result import VERSION
from weighbridge.cli.commands.studies import SchemaDocument
from weighbridge.model.flag import Flag, FlagCode
from weighbridge.model.measurement import Metric, Outcome
from weighbridge.report.export.csv import write_csv
from weighbridge.report.export.json import report_json

from .made_up_runs import LOSS, TCP, THROUGHPUT, Workload

KEYS = {
    "environment", "control", "workload", "metric", "level", "unit", "better", "primary", "resource_use", "family",
    "baseline_value", "value", "cost", "cost_low", "cost_high", "cost_unit", "noise_low", "noise_high",
    "scale", "typical", "low", "high", "geometric", "arithmetic", "rounds", "exploratory", "adjusted_p", "verdict",
    "visible_cost", "rounds_to_settle", "seconds_to_settle", "unresolved", "hidden", "pairs", "remarks",
    "layers", "emulated", "baseline_emulated", "against",
}  # fmt: skip


def codes(document, cost):
    return {document["remarks"][place]["code"] for place in cost["remarks"]}


def test_the_document_has_the_promised_shape(run):
    document = report_json(run(costs={"bridge": 1.25, "host": 1.0}))
    json.dumps(document, allow_nan=False)
    fits(SchemaDocument.REPORT, document)
    assert document["study"] == "first-look" and document["run"] == "20240101abcd"
    assert document["question"].startswith("What does each Docker network cost") and document["margin"] == 0.03
    assert (document["baseline"], document["control"], document["looks"]) == ("native", "native-again", 1)
    assert document["families"] == {
        "primary metrics": 2,
        "further metrics": 2,
        "resource use": 0,
        "events": 0,
        "ladder": 0,
        "mechanisms": 0,
        "counters of mechanisms": 0,
    }
    assert (
        document["version"] == VERSION and document["control_passed"] is True and 0 < document["noise_floor"] < 0.05
    )
    assert -100 * document["noise_floor"] == pytest.approx(document["noise_low"])  # of throughput: higher is better
    assert all(cost["noise_low"] < 0 < cost["noise_high"] for cost in document["costs"])
    assert all(set(cost) == KEYS for cost in document["costs"])
    bridge = document["costs"][0]
    assert bridge["environment"] == "bridge" and bridge["level"] == {} and bridge["unit"] == "bit/s"
    assert bridge["low"] < 0.8 < bridge["high"] and bridge["low"] <= bridge["typical"] <= bridge["high"]
    assert abs(bridge["geometric"] - 0.8) < 0.02 and abs(bridge["arithmetic"] - 0.8) < 0.02
    assert bridge["rounds"] == 10 and bridge["exploratory"] is False and bridge["verdict"] == "significant"
    assert (
        bridge["pairs"]["round"] == [*range(1, 11)]
        and bridge["family"] == "primary metrics"
        and not bridge["control"]
    )
    aa = [cost for cost in document["costs"] if cost["environment"] == "native-again"]
    assert all("control" in codes(document, cost) for cost in aa) and len(aa) == 2
    assert all(cost["control"] and cost["verdict"] is cost["family"] is cost["adjusted_p"] is None for cost in aa)


def test_what_cannot_be_given_is_null(run):
    lossy = Workload("udp", [(LOSS, 0.05, 2.0)], (("rate", "10Mbit/s"),))
    document = report_json(run(costs={"bridge": 1.0}, workloads=[lossy]))
    zero = document["costs"][0]
    assert zero["typical"] is zero["low"] is zero["geometric"] is None and zero["level"] == {"rate": "10Mbit/s"}
    assert zero["scale"] == "difference" and "difference" in codes(document, zero)
    one = report_json(run(costs={"bridge": 1.2}, blocks=1))["costs"][0]
    assert one["low"] is one["high"] is None and one["exploratory"] is True
    none = report_json(run(costs={"bridge": 1.2}, blocks=0))
    assert none["costs"] == [] and none["control_passed"] is None and none["noise_floor"] is None


def test_a_cost_is_in_the_direction_of_the_words(run):
    """Positive is worse, whichever direction of the metric is good, and the lower limit is below the upper one."""
    costs = report_json(run(costs={"bridge": 1.25, "better": 0.8}, workloads=[TCP]))["costs"]
    by_name = {(cost["environment"], cost["metric"]): cost for cost in costs}
    for metric in ("throughput", "p99 latency"):
        worse, better = by_name["bridge", metric], by_name["better", metric]
        assert worse["cost_unit"] == "%" and 0 < worse["cost_low"] < worse["cost"] < worse["cost_high"]
        assert better["cost_low"] < better["cost"] < better["cost_high"] < 0
    throughput, latency = by_name["bridge", "throughput"], by_name["bridge", "p99 latency"]
    assert throughput["cost"] == pytest.approx(100 * (1 - throughput["typical"])) and throughput["typical"] < 1
    assert throughput["cost_low"] == pytest.approx(100 * (1 - throughput["high"]))
    assert latency["cost"] == pytest.approx(100 * (latency["typical"] - 1)) and latency["typical"] > 1


def test_a_difference_has_a_cost_too(run, tmp_path):
    """Metrics that are compared by difference were null for machines."""
    kept = Metric("kept", "count", "higher")
    lossy = Workload("udp", [(LOSS, 4.0, 0.05), (kept, 1000.0, 0.01)])
    store = run(costs={"bridge": 2.0}, workloads=[lossy])
    loss, _, retained, _ = report_json(store)["costs"]
    assert loss["typical"] is None and loss["cost_unit"] == "points"
    assert loss["cost_low"] < 4.0 < loss["cost_high"] and loss["cost"] == pytest.approx(4.0, rel=0.1)
    assert retained["cost_unit"] == "count" and 400 < retained["cost_low"] < retained["cost"] < retained["cost_high"]
    _, costs = write_csv(store, tmp_path)
    rows = csv_rows(costs)
    assert [rows[2][key] for key in ("cost", "cost_low", "cost_high", "cost_unit")] == [
        retained[key] for key in ("cost", "cost_low", "cost_high", "cost_unit")
    ]
    assert rows[2]["typical"] == -rows[2]["cost"]


def test_no_cost_and_no_interval_are_null(run):
    one = report_json(run(costs={"bridge": 1.2}, blocks=1))["costs"][0]
    assert one["cost"] is not None and one["cost_low"] is one["cost_high"] is None and one["cost_unit"] == "%"
    lost = {(block, "bridge"): Outcome.DEADLINE for block in (1, 2)}
    none = report_json(run(costs={"bridge": 1.2}, blocks=2, failing=lost))["costs"][0]
    assert none["cost"] is none["cost_low"] is none["cost_high"] is none["cost_unit"] is none["exploratory"] is None
    assert none["rounds"] == 0 and none["pairs"] == {"round": [], "baseline": [], "environment": []}


def test_where_the_numbers_come_from(run, tmp_path):
    path = {"hops": 1, "mtu": 1500}
    facts = {
        "host": {"kernel": "Linux 6.1", "version of runc": "runc 1.1.5", "load": "0.1"},
        "userland": {"digest": "5" * 64},
        "userland packages": {"iperf3": "3.12", "libc6": "2.36"},
        "userland packages measured": {"iperf3": "3.12"},
        "userland of bridge": {"digest": "6" * 64},
        "bridge/server": {"docker": "20.10 (private)"},
        "bridge/client": {"docker": "20.10 (private)"},
        "native/server": {"user": "root"},
        "host a": {"kernel": "Linux 6.2"},
        "host differences": {"kernel": "kernel differs"},
        "path": {"bridge": json.dumps(path), "native": '{"mss": NaN}', "odd": "{"},
    }
    store = run(costs={"bridge": 1.2}, facts=facts)
    document = report_json(store)
    json.dumps(document, allow_nan=False)
    created = datetime.strptime(document["date"], "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=UTC)
    assert abs(created.timestamp() - float(store.info()["created"])) <= 1
    assert document["kernel"] == "Linux 6.1" and document["engine"] == {"bridge": "docker 20.10 (private)"}
    assert document["versions"] == {
        "weighbridge": "0.1.0", "host": {"runc": "runc 1.1.5"}, "root_filesystems": {
            "userland": {"digest": "5" * 64, "packages": 2, "measured": {"iperf3": "3.12"}},
            "userland of bridge": {"digest": "6" * 64, "packages": 0, "measured": {}},
        },
    }  # fmt: skip
    assert document["hosts"] == {"a": {"kernel": "Linux 6.2"}}
    assert document["paths"] == {"bridge": path, "native": {"mss": None}, "odd": "{"}
    rows = csv_rows(write_csv(store, tmp_path)[1])
    assert {(row["version"], row["date"], row["kernel"]) for row in rows} == {
        (VERSION, document["date"], "Linux 6.1")
    }
    assert [row["engine"] for row in rows[:2]] == ["docker 20.10 (private)", None]


def test_what_an_older_run_does_not_say(run):
    document = report_json(run(costs={"bridge": 1.2}))
    assert document["kernel"] is None
    assert document["engine"] == document["hosts"] == document["paths"] == {}
    assert document["versions"]["host"] == document["versions"]["root_filesystems"] == {}


def test_thousands_of_packages_are_no_part_of_the_document(run):
    """They were two fifths of it."""
    packages = {f"package-{number}": f"1.{number}" for number in range(3000)}
    facts = {"userland": {"digest": "5" * 64}, "userland packages": packages}
    without, with_them = (
        len(json.dumps(report_json(run(costs={"bridge": 1.2}, facts=each)))) for each in ({}, facts)
    )
    assert with_them - without < 200


def test_a_bottleneck_is_said_of_how_many_trials(run):
    """Those of which none is known had been left out of the count."""
    cable = Flag(FlagCode.CABLE, figures={"share": 0.99, "rate": 100e6})
    document = report_json(run(costs={"bridge": 1.2}, flags={(block, "bridge"): (cable,) for block in (1, 2)}))
    (bridge,) = [each for each in document["bottlenecks"] if each["environment"] == "bridge"]
    assert (bridge["trials"], bridge["of"]) == ({"cable": 2}, 10)


def test_exploratory_verdicts_are_the_same_words_for_machines(run):
    document = report_json(run(costs={"bridge": 1.5}, blocks=3))
    bridge = document["costs"][0]
    assert bridge["verdict"] == "undecided" and bridge["exploratory"] is True and document["control_passed"] is None
    document = report_json(run(costs={"bridge": 1.5}, blocks=6))
    bridge = document["costs"][0]
    assert bridge["verdict"] == "significant" and bridge["exploratory"] is True


def test_csv_comes_back_as_it_was(run, tmp_path):
    store = run(costs={"bridge": 1.25}, workloads=[TCP], failing={(2, "bridge"): Outcome.DEADLINE}, study="a,b")
    measurements, costs = write_csv(store, tmp_path / "tables")
    table = csv_rows(measurements)
    values = {(v.trial_id, v.metric): v.value for v in store.values()}
    good = [row for row in table if row["outcome"] == "ok"]
    assert {(r["trial"], r["metric"]): r["value"] for r in good} == values
    bad = [row for row in table if row["outcome"] == "deadline"]
    assert len(bad) == 1 and bad[0]["value"] is None and bad[0]["message"].startswith("iperf3: error")
    order = [row["order"] for row in table]
    assert order == sorted(order) and order[0] == 1
    rows = csv_rows(costs)
    assert [r["environment"] for r in rows] == ["bridge", "native-again"] * 2
    expected = report_json(store)["costs"][0]
    assert rows[0]["typical"] == expected["typical"] and rows[0]["scale"] == "ratio" and rows[1]["control"] is True


def test_csv_of_nothing_has_its_columns(run, tmp_path):
    measurements, costs = write_csv(run(costs={}, blocks=0), tmp_path)
    assert measurements.read_text().startswith("trial,round,attempt,order,environment,workload,level,metric,unit")
    assert costs.read_text().startswith("environment,against,workload,level,metric,unit,better,baseline_value")


def test_csv_keeps_differences(run, tmp_path):
    lossy = Workload("udp", [(LOSS, 0.05, 2.0), (THROUGHPUT, 1e7, 0.001)])
    _, costs = write_csv(run(costs={"bridge": 1.0}, workloads=[lossy]), tmp_path)
    first = csv_rows(costs)[0]
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
