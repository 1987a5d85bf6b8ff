"""A fleet as people and machines read it: page, terminal, JSON, charts."""

import io
import re
from dataclasses import replace

import pytest
from rich.console import Console

from documents import fits
from sentences import assert_sentence
from weighbridge.cli.commands.studies import SchemaDocument
from weighbridge.features.fleets.analysis import SharedFact, UnlikeFact, read_fleet
from weighbridge.features.fleets.changes import compare_fleets
from weighbridge.features.fleets.charts import NAMED_MACHINES, caterpillar, heat_map
from weighbridge.features.fleets.export import fleet_json
from weighbridge.features.fleets.report import fleet_document
from weighbridge.features.fleets.statistics import MIN_MACHINES_ODD
from weighbridge.features.fleets.text import (
    amount,
    changes_answer,
    controls_answer,
    distance_text,
    fleet_answer,
    outlier_sentences,
    range_text,
    shared_fact_words,
    some_of,
    spread_texts,
    unlike_words,
)
from weighbridge.report.render_page import write_document
from weighbridge.report.render_terminal import print_document
from weighbridge.report.screen import LINES
from weighbridge.statistics import Interval

from .made_up_fleets import RECIPE, make_fleet, make_pairs, make_unit, new_fleet, rounds
from .made_up_runs import LOSS, THROUGHPUT, Workload
from .test_html import HOSTILE, Page
from .test_svg import drawing
from .vega_lite import definition_of


@pytest.fixture(scope="module")
def singles(tmp_path_factory):
    facts = {"n3": {"firmware": "1.2"}, "n7": {"frequency governor": "powersave"}}
    folder = make_fleet(
        tmp_path_factory.mktemp("singles") / "fleet", 12, odd={"n3": 1.25}, slow={"n7": 1.3}, facts=facts
    )
    return read_fleet(folder)


@pytest.fixture(scope="module")
def pairs(tmp_path_factory):
    alone = [("n1", "n2"), ("n2", "n3"), ("n6", "n7")]
    folder = make_pairs(
        tmp_path_factory.mktemp("pairs") / "fleet", rounds(10, 4), slow={"n5": 1.3}, bad={("n8", "n9"): 1.4},
        alone=alone, together=1.15,
    )  # fmt: skip
    return read_fleet(folder)


@pytest.fixture(scope="module")
def changed(tmp_path_factory, singles):
    folder = tmp_path_factory.mktemp("earlier") / "fleet"
    return compare_fleets(singles, read_fleet(make_fleet(folder, 11, seed=2, facts={"n3": {"firmware": "1.1"}})))


def shown(fleet, width=80, compared=None) -> str:
    file = io.StringIO()
    document = fleet_document(fleet, compared)
    print_document(document, Console(file=file, width=width, highlight=False), pages=["page: fleet.html"])
    return file.getvalue().replace("\u00a0", " ")


def page_of(fleet, tmp_path, compared=None) -> Page:
    write_document(fleet_document(fleet, compared), tmp_path / "fleet.html")
    return Page((tmp_path / "fleet.html").read_text())


# -- the terminal ----------------------------------------------------------------------------------


@pytest.mark.parametrize("width", [40, 80, 160])
def test_it_is_a_screen_no_wider_than_the_terminal(singles, pairs, changed, width):
    for fleet, compared in ((singles, None), (pairs, None), (singles, changed)):
        lines = shown(fleet, width, compared).splitlines()
        assert max(map(len, lines)) <= width and "\x1b" not in "".join(lines)
        assert lines[-1] == "page: fleet.html"
        assert width < 80 or len(lines) <= LINES


def test_what_is_odd_stands_on_top_with_what_sets_it_apart(singles):
    text = " ".join(shown(singles, 160).split())
    assert text.startswith(
        "uplink: 2 of 12 machines are outliers: n3, n7. n3: bridge TCP throughput against native is "
    )
    assert "lower than on the other machines. It differs from its peers: firmware 1.2 (11 of 11 others: 1.3" in text
    assert text.index("n7: TCP throughput in native is") < text.index("typical [95%]")


def test_pairs_on_a_screen(pairs):
    text = " ".join(shown(pairs, 160).split())
    assert "n5, with 4 partners: TCP throughput in native is" in text
    assert "n8 → n9: TCP throughput in native is" in text and "look at the cable or port between them" in text
    assert "Pairs of one wave disturb each other (3 pairs also measured alone)" in text


# -- JSON ------------------------------------------------------------------------------------------


def test_for_machines(singles, pairs, changed):
    for fleet, compared in ((singles, None), (pairs, None), (singles, changed)):
        fits(SchemaDocument.FLEET, fleet_json(fleet, compared))
    document = fleet_json(singles)
    assert [each["machine"] for each in document["odd_machines"]] == ["n3", "n7"]
    assert document["odd_machines"][0]["unlike"] == [
        {"fact": "firmware", "value": "1.2", "usual": "1.3 of 2025-02-01", "peers": 11, "of": 11}
    ]
    cost, own = document["metrics"]
    assert (cost["own"], own["own"], cost["effect_unit"], own["unit"]) == (False, True, "%", "bit/s")
    assert cost["typical"]["low"] < cost["typical"]["estimate"] < cost["typical"]["high"]
    assert own["next"]["low"] < own["typical"]["low"] < 8.66e9 < own["next"]["high"]
    (odd,) = [each for each in cost["effects"] if each["odd"]]
    assert odd["machines"] == ["n3"] and odd["distance"]["low"] > 3
    document = fleet_json(pairs)
    assert document["odd_pairs"] == [["n8", "n9"]] and len(document["controls"]) == 2
    assert [each["proven"] for each in document["controls"]] == [False, True]
    against = fleet_json(singles, changed)["against"]
    assert against is not None and against["only_after"] == ["n12"]
    rows = against["shifts"][0]["changes"]
    assert ["n3"] in [row["machines"] for row in rows if row["verdict"] == "different"]


def _fleet_of(folder, metric, value):
    workload = Workload("tcp", [(metric, value, 0.01)])
    return read_fleet(make_fleet(folder, 3, recipe=replace(RECIPE, workloads=[workload])))


def test_a_metric_in_another_unit_is_told(tmp_path):
    before, after = (
        _fleet_of(tmp_path / unit, replace(THROUGHPUT, unit=unit), 8e9) for unit in (THROUGHPUT.unit, "count")
    )
    compared = compare_fleets(after, before)
    document = fleet_json(after, compared)
    fits(SchemaDocument.FLEET, document)
    against = document["against"]
    assert against is not None and [each["why"] for each in against["not_compared"]] == ["unit"] * 2
    assert_sentence(changes_answer(compared))


@pytest.mark.parametrize("values", [(8e9, 0.0), (0.0, 8e9)])
def test_a_metric_of_ratios_in_one_fleet_and_differences_in_the_other_is_compared_as_differences(tmp_path, values):
    before, after = (_fleet_of(tmp_path / str(value), THROUGHPUT, value) for value in values)
    compared = compare_fleets(after, before)
    assert compared.not_compared == () and {each.metric.scale for each in compared.shifts} == {"difference"}
    own = next(each for each in compared.shifts if each.metric.is_own_value)
    worse = 1 if values[0] else -1
    assert [worse * row.shift.estimate == pytest.approx(8e9, rel=0.1) for row in own.rows] == [True] * 3


def test_where_none_is_odd_it_is_said_what_cannot_be_ruled_out(tmp_path):
    for noise in (0.3, 0.0001):
        workload = Workload("tcp", [(THROUGHPUT, 8e9, noise)])
        recipe = replace(RECIPE, workloads=[workload])
        folder = make_fleet(tmp_path / str(noise), 8, recipe=recipe, spread=0.0)
        assert_sentence(fleet_answer(read_fleet(folder)))


def test_a_machine_of_the_same_name_may_be_another_one(tmp_path):
    before = read_fleet(make_fleet(tmp_path / "before", 4))
    ids = {name: {"machine id": "f" * 16} for name in ("n2", "n3")}
    for number in (1, 2):
        facts = dict([*ids.items()][:number])
        after = read_fleet(make_fleet(tmp_path / f"after {number}", 4, facts=facts))
        assert_sentence(changes_answer(compare_fleets(after, before)))


# -- the page --------------------------------------------------------------------------------------


def test_the_page_has_a_row_for_each_machine_and_draws_without_a_script(singles, pairs, tmp_path):
    page_of(singles, tmp_path)
    source = (tmp_path / "fleet.html").read_text()
    assert source.count('class="chart"') == 2 and source.count("<svg") >= 2
    for name in singles.machines:
        assert f">{name}</th>" in source
    page_of(pairs, tmp_path)
    assert (tmp_path / "fleet.html").read_text().count('class="chart"') == 4, "each metric has a map of its pairs"


def test_hostile_names_are_escaped_everywhere(tmp_path):
    folder = new_fleet(tmp_path / "fleet")
    for number in range(5):
        name = f"{HOSTILE}{number}"
        recipe = replace(RECIPE, study="uplink", question=HOSTILE, seed=number)
        facts = {name: {"firmware": HOSTILE if number else "1.3", "kernel": "\x1b[2J" if number == 1 else "6.1"}}
        make_unit(folder, f"u{number}", recipe, [name], facts)
    (folder / "<b>left").mkdir()
    fleet = read_fleet(tmp_path / "fleet")
    page_of(fleet, tmp_path)
    source = (tmp_path / "fleet.html").read_text()
    assert HOSTILE not in source and "<b>left" not in source and "\x1b" not in source + shown(fleet)
    fits(SchemaDocument.FLEET, fleet_json(fleet))


def test_a_fleet_of_which_nothing_can_be_said(tmp_path):
    one = read_fleet(make_fleet(tmp_path / "one", 1))
    assert fleet_answer(one).startswith("One machine only, n1: a fleet needs two.")
    nothing = read_fleet(make_fleet(tmp_path / "nothing", 3, recipe=replace(RECIPE, blocks=0)))
    assert fleet_answer(nothing) == "3 machines: nothing was measured on them."
    untrusted = read_fleet(make_fleet(tmp_path / "untrusted", 3, recipe=replace(RECIPE, aa_factor=1.3)))
    assert fleet_answer(untrusted) == "3 machines: no two of them have a run that counts."
    few = read_fleet(make_fleet(tmp_path / "few", 2))
    assert fleet_answer(few) == f"2 machines: an outlier needs at least {MIN_MACHINES_ODD} machines."
    for number, fleet in enumerate((one, nothing, untrusted, few)):
        page_of(fleet, tmp_path)
        assert shown(fleet) and outlier_sentences(fleet) == []
        fits(SchemaDocument.FLEET, fleet_json(fleet))
        assert [caterpillar(each) is None for each in fleet.metrics] == [number < 3] * len(fleet.metrics)


def test_a_metric_in_its_own_unit(tmp_path):
    recipe = replace(RECIPE, workloads=[Workload("udp", [(LOSS, 3.0, 0.1)])])
    cost, own = read_fleet(make_fleet(tmp_path / "fleet", 5, recipe=recipe)).metrics
    assert cost.scale == "difference" and cost.fleet is not None and own.fleet is not None
    assert "points [" in amount(cost, cost.fleet.typical) and "points" in range_text(cost, cost.fleet.prediction)
    assert "%" in amount(own, own.fleet.typical)
    assert all("±" in text or text == "–" or "none seen" in text for text in spread_texts(cost))
    definition_of(caterpillar(cost))
    fits(SchemaDocument.FLEET, fleet_json(read_fleet(tmp_path / "fleet")))


# -- charts ----------------------------------------------------------------------------------------


def test_the_charts_are_vega_lite(singles, pairs):
    for metric in (*singles.metrics, *pairs.metrics):
        chart = caterpillar(metric)
        assert chart is not None
        definition_of(chart)
        drawing(chart)
        assert (heat_map(metric) is None) == (metric in singles.metrics)
    drawn = heat_map(pairs.metrics[1])
    assert drawn is not None
    cells, frames = definition_of(drawn)["datasets"].values()
    assert len(cells) == len(pairs.metrics[1].counted)
    assert [(each["client"], each["server"]) for each in frames] == [("n8", "n9")]


def test_the_worst_machine_is_on_top_and_odd_ones_are_marked(singles):
    chart = caterpillar(singles.metrics[0])
    assert chart is not None
    rows = next(each for each in definition_of(chart)["datasets"].values() if "machine" in each[0])
    assert (rows[0]["machine"], rows[0]["verdict"]) == ("n3", "outlier")
    assert [each["cost"] for each in rows] == sorted((each["cost"] for each in rows), reverse=True)


def test_of_many_machines_only_odd_ones_have_their_names(singles):
    cost = singles.metrics[0]
    many = {f"m{number}": number for number in range(NAMED_MACHINES)}
    runs = [replace(each, run=replace(each.run, machines=(name,))) for name in many for each in cost.counted[:1]]
    chart = caterpillar(replace(cost, runs=(*cost.runs, *runs)))
    assert chart is not None and chart.height < 10 * (NAMED_MACHINES + 12)
    definition = definition_of(chart)
    (text,) = [each for each in definition["layer"] if each["mark"]["type"] == "text"]
    assert [each["machine"] for each in definition["datasets"][text["data"]["name"]]] == ["n3"]


# -- words -----------------------------------------------------------------------------------------


def test_changes_in_words(changed):
    answer = changes_answer(changed).replace("\u00a0", " ")
    assert re.match(r"A cost changed on \d of 11 machines: n3[,.]", answer)
    assert re.search(r"n7's change is an outlier: TCP throughput in native is [\d.]+% \[.*\] lower", answer)
    assert controls_answer((), "native") == ""


def test_facts_in_words():
    fact = UnlikeFact("mitigations", "spectre: on; l1tf: off", "spectre: on; l1tf: on", 17, 19)
    assert unlike_words(fact) == "mitigations l1tf: off (17 of 19 others: l1tf: on)"
    assert unlike_words(UnlikeFact("version of runc", "1.1", "", 3, 3)) == "runc 1.1 (3 of 3 others: unknown)"
    shared = SharedFact("kernel", {"6.1": ("n1", "n2", "n3"), "6.2": ("n4",)})
    assert shared_fact_words(shared) == ("kernel", "6.1 on 3; 6.2 on n4")
    assert some_of([f"n{number}" for number in range(9)]) == "n0, n1, n2, n3, n4, n5 and 3 more"


def test_amounts_have_one_sign_and_one_unit(singles):
    cost, own = singles.metrics
    at = Interval(0.1, 0.05, 0.15)
    assert distance_text(cost, at).replace("\u00a0", " ") == "9.5% [4.9, 13.9]"
    assert range_text(cost, None) == "–" and range_text(cost, Interval(0, float("-inf"), 1)) == "–"
    value = amount(own, Interval(-22.88, -22.9, -22.86)).replace("\u00a0", " ")
    assert value == "8,643 Mbit/s [8,472, 8,817]"
