"""A run beside the published study: directions, the page, the table, the document."""

import json
import math
from dataclasses import replace

import pytest

from report.made_up_runs import Workload
from report.test_html import HOSTILE, Page
from report.vega_lite import definition_of
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
    outcome_sentence,
    ratio_text,
    setup_rows,
)
from weighbridge.model.facts import layers_json
from weighbridge.model.isolation import SCOPE, Layer, SiteLayers
from weighbridge.model.measurement import Metric
from weighbridge.report.document import Chart, Table, plain_text
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


def by_table(found):
    return {table.source.title.split(":")[0]: {row.name: row for row in table.rows} for table in found.tables}


def test_directions_of_a_run(run):
    latency = by_table(found_in(a_run(run)))["Table 8"]
    assert latency["docker-bridge"].verdict == "agrees"
    assert latency["docker-overlay"].verdict == "disagrees"  # published slower, here faster
    assert latency["docker-macvlan"].verdict == "published inconclusive"
    assert latency["docker-host"].measured.verdict == "equivalent"
    assert latency["docker-host"].verdict == "disagrees"  # published as 3.5 % slower, here within 3 %
    throughput = by_table(found_in(a_run(run)))["Table 9"]
    assert throughput["docker-host"].verdict == "agrees"  # both equivalent


def test_fragmentation_has_an_environment_of_its_own(run):
    tables = by_table(found_in(a_run(run)))
    row = tables["Table 17"]["docker-overlay-1468"]
    assert row.verdict == "agrees"
    assert row.measured.environment == "docker-overlay-1468"


def test_shares_are_compared_by_difference(run):
    row = by_table(found_in(a_run(run)))["Tables 20 to 24"]["docker-overlay"]
    assert row.measured.cost.scale == "difference"
    assert row.verdict == "disagrees"  # published as more loss, here less


def test_what_broke_says_so_instead_of_a_comparison(run):
    breaking = {(block, "docker-bridge", ()): "too many connections" for block in range(1, 4)}
    row = by_table(found_in(a_run(run, breaking=breaking, blocks=3)))["Table 8"]["docker-bridge"]
    assert row.verdict == "not measured"
    assert row.why == "docker-bridge overloaded in 3 of 3 trials: too many connections"


def test_what_was_not_measured_says_why(run):
    found = by_table(
        found_in(run(costs={"docker-bridge": 1.1}, workloads=[LATENCY, DATAGRAM], study="docker-networks"))
    )
    assert found["Table 13"]["docker-bridge"].why == "no finished trial of coherence"
    assert found["Table 11"]["docker-bridge"].why == "datagram has no CPU usage in this run"
    assert found["Table 8"]["docker-macvlan"].why == "docker-macvlan is not in this run"
    assert all(row.verdict == "not measured" for row in found["Table 15"].values())


def test_figures_that_differ_in_size_are_told_whatever_their_direction(run):
    """Published: bridge 1.131 [1.092, 1.172], macvlan 1.018 [0.997, 1.038]; made up: 1.12 and 1.05 ± 0.2 %."""
    found = found_in(a_run(run))
    latency = by_table(found)["Table 8"]
    assert latency["docker-bridge"].verdict == "agrees" and not latency["docker-bridge"].outside
    assert latency["docker-macvlan"].verdict == "published inconclusive" and latency["docker-macvlan"].outside
    rows = [row for table in found.tables for row in table.rows]
    apart, measured = sum(row.outside for row in rows), sum(row.measured is not None for row in rows)
    assert f"{apart} of {measured} published sizes lie outside" in outcome_sentence(found)
    assert not any(row.outside for row in rows if row.measured is None)
    one = by_table(found_in(a_run(run, blocks=1)))["Table 8"]
    assert not any(row.outside for row in one.values()), "a single block has no interval"


def test_what_the_run_has_no_value_for_is_folded(run, tmp_path):
    metrics = [(Metric("set_throughput", "requests/s", "higher"), 9e4, 0.01)]
    clients = [Workload("redis", metrics, (("clients", n),)) for n in ("10", "100")]
    store = run(costs={"docker-bridge": 1.2, "docker-host": 1.0}, workloads=clients, study="native-vs-container-apps")
    found = replication(analyse(store), published("native-vs-container-apps"))
    written = page(found, store, tmp_path / "page.html")
    table = next(each for each in found.tables if each.source.title.startswith("Redis SET"))
    absent = [row for row in table.rows if row.measured is None]
    assert {row.why for row in absent} == {"this level is not in the run"}
    assert f"{len(absent)} published figures without a value in this run" in written
    drawn = json.dumps(definition_of(chart(table)))
    assert '"environment": "clients=100"' in drawn and "clients=800" not in drawn


def test_few_blocks_are_marked(run):
    found = by_table(found_in(a_run(run, blocks=3)))
    assert direction_words(found["Table 8"]["docker-bridge"]).endswith("(exploratory)")


def test_a_run_without_trials(run):
    found = found_in(a_run(run, blocks=0))
    assert found.counts["not measured"] == sum(found.counts.values())


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
    return Comparison("docker", False, cost, 1.0, typical, None, None, verdict, ())


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


def test_a_profile_that_measures_the_missing_is_named(run):
    envs = frozenset(COSTS)
    offers = [
        Offer("published", frozenset({"latency", "coherence"}), envs),
        Offer("c", frozenset({"coherence"}), envs),
    ]
    found = replication(analyse(a_run(run, blocks=1)), published("docker-networks"), offers)
    row = by_table(found)["Table 13"]["docker-bridge"]
    assert row.why.endswith("no finished trial of coherence: --profile c measures it")
    assert (
        by_table(found)["Table 12"]["docker-bridge"].why
        == "datagram has no memory usage (committed, used or not) in this run"
    )


def test_the_summary_has_a_line_for_each_environment(run):
    found = found_in(a_run(run))
    lines = dict(found.summary)
    assert set(lines) == set(COSTS) and all(line.startswith("agrees ") for line in lines.values())
    assert sum(int(part.split()[-1]) for line in lines.values() for part in line.split(", ")) == sum(
        found.counts.values()
    )


def test_what_is_left_out_begins_with_table_and_figure():
    rows = left_out(published("docker-networks"))
    assert all(places.startswith(("Table ", "Section ")) and ": " in places and why for places, why in rows)
    assert any(places.startswith("Table 16: ") for places, _ in rows)


def test_which_way_is_better():
    study = published("docker-networks")
    said = {each.title.split(":")[0]: better_words(study, each) for each in study.comparisons}
    assert said["Table 9"] == "more is better" and said["Table 7"] == said["Tables 20 to 24"] == "less is better"


def test_one_block_has_no_interval_anywhere(run):
    found = found_in(a_run(run, blocks=1))
    rows = [row for row in replication_json(found)["rows"] if row["measured"]]
    assert rows and all(row["measured"]["low"] is row["measured"]["high"] is None for row in rows)
    table = next(each for each in found.tables if each.source.title.startswith("Table 8"))
    measured_points = [p for p in drawn_points(definition_of(chart(table))) if p["source"] == "measured"]
    assert all(p["low"] == p["value"] == p["high"] and p["shown"].endswith("(no interval)") for p in measured_points)


# -- what is written -------------------------------------------------------------------------------


def page_of(store) -> Page:
    return Page(page(found_in(store), store))


def test_the_page_is_whole_and_offline(run):
    store = a_run(run, facts={"host": {"kernel": "Linux 6.1", "link": "100 Mbit/s"}})
    page = page_of(store)
    ids = [attrs["id"] for _, attrs in page.elements if "id" in attrs]
    assert len(ids) == len(set(ids))
    links = [attrs["href"] for attrs in page.all("a")]
    assert all(link[1:] in ids if link.startswith("#") else link == "report.html" for link in links)
    assert not [a for tag in ("link", "img", "iframe") for a in page.all(tag)]
    for wanted in (
        "Table 8: one-way latency",
        "1.131 [1.092,",
        "Known oddities",
        "17.04.0-ce",
        "Linux 6.1",
        "agrees",
    ):
        assert wanted in page.text
    charts = [text for attrs, text in page.scripts if attrs.get("type") == "application/json"]
    assert len(charts) == len(page.all("div")) - sum(a.get("class") != "chart" for a in page.all("div"))
    assert all(json.loads(text)["layer"] for text in charts)


def test_text_of_a_run_cannot_leave_its_place(run):
    page = page_of(a_run(run, question=HOSTILE, facts={"host": {"kernel": HOSTILE}}))
    assert "alert(1)" in page.text
    assert not page.all("img")
    assert all("alert(1)" not in text for attrs, text in page.scripts if attrs.get("type") != "application/json")


def test_a_page_of_a_run_without_trials(run):
    assert "not measured" in page_of(a_run(run, blocks=0)).text


def drawn_points(spec):
    return next(rows for rows in spec["datasets"].values() if "source" in rows[0])


def test_a_chart_holds_both_sides_and_bounded_intervals(run):
    table = next(each for each in found_in(a_run(run)).tables if each.source.title.startswith("Table 7"))
    drawn = chart(table)
    assert drawn is not None
    spec = definition_of(drawn)
    low, high = spec["layer"][0]["encoding"]["x"]["scale"]["domain"]
    points = drawn_points(spec)
    assert {point["source"] for point in points} == {"published"}
    assert all(low <= point["low"] <= point["value"] <= point["high"] <= high for point in points)
    both = chart(next(t for t in found_in(a_run(run)).tables if t.source.title.startswith("Table 8")))
    assert {point["source"] for point in drawn_points(definition_of(both))} == {"published", "measured"}
    assert chart(replace(table, rows=())) is None


def test_the_table_in_the_terminal(run):
    store = a_run(run)
    told = printed(found_in(store), store, 160)
    assert "Table 8: one-way latency of UDP (ratio to native; less is better)" in told
    assert "1.131 [1.092, 1.172]" in told
    assert "published comparisons with native: agrees" in told


def test_the_table_marks_published_figures_outside(run):
    store = a_run(run)
    document = replication_document(found_in(store), store)
    charts = [block for block in document.blocks if isinstance(block, Chart)]
    tables = [each for chart in charts for each in chart.fallback if isinstance(each, Table)]
    marked = [row[0].parts for table in tables for row in table.rows if "published figure outside" in row[2].parts]
    assert len(marked) == sum(row.outside for table in found_in(store).tables for row in table.rows) > 0
    latency = next(each for each in charts if each.title.startswith("Table 8")).fallback[0]
    names = {plain_text(row[0].parts) for row in latency.rows if "published figure outside" in row[2].parts}
    assert "docker-macvlan" in names and "docker-bridge" not in names


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


def test_the_document(run):
    document = json.loads(json.dumps(replication_json(found_in(a_run(run))), allow_nan=False))
    row = next(
        r for r in document["rows"] if r["table"].startswith("Table 8") and r["environment"] == "docker-bridge"
    )
    assert row["direction"] == "agrees"
    assert row["measured"]["scale"] == "ratio" and row["measured"]["blocks"] == 10
    assert row["published"]["verdict"] == "different"
    assert sum(document["counts"].values()) == len(document["rows"])
    unmeasured = next(r for r in document["rows"] if r["table"].startswith("Table 13"))
    assert unmeasured["measured"] is None and unmeasured["why"]


def test_the_set_up_is_put_beside_the_published_one(run):
    store = a_run(run, facts={"host": {"kernel": "Linux 6.1"}, "host b": {"link": "100 Mbit/s"}})
    rows = {what: (was, here) for what, was, here in setup_rows(published("docker-networks"), store, analyse(store))}
    assert rows["kernel"] == ("Linux 4.4.38-v7+ (Ubuntu MATE)", "Linux 6.1")
    assert rows["network"][1] == "100 Mbit/s"
    assert rows["repetitions"][1].startswith("10 blocks of every environment")
    assert rows["Docker"][1] == "unknown"
    assert rows["duration of a latency test"][1] == "not in this run"


def test_figures_of_hardware_are_not_compared_in_size_with_those_of_an_emulator(run, tmp_path):
    layers = {
        "docker-macvlan/server": SiteLayers("here", (), (Layer("QEMU, TCG", emulated=True),)),
        "docker-host/server": SiteLayers("here", (), (Layer("QEMU, KVM"),)),
    }
    store = a_run(run, facts={SCOPE: {place: layers_json(each) for place, each in layers.items()}})
    found, plain = found_in(store), found_in(a_run(run))
    before, row = (by_table(each)["Table 8"] for each in (plain, found))
    emulated, kvm = row["docker-macvlan (QEMU, TCG: emulated)"], row["docker-host (QEMU, KVM)"]
    assert before["docker-macvlan"].outside and not emulated.outside
    assert direction_words(emulated) == "published inconclusive (emulated)"
    assert emulated.verdict == before["docker-macvlan"].verdict
    assert (kvm.outside, direction_words(kvm)) == (
        before["docker-host"].outside,
        direction_words(before["docker-host"]),
    )
    measured = [each for table in found.tables for each in table.rows if each.measured]
    under = sum(each.published.environment == "docker-macvlan" for each in measured)
    assert f"of {len(measured) - under} published sizes lie outside" in outcome_sentence(found)
    assert f"Sizes measured under emulation ({under}) are not comparable." in outcome_sentence(found)

    text = printed(found, store)
    written = Page(page(found, store, tmp_path / "page.html")).text
    assert "docker-macvlan (QEMU, TCG: emulated): measured under emulation (QEMU, TCG). Their costs" in written
    for shown in (text, written):
        assert shown.count("docker-macvlan (QEMU, TCG: emulated)") > under
    charts = [drawn for table in found.tables if (drawn := chart(table)) and any(row.measured for row in table.rows)]
    assert any("docker-macvlan (QEMU, TCG: emulated)" in json.dumps(definition_of(each)) for each in charts)

    rows = replication_json(found)["rows"]
    mine = [each["measured"] for each in rows if each["environment"] == "docker-macvlan" and each["measured"]]
    assert mine and all(each["emulated"] and not each["comparable_in_size"] and not each["apart"] for each in mine)
    assert mine[0]["layers"] == [{"name": "QEMU, TCG", "emulated": True}]
    (host,) = {each["measured"]["comparable_in_size"] for each in rows
               if each["environment"] == "docker-host" and each["measured"]}  # fmt: skip
    assert host


def test_no_size_is_compared_where_the_baseline_itself_was_emulated(run):
    guest = layers_json(SiteLayers("lab", (Layer("QEMU, TCG", emulated=True),)))
    found = found_in(
        a_run(run, facts={SCOPE: {f"{name}/server": guest for name in ("native", "native-again", *COSTS)}})
    )
    measured = [row for table in found.tables for row in table.rows if row.measured]
    assert all(row.emulated and not row.outside for row in measured)
    assert "lie outside" not in outcome_sentence(found)
    assert found.all_emulated and not any("emulated" in row.name for row in measured)
