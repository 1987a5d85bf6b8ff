"""What a power cut leaves is beside what it costs: two that keep less and more are never equivalent."""

import json

import pytest

from usual_options import usual_options
from weighbridge import registry
from weighbridge.analysis.analyse import analyse
from weighbridge.analysis.conditions import by_label, power_cuts
from weighbridge.model.power_cut import SCOPE, PowerCut, Promise, power_cut_facts
from weighbridge.report.export.json import report_json
from weighbridge.report.html import write_html
from weighbridge.report.text.durability import MEANING, durability_words, power_cut_lines, power_cut_verdict
from weighbridge.report.text.remarks import remark_text


@pytest.fixture
def page(run, tmp_path):
    """The analysis and the page of a run with two equal environments that keep what they are given like this."""

    def made(native: str, host: str):
        places = {"native/tcp": native, "native-again/tcp": native, "host/tcp": host}
        facts = {"durability": {place: kind for place, kind in places.items() if kind}}
        store = run(costs={"host": 1.0}, facts=facts)
        analysis = analyse(store)
        return analysis, write_html(store, tmp_path / "report.html", analysis).read_text()

    return made


@pytest.mark.parametrize("kind", ["synchronous", "asynchronous", "none", ""])
def test_two_that_keep_alike_are_equivalent_and_labelled(page, kind: str):
    analysis, html = page(kind, kind)
    row = analysis.metrics[0].comparisons[0]
    assert row.verdict == "equivalent" and not any(remark.code == "durability" for remark in row.remarks)
    assert (MEANING.get(kind, "acknowledged") in html.split("How to read this")[0]) is bool(kind)
    assert set(analysis.durability) == ({"tcp"} if kind else set())


@pytest.mark.parametrize(
    ("native", "host"), [("synchronous", "asynchronous"), ("none", "asynchronous"), ("", "asynchronous")]
)
def test_two_that_do_not_keep_alike_are_never_equivalent(page, native: str, host: str):
    analysis, html = page(native, host)
    row, aa = analysis.metrics[0].comparisons
    told = f"durability {host}, but {native or 'unknown'} in native"
    assert row.cost.equivalent and row.verdict == "inconclusive"
    assert aa.verdict == "equivalent" and [remark_text(r) for r in row.remarks if r.code == "durability"] == [told]
    assert [remark_text(remark) for remark in analysis.confounders] == [f"host: {told} (tcp)"] and told in html


def test_a_line_names_the_environments_where_they_differ():
    kinds = by_label({"a/kv": "none", "b/kv": "none", "a/db": "synchronous", "b/db": "asynchronous"})
    assert {label: durability_words(each) for label, each in kinds.items()} == {
        "kv": "acknowledged writes are in memory only",
        "db": "acknowledged writes are on the disk in a; a power cut loses the last acknowledged writes in b",
    }


def test_what_keeps_nothing_has_no_durability():
    kinds = {kind: each.durability(usual_options(each)) for kind, each in registry.workloads().items()}
    assert {kind: found for kind, found in kinds.items() if found} == {
        "bonnie": "asynchronous",
        "dd": "asynchronous",
        "fio": "asynchronous",
        "metadata": "asynchronous",
        "mysql-oltp": "synchronous",
        "pgbench": "synchronous",
        "redis-benchmark": "none",
        "sysbench-fileio": "asynchronous",
    }
    redis = registry.workloads()["redis-benchmark"]
    assert redis.durability(redis.options(appendonly="always")) == "synchronous"


def cut(promise: Promise, claimed: str, lost: int, torn: int = 0) -> PowerCut:
    first = 10 - lost if lost else None
    return PowerCut("host", promise, "volume", claimed, "lab", 10, 10 - lost, lost, first, torn, 0)  # type: ignore[arg-type]


def test_what_a_check_by_power_cut_found_is_in_the_report(run, tmp_path):
    checked = [cut(Promise.FSYNC, "synchronous", 3, torn=1), cut(Promise.WRITE, "synchronous", 10)]
    store = run(costs={"host": 1.0}, facts={SCOPE: {**power_cut_facts(checked), "host/new": "{}"}})
    analysis = analyse(store)
    assert list(analysis.power_cuts) == checked
    told = report_json(store, analysis)["power_cuts"]
    assert [(each["promise"], each["lost"], each["verdict"]) for each in told] == [
        ("fsync", 3, "claims more than it keeps"), ("write", 10, "lost"),
    ]  # fmt: skip
    lines = power_cut_lines(analysis)
    assert [line.partition(", after a power cut: ")[2] for line in lines] == [
        "claims synchronous, lost 3 of 10 (first: 7; 1 torn)",
        "lost 10 of 10 (first: 0), as nothing was synced",
    ]
    assert all(line in write_html(store, tmp_path / "report.html", analysis).read_text() for line in lines)


def test_the_latest_check_of_a_promise_holds():
    facts = [
        (SCOPE, key, value, when)
        for when, lost in ((1.0, 3), (2.0, 0))
        for key, value in power_cut_facts([cut(Promise.FSYNC, "synchronous", lost)]).items()
    ]
    assert [(each.lost, power_cut_verdict(each)) for each in power_cuts(facts, ["host"])] == [(0, "kept all 10")]
    assert power_cut_verdict(cut(Promise.FSYNC, "asynchronous", 2)).endswith("(first: 8), as claimed (asynchronous)")


@pytest.mark.parametrize(
    "changed", [{"lost": -3}, {"found": 9}, {"first_lost": None}, {"torn": 4}, {"environment": "x"}]
)
def test_a_check_that_does_not_add_up_is_not_shown(changed: dict[str, object]):
    ((key, kept),) = power_cut_facts([cut(Promise.FSYNC, "synchronous", 3)]).items()
    assert len(power_cuts([(SCOPE, key, kept, 1.0)], ["host"])) == 1
    assert power_cuts([(SCOPE, key, json.dumps(json.loads(kept) | changed), 1.0)], ["host"]) == ()
