"""A run of two versions: every reader compares each head with its own base, once, as one family."""

import csv
import json
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from statistics import median

import pytest

import weighbridge
from documents import fits
from report.made_up_runs import THROUGHPUT, Recipe, Workload, make_run, two_versions
from weighbridge.analysis.analyse import Depth, analyse
from weighbridge.analysis.comparisons import comparison, values_by_metric
from weighbridge.analysis.judgement import Family
from weighbridge.analysis.limits import judge
from weighbridge.analysis.plan import plan_of
from weighbridge.analysis.requirement import LIMIT, parse_requirement
from weighbridge.analysis.results import Analysis
from weighbridge.features.archive.entry import entry_of
from weighbridge.features.gate.between_runs import compare_runs
from weighbridge.features.gate.compare_document import names_of_runs
from weighbridge.features.gate.compared_run import ComparedRun, changed_settings, read_run
from weighbridge.features.gate.past_runs import history
from weighbridge.features.gate.questions import questions_of
from weighbridge.model.decisions import LeftOut
from weighbridge.model.measurement import Outcome
from weighbridge.report.comment import comment
from weighbridge.report.documents import run_markdown
from weighbridge.report.export.action_benchmark import action_benchmark_json
from weighbridge.report.export.csv import write_csv
from weighbridge.report.export.json import report_json
from weighbridge.report.export.openmetrics import openmetrics
from weighbridge.report.text.answer import answer
from weighbridge.report.text.environments import names_of
from weighbridge.report.text.matrix import matrix
from weighbridge.report.text.methods import methods_sentences
from weighbridge.report.text.summary import verdict_sentences
from weighbridge.statistics.verdicts import adjusted
from weighbridge.store.run import DATABASE, RunStore

PAIRS = {"head": "base", "head-docker": "base-docker"}
VERDICTS = {"head": "equivalent", "head-docker": "different"}
NAMES = {"head": "head (native)", "base": "base (native)"}
COSTS = two_versions()["costs"]


@pytest.fixture
def made(tmp_path: Path) -> Iterator[Callable[..., RunStore]]:
    """Make a run of two versions in a folder of runs."""
    opened: list[RunStore] = []

    def make(**changes: object) -> RunStore:
        opened.append(make_run(tmp_path / "runs" / f"run{len(opened)}", Recipe(**two_versions(**changes))))
        return opened[-1]

    yield make
    for store in opened:
        store.close()


def verdicts_of(analysis: Analysis) -> dict[tuple[str, str], str]:
    (report,) = analysis.headlines
    return {(row.environment, row.against): row.verdict for row in report.comparisons if not row.aa}


def test_each_head_is_compared_with_its_base_at_every_depth(made):
    store = made()
    for depth in (Depth.FULL, Depth.PRIMARY):
        analysis = analyse(store, depth)
        assert verdicts_of(analysis) == {pair: VERDICTS[pair[0]] for pair in PAIRS.items()}
        (report,) = analysis.headlines
        assert report.aa is not None and report.aa.against == "base"
        assert analysis.others == tuple(PAIRS) and not analysis.ladder
    for row in analyse(store, Depth.VALUES).headlines[0].comparisons:
        head, base = analysis.block_values(report, row.environment), analysis.block_values(report, row.against)
        assert [(pair.baseline, pair.value) for pair in row.pairs] == [*zip(base, head, strict=True)]


def test_the_pairs_of_all_programs_are_one_family(made):
    workloads = [Workload(name, [(THROUGHPUT, 8.66e9, 0.01)]) for name in ("sort", "find")]
    store = made(workloads=workloads, costs={**COSTS, "head": 1.005})
    analysis, values, plan = analyse(store), values_by_metric(store.values()), plan_of(store)
    rows = [(report, row) for report in analysis.headlines for row in report.comparisons if not row.aa]
    alone = [comparison(values[report.metric_id], plan, row.environment, row.against)[1] for report, row in rows]
    assert [row.adjusted_p for _, row in rows] == adjusted(alone)
    families = report_json(store)["families"]
    assert families[Family.HEADLINES] == len(rows) == 4 and families[Family.LADDER] == 0


def test_text_names_the_pair_that_differs(made):
    analysis = analyse(made())
    assert answer(analysis).startswith("head-docker: ") and "5" in answer(analysis)
    assert {cell.environment: cell.shown_as for cell in matrix(analysis).rows[0].cells if cell} == VERDICTS
    assert names_of(analysis) == NAMES | {"base-again": "base (native, control)"}
    assert any(" than base-docker " in text for _, text in verdict_sentences(analysis))
    for text in (comment(analysis), run_markdown(analysis)):
        rows = [line for line in text.splitlines() if line.startswith("| ") and "head" in line.split(" | ")[1]]
        assert [line.split(" | ")[1].strip() for line in rows] == [r"head \(native\)", "head-docker"]
        assert "within ±3%" in rows[0] and "significant" in rows[1] and "base-docker" not in text


def test_a_run_with_one_environment_does_not_name_it(made):
    analysis = analyse(made(costs={"head": 1.1}))
    assert names_of(analysis) == {"base-again": "base (control)"} and answer(analysis).startswith("head: ")


def test_two_compared_runs_name_the_environment_of_native_versions(made):
    runs = [read_run(made(), "a"), read_run(made(), "b")]
    names = names_of_runs(compare_runs(*runs))
    assert names == NAMES | {"base-again": "base (native, control)"}


def test_the_methods_give_no_kind_to_several_bases(made):
    store = made()
    text = " ".join(methods_sentences(store, analyse(store)))
    assert "compared them with the base in the same environment. " in text


@pytest.mark.parametrize("name", ["base-docker", "head-docker"])
def test_no_version_is_compared_with_another_environment_if_one_was_skipped(made, name):
    costs = {each: cost for each, cost in COSTS.items() if each != name}
    store = made(costs=costs, left_out=(LeftOut(environment=name, kind="docker", why="no answer"),))
    for depth in (Depth.FULL, Depth.PRIMARY):
        analysis = analyse(store, depth)
        assert verdicts_of(analysis) == {("head", "base"): "equivalent"}
        assert analysis.others == ("head",)


def test_a_head_that_failed_everywhere_leaves_the_others_their_family_and_their_values(made):
    store = made(failing={(block, "head-docker"): Outcome.PROGRAM_FAILED for block in range(1, 31)})
    analysis = analyse(store)
    (report,) = analysis.headlines
    rows = {row.environment: row for row in report.comparisons}
    assert rows["head-docker"].cost is None and rows["head-docker"].adjusted_p is None
    alone = comparison(values_by_metric(store.values())[report.metric_id], plan_of(store), "head", "base")[1]
    assert [rows["head"].adjusted_p] == adjusted([alone])
    docker = analysis.block_values(report, "base-docker")
    assert len(docker) == 30 and analysis.references(report)["base-docker"] == median(docker)


def test_another_durability_than_that_of_its_own_base_keeps_no_budget(made):
    places = {"base/tcp": "full", "head/tcp": "full", "base-docker/tcp": "none", "head-docker/tcp": "none"}
    bound = [parse_requirement("head-docker.tcp.throughput > 50%", LIMIT)]
    (alike,) = judge(bound, analyse(made(facts={"durability": places})))
    (unlike,) = judge(bound, analyse(made(facts={"durability": {**places, "base-docker/tcp": "full"}})))
    assert (alike.outcome, unlike.outcome, unlike.reason) == ("kept", "undecided", "durability")


def test_gate_and_limits_judge_the_pairs(made):
    store = made()
    judged = questions_of(["*.tcp.throughput<=3%"], None, None).judge(store)
    outcomes = {each.target.environment: (each.outcome, each.cost.estimate) for each in judged.gate.findings}
    assert outcomes["head"][0] == "kept" and outcomes["head-docker"][0] == "exceeded"
    assert judged.gate.answer == "failed" and outcomes["head-docker"][1] == pytest.approx(5, abs=1)
    findings = judge([parse_requirement("*.tcp.throughput > 3%", LIMIT)], analyse(store))
    assert {each.target.environment: each.outcome for each in findings} == {"head": "kept", "head-docker": "exceeded"}


def test_documents_and_the_api_name_what_each_row_is_against(made, tmp_path):
    store = made()
    document = report_json(store)
    fits("report", document)
    costs = {each["environment"]: each for each in document["costs"]}
    assert {name: each["against"] for name, each in costs.items()} == {**PAIRS, "base-again": "base"}
    assert [costs[name]["verdict"] for name in PAIRS] == ["equivalent", "significant"] and not document["ladder"]
    run = weighbridge.load(store.directory)
    shown = {each.environment: (each.baseline, each.verdict) for each in run.costs.where(control=False)}
    assert shown == {"head": ("base", "equivalent"), "head-docker": ("base-docker", "significant")}
    assert run.costs.where(environment="head-docker")[0].cost == pytest.approx(costs["head-docker"]["cost"])
    write_csv(store, tmp_path / "csv")
    with (tmp_path / "csv/costs.csv").open() as file:
        assert {row["environment"]: row["against"] for row in csv.DictReader(file)} == {**PAIRS, "base-again": "base"}
    entries = json.loads(action_benchmark_json(store, analyse(store)))
    assert [(each["name"].split(".")[0], each["unit"]) for each in entries] == [
        ("head", "x base"), ("head-docker", "x base-docker"),
    ]  # fmt: skip
    metrics = openmetrics(store, analyse(store))
    assert 'environment="base-docker"' not in metrics and 'against="base-docker"' in metrics


def test_a_document_of_an_earlier_version_can_be_loaded(made, tmp_path):
    document = json.loads(json.dumps(report_json(made())))
    for cost in document["costs"]:
        del cost["against"]
    (tmp_path / "report.json").write_text(json.dumps(document))
    assert {each.baseline for each in weighbridge.load(tmp_path / "report.json").costs} == {"base"}


def test_the_registry_and_the_history_have_the_same_verdicts(made, tmp_path):
    store = made()
    entry = entry_of(store, analyse(store))
    assert {each.environment: each.shown_as for each in entry.costs} == {
        NAMES.get(name, name): verdict for name, verdict in VERDICTS.items()
    }
    assert entry.answer.startswith("head-docker: ")
    (past,) = history(tmp_path / "runs").runs
    assert {(row.environment, row.against, row.verdict) for _, row in past.costs} == {
        (head, base, VERDICTS[head]) for head, base in PAIRS.items()
    }


def test_two_runs_compare_the_costs_of_the_pairs(made):
    runs = [read_run(made(costs={**COSTS, "base-docker": 1.3 * slower, "head-docker": 1.365 * slower}), str(slower))
            for slower in (1.0, 1.5)]  # fmt: skip
    (pair,) = compare_runs(*runs).pairs
    (metric,) = pair.headlines
    rows = {row.environment: row.verdict for row in metric.rows if not row.aa}
    assert rows == {"head": "equivalent", "head-docker": "equivalent"}, "both versions are slower in docker"


def test_the_folders_of_the_trees_are_no_difference_of_two_runs(made):
    def run(folder: str, env: str) -> ComparedRun:
        store = made()
        userland = json.dumps({"kind": "host", "folder": folder, "env": {"PATH": env}})
        with closing(sqlite3.connect(store.directory / DATABASE)) as database, database:
            change = "UPDATE study SET document = json_set(document, '$.file.userland', json(?))"
            database.execute(change, (userland,))
        with RunStore(store.directory) as changed:
            return read_run(changed, folder)

    one, other = run("/cache/0a1b/head", "/bin"), run("/cache/2c3d/head", "/bin")
    unlike = run("/cache/4e5f/head", "/x")
    assert changed_settings(one, other) == ()
    assert [each.setting for each in changed_settings(one, unlike)] == ["userland env PATH"]


def test_only_what_differs_between_the_versions_is_a_confounder(made):
    def site(name: str, **facts: str) -> dict[str, dict[str, str]]:
        return {f"{name}/solo": facts}

    both = {"not honoured: memory": "no controller", "seccomp": "default"}
    facts = {
        **site("base", libc="1"), **site("head", libc="1"), **site("base-again", libc="1"),
        **site("base-docker", **both), **site("head-docker", **both),
    }  # fmt: skip
    assert analyse(made(facts=facts)).confounders == ()
    del facts["base-docker/solo"]["not honoured: memory"]
    analysis = analyse(made(facts=facts))
    assert [each.subject for each in analysis.confounders] == ["head-docker"]
    rows = {row.environment: row for row in analysis.headlines[0].comparisons}
    assert analysis.confounders[0] in rows["head-docker"].remarks
    assert analysis.confounders[0] not in rows["head"].remarks
