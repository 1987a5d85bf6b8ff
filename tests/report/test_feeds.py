"""A run for other tools: OpenMetrics text, as both kinds of readers read it, and github-action-benchmark's JSON."""

import json
import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client import parser as of_prometheus
from prometheus_client.openmetrics import parser as of_openmetrics

from weighbridge.analysis.analyse import analyse
from weighbridge.analysis.requirement import LIMIT, parse_requirement, targets
from weighbridge.features.gate.between_runs import compare_runs
from weighbridge.features.gate.compared_run import read_run
from weighbridge.model.facts import layers_json
from weighbridge.model.isolation import SCOPE, SiteLayers
from weighbridge.report.export.action_benchmark import action_benchmark_json
from weighbridge.report.export.openmetrics import FAMILIES, openmetrics
from weighbridge.report.export.provenance import provenance

from .made_up_runs import LOSS, TCP, Workload
from .rich_runs import TCG

TWO = [TCP, Workload("udp", [(LOSS, 0.05, 2.0)])]
Samples = dict[str, list[tuple[dict[str, str], float]]]


def fed(store) -> Samples:
    """Each metric's labels and values, as Prometheus's own format has them, and OpenMetrics alike."""
    text = openmetrics(store, analyse(store))
    assert text.endswith("# EOF\n") and text.count("# EOF") == 1
    read = [
        {
            (sample.name, frozenset(sample.labels.items()), sample.value, sample.timestamp)
            for family in module.text_string_to_metric_families(text)
            for sample in family.samples
        }
        for module in (of_openmetrics, of_prometheus)
    ]
    assert read[0] == read[1]
    samples: Samples = {}
    for name, labels, value, timestamp in read[0]:
        assert timestamp is None, "node_exporter and the Pushgateway refuse them"
        samples.setdefault(name.removeprefix("weighbridge_"), []).append((dict(labels), value))
    return samples


def cost_in(samples: Samples, name: str, **labels: str) -> float:
    (value,) = [value for theirs, value in samples[name] if labels.items() <= theirs.items()]
    return value


def test_every_primary_cost_is_there_with_its_interval_and_verdict(run):
    store = run(costs={"bridge": 1.25, "host": 1.0}, workloads=TWO, blocks=15)
    analysis, samples = analyse(store), fed(store)
    for report in analysis.headlines:
        kind = "difference" if report.metric == "loss" else "ratio"
        for row in (each for each in report.comparisons if not each.aa):
            at = {"workload": report.workload, "environment": row.environment, "metric": report.metric}
            at |= {"study": "first-look", "level": "", "layers": "", "emulated": "false"}
            at |= {"unit": "points"} if kind == "difference" else {}
            numbers = [cost_in(samples, f"cost_{part}{kind}", **at) for part in ("", "low_", "high_")]
            by = 100 if kind == "ratio" else 1
            limits = row.cost.penalty
            assert [each * by for each in numbers] == pytest.approx([limits.estimate, limits.low, limits.high])
    assert len(samples["cost_ratio"]) == len(samples["cost_difference"]) == 2
    verdicts = {(each["workload"], each["environment"]): each["verdict"] for each, _ in samples["cost_verdict_info"]}
    assert verdicts["tcp", "bridge"] == "significant" and len(verdicts) == 4
    assert {value for _, value in samples["cost_verdict_info"]} == {1.0}
    floor = next(report.noise_floor for report in analysis.headlines if report.metric == "throughput")
    assert cost_in(samples, "noise_floor_ratio", workload="tcp") == pytest.approx(floor)
    assert cost_in(samples, "control_passed", study="first-look") == 1


def test_the_run_is_there_with_its_time_and_versions(run):
    store = run(costs={"bridge": 1.1}, facts={"host": {"kernel": "Linux 6.1"}})
    samples, origin = fed(store), provenance(store)
    assert samples["result_info"] == [
        ({"study": "first-look", "baseline": "native", "run": analyse(store).run_id, "kernel": "Linux 6.1",
          "version": origin.versions.weighbridge}, 1.0)
    ]  # fmt: skip
    assert cost_in(samples, "result_start_time_seconds") == int(float(store.info()["created"]))


def test_units_are_in_the_names_and_everything_is_a_gauge(run):
    text = openmetrics(store := run(costs={"bridge": 1.1}, workloads=TWO), analyse(store))
    for family in of_openmetrics.text_string_to_metric_families(text):
        assert family.type == "gauge" and family.documentation
        assert family.name.endswith(("_ratio", "_seconds")) == bool(family.unit), family.name
    assert {line.split()[2] for line in text.splitlines() if line.startswith("# TYPE")} == {
        f"weighbridge_{each.name}" for each in FAMILIES
    }


def test_a_run_whose_control_failed_has_verdicts_but_no_costs(run):
    store = run(costs={"bridge": 1.25}, aa_factor=1.1, blocks=15)
    samples = fed(store)
    assert cost_in(samples, "control_passed") == 0 and "cost_ratio" not in samples
    assert [each["verdict"] for each, _ in samples["cost_verdict_info"]] == ["undecided"]
    assert action_benchmark_json(store, analyse(store)) == "[]\n"


@pytest.mark.parametrize("blocks", [0, 1, 5])
def test_too_few_rounds_have_no_cost(run, blocks: int):
    store = run(costs={"bridge": 1.25}, blocks=blocks)
    samples = fed(store)
    assert "cost_ratio" not in samples and "control_passed" not in samples
    assert json.loads(action_benchmark_json(store, analyse(store))) == []


def test_an_environment_has_its_hypervisors(run):
    facts = {SCOPE: {"bridge/server": layers_json(SiteLayers("here", (), (TCG,)))}}
    store = run(costs={"bridge": 1.25}, facts=facts)
    samples = fed(store)
    for name in ("cost_ratio", "cost_verdict_info"):
        assert [(each["layers"], each["emulated"]) for each, _ in samples[name]] == [("QEMU, TCG", "true")]
    (entry,) = json.loads(action_benchmark_json(store, analyse(store)))
    assert entry["extra"].startswith("environment: bridge (QEMU, TCG: emulated)\n")


@given(study=st.text(st.characters(exclude_categories=["C"]) | st.sampled_from('"\\\n{}#,='), max_size=30))
def test_any_study_name_is_read_back(rich_run, rich_analysis, study: str):
    text = openmetrics(rich_run, replace(rich_analysis, study=study))
    families = of_openmetrics.text_string_to_metric_families(text)
    assert {sample.labels["study"] for family in families for sample in family.samples} == {study}


# -- github-action-benchmark -----------------------------------------------------------------------


def test_a_value_is_how_many_times_worse_it_is(run):
    """Throughput is divided by the same factor that latency is multiplied with."""
    latency_first = Workload("ping", TCP.metrics[::-1])
    store = run(costs={"bridge": 1.25, "host": 0.8}, workloads=[TCP, latency_first], blocks=15)
    entries = {each["name"]: each for each in json.loads(action_benchmark_json(store, analyse(store)))}
    assert len(entries) == 4
    for name, entry in entries.items():
        assert entry["value"] == pytest.approx(1.25 if name.startswith("bridge") else 0.8, rel=0.03)
        low, high = map(float, entry["range"].split(" to "))
        assert low < entry["value"] < high
        assert entry["unit"] == "x native" and all(isinstance(entry[key], str) for key in ("range", "extra"))
        assert "verdict: significant\nrounds: 15\nrun: " in entry["extra"]


def test_the_action_sees_the_change_that_compare_sees(run):
    stores = [run(costs={"bridge": cost}, blocks=15, seed=seed) for seed, cost in enumerate((1.2, 1.5))]
    before, after = (json.loads(action_benchmark_json(each, analyse(each)))[0]["value"] for each in stores)
    (pair,) = compare_runs(*(read_run(each) for each in stores)).pairs
    (row,) = [each for each in pair.headlines[0].rows if not each.aa]
    assert after / before == pytest.approx(1 / row.change.typical, rel=0.01)  # compare has throughputs


def test_a_name_is_one_that_a_limit_takes(run):
    analysis = analyse(store := run(costs={"bridge": 1.25}))
    (entry,) = json.loads(action_benchmark_json(store, analysis))
    (target,) = targets(parse_requirement(f"{entry['name']} > 1%", LIMIT), analysis)
    assert target.row.cost.percent.estimate == pytest.approx(100 * (1 - 1 / entry["value"]), rel=1e-4)


def test_differences_in_a_unit_are_left_out(run):
    """Their ratio means nothing."""
    store = run(costs={"bridge": 1.25}, workloads=TWO)
    entries = json.loads(action_benchmark_json(store, analyse(store)))
    assert [each["name"] for each in entries] == ["bridge.tcp.throughput"]
    assert all(math.isfinite(each["value"]) for each in entries)
