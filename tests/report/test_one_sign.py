"""One cost, one number, one sign: positive is worse wherever it is written, whatever is better, on either scale."""

import csv
import re

import pytest

from weighbridge.analysis.analyse import analyse
from weighbridge.analysis.limits import judge
from weighbridge.analysis.requirement import BUDGET, LIMIT, parse_requirement
from weighbridge.features.gate.between_runs import compare_runs
from weighbridge.features.gate.compare_charts import costs_of_runs
from weighbridge.features.gate.compare_document import compare_document
from weighbridge.features.gate.compare_json import compare_json
from weighbridge.features.gate.compared_run import read_run
from weighbridge.features.gate.gate_analysis import judge_gate
from weighbridge.features.gate.gate_export import bmf, gate_json, gate_markdown
from weighbridge.features.gate.gate_looks import Spending
from weighbridge.features.gate.gate_text import gate_rows
from weighbridge.model.measurement import Metric
from weighbridge.report.charts import forest
from weighbridge.report.export.csv import write_csv
from weighbridge.report.export.json import report_json
from weighbridge.report.export.limits import limits_json
from weighbridge.report.html import write_html
from weighbridge.report.render_markdown import markdown

from .made_up_runs import Workload
from .test_terminal import shown
from .visible_text import VisibleText

METRICS = {
    "ratio, higher is better": (Metric("throughput", "requests/s", "higher"), 1000.0),
    "ratio, lower is better": (Metric("latency", "ms", "lower"), 5.0),
    "count, higher is better": (Metric("sites", "count", "higher"), 40.0),
    "count, lower is better": (Metric("errors", "count", "lower"), 40.0),
    "share, higher is better": (Metric("success_rate", "%", "higher"), 50.0),
    "share, lower is better": (Metric("loss", "%", "lower"), 4.0),
}
NUMBER = r"(-?[\d,]*\d(?:\.\d+)?)"


def numbers(text: str, start: str) -> tuple[float, float, float]:
    """The cost with its limits in the first line that begins like this: ``20.1% [19.1, 20.9]``."""
    line = next(
        line for line in text.replace("\\", "").splitlines() if line.strip().startswith(start) and "[" in line
    )
    match = re.search(rf"{NUMBER}\s*(?:%|points)?\s*\[{NUMBER},\s*{NUMBER}\]", line.strip().removeprefix(start))
    assert match is not None, line
    return tuple(float(re.sub(r"[\s,]", "", each)) for each in match.groups())


@pytest.mark.parametrize("factor", [1.25, 0.8], ids=["cost", "gain"])
@pytest.mark.parametrize("name", METRICS)
def test_every_place_says_the_same_cost(run, tmp_path, name: str, factor: float):
    metric, centre = METRICS[name]
    store = run(costs={"bridge": factor}, workloads=[Workload("w", [(metric, centre, 0.01)])])
    analysis = analyse(store)
    (cost, *_) = report_json(store, analysis)["costs"]
    expected = cost["cost"], cost["cost_low"], cost["cost_high"]
    assert cost["environment"] == "bridge" and (cost["cost"] > 0) is (factor > 1), "positive is worse"
    assert cost["cost_unit"] == ("%" if name.startswith("ratio") else "points" if "share" in name else "count")

    rounded = pytest.approx(expected, abs=0.06)
    page = VisibleText(write_html(store, tmp_path / "report.html", analysis).read_text()).text()
    assert numbers(page, "| bridge |") == rounded
    assert numbers(shown(store, 120), "bridge  ") == rounded
    chart = forest(analysis, analysis.metrics[0])
    assert chart is not None and "worse" in chart.axes[0].title
    (point,) = (each for rows in chart.definition["datasets"].values() for each in rows
                if each.get("environment") == "bridge")  # fmt: skip
    assert (point["cost"], point["low"], point["high"]) == pytest.approx(expected)

    sides = read_run(store, "a"), read_run(store, "b")
    compared = compare_runs(*sides)
    assert numbers(markdown(compare_document(compared)), "| bridge | A") == rounded
    (change, *_) = compare_json(compared)["pairs"][0]["costs"]
    assert (change["before"]["cost"], change["after"]["cost_low"]) == pytest.approx(expected[:2])
    chart = costs_of_runs({"A": analysis.metrics[0]})
    assert chart is not None and point["cost"] in {
        each.get("cost") for rows in chart.definition["datasets"].values() for each in rows
    }

    write_csv(store, tmp_path, analysis)
    with (tmp_path / "costs.csv").open() as lines:
        row = next(each for each in csv.DictReader(lines) if each["environment"] == "bridge")
    assert (float(row["cost"]), float(row["cost_low"]), float(row["cost_high"])) == pytest.approx(expected)
    (measured,) = (each for key, each in bmf(analysis).items() if key.startswith("bridge."))
    assert next(iter(measured.values()))["value"] == pytest.approx(expected[0])

    unit = "" if cost["cost_unit"] == "count" else cost["cost_unit"]
    (answer,) = limits_json(
        analysis, judge([parse_requirement(f"bridge.w.{metric.name} > 0{unit}", LIMIT)], analysis)
    )
    assert answer.cost == pytest.approx(expected[0])
    assert answer.outcome == ("exceeded" if factor > 1 else "kept")
    budget = parse_requirement(f"bridge.w.{metric.name}<=0{unit}", BUDGET)
    gate = judge_gate([budget], store, analysis, Spending())
    (finding,) = gate_json(gate, analysis)["findings"]
    assert finding["cost"] == pytest.approx(expected[0])
    assert finding["outcome"] == ("failed" if factor > 1 else "passed")
    table = gate_markdown("w", "", gate_rows(gate, analysis))
    sign = "| ❌ failed |" if factor > 1 else "| ✅ passed |"
    assert numbers(table, sign)[0] == pytest.approx(expected[0], abs=0.06)
