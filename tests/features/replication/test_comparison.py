"""A run beside the published study: directions, the page, the table, the document."""

import json
import math
from dataclasses import replace

import pytest

from report.made_up_runs import Workload
from report.test_html import HOSTILE, Page
from report.vega_lite import definition_of
from sentences import assert_sentence
from weighbridge.analysis.analyse import analyse
from weighbridge.analysis.results import Comparison
from weighbridge.features.replication.chart import chart
from weighbridge.features.replication.comparison import Offer, direction, replication
from weighbridge.features.replication.document import replication_json
from weighbridge.features.replication.proof import PublishedRow
from weighbridge.features.replication.published import Compared, Measured, published
from weighbridge.features.replication.report import replication_document
from weighbridge.features.replication.words import (
    better_words,
    direction_words,
    left_out,
    measured_text,
    not_measured,
    outcome_sentence,
    published_text,
    ratio_text,
    setup_rows,
)
from weighbridge.model.facts import layers_json
from weighbridge.model.flag import Flag, FlagCode
from weighbridge.model.isolation import SCOPE, Layer, SiteLayers
from weighbridge.model.measurement import Metric
from weighbridge.report.document import Chart, Table
from weighbridge.statistics import Cost, Interval

from .rendered import page, printed

COSTS = {
    "docker-host": 1.0, "docker-bridge": 1.12, "docker-macvlan": 1.05, "docker-overlay": 0.8,
    "docker-overlay-1468": 1.5,
}  # fmt: skip
LATENCY = Workload("latency", [(Metric("one_way_latency", "ms", "lower"), 0.05, 0.002)])
DATAGRAM = Workload(
    "datagram",
    [(Metric("throughput", "MiB/s", "higher"), 80, 0.002), (Metric("error_rate", "%", "lower"), 2.0, 0.02)],
)


def a_run(run, **recipe):
    return run(costs=COSTS, workloads=[LATENCY, DATAGRAM], study="docker-networks", **recipe)


def found_in(store):
    return replication(analyse(store), published("docker-networks"))


CABLE = Flag(FlagCode.CABLE, "host a", {"share": 0.99, "rate": 100e6})
TCG, KVM = Layer("QEMU, TCG", emulated=True), Layer("QEMU, KVM")
ARMS = ("native", "native-again", *COSTS)
GUESTS = {
    "docker-macvlan/server": layers_json(SiteLayers("here", (), (TCG,))),
    "docker-host/server": layers_json(SiteLayers("here", (), (KVM,))),
}
LAB = dict.fromkeys((f"{name}/server" for name in ARMS), layers_json(SiteLayers("lab", (TCG,))))
OFFERS = [
    Offer("published", frozenset({"latency", "coherence"}), frozenset(COSTS)),
    Offer("c", frozenset({"coherence"}), frozenset(COSTS)),
]
RUNS = {
    "whole": {},
    "three rounds": {"blocks": 3},
    "one round": {"blocks": 1},
    "no round": {"blocks": 0},
    "broke": {"breaking": {(block, "docker-bridge", ()): "too many connections" for block in (1, 2, 3)}, "blocks": 3},
    "full cable": {"flags": {(block, arm): (CABLE,) for block in range(1, 11) for arm in ARMS}},
    "some emulated": {"facts": {SCOPE: GUESTS}},
    "all emulated": {"facts": {SCOPE: LAB}},
    "one environment": {"costs": {"docker-bridge": 1.1}},
}


def told(found):
    """What is said of a replication: its outcome, each figure that was measured, and why others were not."""
    yield outcome_sentence(found)
    yield from (f"{name}: {text}" for name, text in found.summary)
    for table in found.tables:
        rows = [row for row in table.rows if row.measured]
        for row in rows:
            words = (direction_words(row), published_text(row.published), measured_text(row), "apart" * row.outside)
            yield f"{table.source.title.split(':')[0]}, {row.name}: {'; '.join(filter(None, words))}"
        if len(rows) < len(table.rows):
            yield f"{table.source.title.split(':')[0]}: {' | '.join(not_measured(table.rows))}"


@pytest.mark.parametrize("name", RUNS)
def test_what_is_said_of_a_replication(run, name: str):
    recipe = {"costs": COSTS, "workloads": [LATENCY, DATAGRAM], "study": "docker-networks"} | RUNS[name]
    analysis = analyse(run(**recipe))
    found = replication(analysis, published("docker-networks"), OFFERS if name == "one round" else ())
    assert_sentence("\n".join(told(found)))
    document = json.loads(json.dumps(replication_json(found), allow_nan=False))
    assert sum(document["counts"].values()) == len(document["rows"])
    measured = [(row["direction"], row["measured"]) for row in document["rows"] if row["measured"]]
    verdicts = [row.verdict for table in found.tables for row in table.rows if row.measured]
    assert [each for each, _ in measured] == verdicts
    assert all(each["emulated"] is not each["comparable_in_size"] for _, each in measured)
    if name == "one round":
        assert all(each["low"] is each["high"] is None for _, each in measured)
    for table in found.tables:
        if drawn := chart(table):
            assert_points(definition_of(drawn), one_round=name == "one round")


def assert_points(spec, *, one_round: bool):
    low, high = spec["layer"][0]["encoding"]["x"]["scale"]["domain"]
    points = next(rows for rows in spec["datasets"].values() if "source" in rows[0])
    assert "published" in {point["source"] for point in points} <= {"published", "measured"}
    assert all(low <= point["low"] <= point["value"] <= point["high"] <= high for point in points)
    for point in points:
        if one_round and point["source"] == "measured":
            assert point["low"] == point["high"]


def test_what_the_run_has_no_value_for_is_folded(run, tmp_path):
    metrics = [(Metric("set_throughput", "requests/s", "higher"), 9e4, 0.01)]
    clients = [Workload("redis", metrics, (("clients", n),)) for n in ("10", "100")]
    store = run(costs={"docker-bridge": 1.2, "docker-host": 1.0}, workloads=clients, study="native-vs-container-apps")
    found = replication(analyse(store), published("native-vs-container-apps"))
    table = next(each for each in found.tables if each.source.title.startswith("Redis SET"))
    absent = [row for row in table.rows if row.measured is None]
    assert {row.reason for row in absent} == {"this level is not in the run"}
    written = page(found, store, tmp_path / "page.html")
    assert f"{len(absent)} published figures without a value in this run" in written
    drawn = json.dumps(definition_of(chart(table)))
    assert '"environment": "clients=100"' in drawn and "clients=800" not in drawn
    assert chart(replace(table, rows=())) is None


# -- the rule --------------------------------------------------------------------------------------

COMPARED = Compared(
    title="t", workload="w", metric="m", unit="s", labels=("x",), measured=Measured(workload="w", metric="m")
)


def published_row(effect, proof, scale="ratio"):
    compared = COMPARED.model_copy(update={"scale": scale})
    return PublishedRow(compared, "docker", {}, 1.0, effect, effect, None, proof)


def measured(typical, verdict, scale="ratio"):
    numbers = Interval(typical, typical * 0.99, typical * 1.01)
    cost = Cost(typical=typical, low=numbers.low, high=numbers.high, geometric=None, arithmetic=numbers, blocks=10,
                exploratory=False, p_value=0.5, equivalent=None, verdict=verdict, better="lower", scale=scale,
                confidence=0.95, margin=0.03)  # fmt: skip
    return Comparison("docker", "native", False, cost, 1.0, typical, None, None, verdict, ())


@pytest.mark.parametrize(
    ("own", "other", "expected"),
    [
        ((1.2, "different"), (1.1, "different"), "agrees"),
        ((0.8, "different"), (0.9, "different"), "agrees"),
        ((1.2, "different"), (0.9, "different"), "disagrees"),
        ((1.0, "equivalent"), (1.01, "equivalent"), "agrees"),
        ((1.0, "equivalent"), (1.2, "different"), "disagrees"),
        ((1.0, "equivalent"), (1.02, "different"), "measured inconclusive"),
        ((1.2, "different"), (1.0, "equivalent"), "disagrees"),
        ((1.02, "different"), (1.0, "equivalent"), "published inconclusive"),
        ((1.2, "different"), (1.1, "inconclusive"), "measured inconclusive"),
        ((1.2, "inconclusive"), (1.1, "inconclusive"), "measured inconclusive"),
        ((1.2, "inconclusive"), (1.1, "different"), "published inconclusive"),
        ((1.2, "sign only"), (1.1, "different"), "agrees"),
        ((1.2, "sign only"), (0.9, "different"), "disagrees"),
        ((1.0, "sign only"), (1.1, "different"), "published inconclusive"),
        ((1.2, "sign only"), (1.0, "equivalent"), "published inconclusive"),
    ],
)
def test_the_rule(own, other, expected):
    assert direction(published_row(*own), measured(*other), 0.03) == expected


def test_a_ratio_beside_a_difference_is_judged_by_its_sign():
    assert direction(published_row(1.4, "different"), measured(0.002, "different", "difference"), 0.03) == "agrees"
    assert (
        direction(published_row(1.4, "different"), measured(-0.002, "different", "difference"), 0.03) == "disagrees"
    )


def test_ratios_as_text():
    assert ratio_text(Interval(1.131, 1.092, 1.172)) == "1.131 [1.092, 1.172]"
    assert ratio_text(Interval(0.9, 0.9, 0.9)) == "0.900 [0.900, 0.900]"
    assert ratio_text(Interval(1.1, 0.0, math.inf)) == "1.100 (no interval)"
    assert ratio_text(Interval(1.1, 1e-5, 3e6)) == "1.100 [0.000, >100]"


def test_what_is_left_out_begins_with_table_and_figure():
    rows = left_out(published("docker-networks"))
    assert all(places.startswith(("Table ", "Section ")) and ": " in places and why for places, why in rows)
    assert any(places.startswith("Table 16: ") for places, _ in rows)


def test_which_way_is_better():
    study = published("docker-networks")
    said = {each.title.split(":")[0]: better_words(study, each) for each in study.comparisons}
    assert said["Table 9"] == "more is better" and said["Table 7"] == said["Tables 20 to 24"] == "less is better"


# -- what is written -------------------------------------------------------------------------------


def page_of(store) -> Page:
    return Page(page(found_in(store), store))


def test_the_page_is_whole_and_offline(run):
    written = page_of(a_run(run, question=HOSTILE, facts={"host": {"kernel": HOSTILE, "link": "100 Mbit/s"}}))
    ids = [attrs["id"] for _, attrs in written.elements if "id" in attrs]
    assert len(ids) == len(set(ids))
    links = [attrs["href"] for attrs in written.all("a")]
    assert all(link[1:] in ids if link.startswith("#") else link == "report.html" for link in links)
    assert not [each for tag in ("link", "img", "iframe") for each in written.all(tag)]
    assert "alert(1)" in written.text and "Table 8: one-way latency" in written.text
    charts = [text for attrs, text in written.scripts if attrs.get("type") == "application/json"]
    assert len(charts) == sum(attrs.get("class") == "chart" for attrs in written.all("div"))
    assert all(json.loads(text)["layer"] for text in charts)
    assert all("alert(1)" not in text for attrs, text in written.scripts if attrs.get("type") != "application/json")


def test_a_page_and_a_table_of_a_run_without_trials(run):
    store = a_run(run, blocks=0)
    assert "not measured" in page_of(store).text and "not measured" in printed(found_in(store), store, 160)


def test_the_table_marks_published_figures_outside(run):
    store = a_run(run)
    document = replication_document(found_in(store), store)
    tables = [each for drawn in document.blocks if isinstance(drawn, Chart) for each in drawn.fallback]
    rows = [row for table in tables if isinstance(table, Table) for row in table.rows]
    marked = [row for row in rows if "published figure outside" in row[2].parts]
    assert len(marked) == sum(row.outside for table in found_in(store).tables for row in table.rows) > 0


def apps(run, **recipe):
    metrics = [(Metric("set_throughput", "requests/s", "higher"), 9e4, 0.001)]
    clients = [Workload("redis", metrics, (("clients", "10"),))]
    return run(costs={"docker-bridge": 1.2}, workloads=clients, study="native-vs-container-apps", **recipe)


def test_a_figure_without_a_spread_is_called_the_same_everywhere(run, tmp_path):
    store = apps(run)
    found = replication(analyse(store), published("native-vs-container-apps"))
    row = next(row for table in found.tables for row in table.rows if row.measured)
    assert direction_words(row) in {"agrees (sign only)", "disagrees (sign only)"}
    written = Page(page(found, store, tmp_path / "page.html")).text
    other = page_of(a_run(run)).text
    for text in (written, other):
        assert "sign only" in text and "no spread published" not in text
    assert "printed runs" not in written and "single runs without a spread" in written
    assert "the 3 printed runs" in other


def test_the_set_up_says_which_server_was_measured(run):
    facts = {"host": {"cores": "2", "memory": "23 GiB"}, "userland packages": {"mariadb-server-core": "1:10.11"}}
    store, study = apps(run, facts=facts), published("native-vs-container-apps")
    rows = {what: (was, here) for what, was, here in setup_rows(study, store, analyse(store))}
    assert rows["database server"] == ("MySQL 8.4.4", "mariadb-server-core 1:10.11")
    assert rows["machine"][1] == "cores 2; memory 23 GiB"
    assert rows["MySQL tables"][0] == "10" and rows["wrk threads"] == ("4", "not in this run")
    notes = {each.note for each in study.comparisons if each.measured.workload == "mysql"}
    assert all("measures MariaDB" in note for note in notes)


def test_the_set_up_is_put_beside_the_published_one(run):
    store = a_run(run, facts={"host": {"kernel": "Linux 6.1"}, "host b": {"link": "100 Mbit/s"}})
    rows = {what: (was, here) for what, was, here in setup_rows(published("docker-networks"), store, analyse(store))}
    assert rows["kernel"] == ("Linux 4.4.38-v7+ (Ubuntu MATE)", "Linux 6.1")
    assert rows["network"][1] == "100 Mbit/s"
    assert rows["repetitions"][1].startswith("10 blocks of every environment")
    assert rows["Docker"][1] == "unknown"
    assert rows["duration of a latency test"][1] == "not in this run"
