"""Runs compared as people and machines read them: terminal, page, Markdown, JSON, charts."""

import io
import json
import re
from dataclasses import replace

import pytest
from rich.console import Console

from documents import fits
from report.made_up_runs import LOSS, RETRANSMITS, TCP, Workload
from report.test_html import Page
from report.test_svg import drawing, elements
from report.vega_lite import definition_of
from weighbridge.analysis.conditions import Isolation
from weighbridge.cli.commands.studies import SchemaDocument
from weighbridge.features.gate.between_runs import compare_runs
from weighbridge.features.gate.compare_charts import changes_of_pair, costs_of_runs
from weighbridge.features.gate.compare_document import compare_document
from weighbridge.features.gate.compare_json import compare_json
from weighbridge.features.gate.compare_text import (
    change_sentence,
    change_verdict,
    changes_in_short,
    fact_lines,
    fact_words,
    pair_answer,
    run_letter,
    why_inconclusive,
)
from weighbridge.features.gate.compared_run import FactChange, FactKind, read_run
from weighbridge.features.gate.history_charts import over_runs, series_of
from weighbridge.features.gate.history_document import history_document
from weighbridge.features.gate.history_json import history_json
from weighbridge.features.gate.past_runs import history
from weighbridge.model.facts import KERNEL
from weighbridge.model.isolation import Layer, SiteLayers
from weighbridge.report.document import Heading, Table, plain_text
from weighbridge.report.render_page import write_document
from weighbridge.report.render_terminal import print_document
from weighbridge.report.screen import LINES

FACTS = {"host": {"kernel": "Linux 6.1", "CPU": "Imaginary"}}
LATER = {"host": {"kernel": "Linux 6.2", "CPU": "Imaginary"}}


@pytest.fixture
def compared(run):
    """Make runs of recipes and compare them."""

    def make(*recipes, **more):
        base = {"costs": {"bridge": 1.2, "host": 1.0}, "blocks": 15, "facts": FACTS}
        stores = [run(**{**base, "seed": number, **recipe}) for number, recipe in enumerate(recipes, 7)]
        return compare_runs(*(read_run(each, f"run{n}") for n, each in enumerate(stores)), **more)

    return make


def shown(found, width=80, *, whole=False) -> str:
    file = io.StringIO()
    print_document(compare_document(found), Console(file=file, width=width, highlight=False), full=whole)
    return file.getvalue().replace("\u00a0", " ")


def page_of(found, tmp_path) -> Page:
    path = tmp_path / "compared.html"
    write_document(compare_document(found), path)
    return Page(path.read_text())


@pytest.mark.parametrize("width", [40, 80, 160])
@pytest.mark.parametrize("whole", [False, True])
def test_no_line_is_wider_than_the_terminal(compared, width, whole):
    lossy = Workload("udp", [(LOSS, 0.05, 2.0), (RETRANSMITS, 4.0, 0.5)])
    costs = {"bridge": 1.25, "a-name-as-long-as-a-name-is-allowed-to-b": 1.0}
    recipe = {"costs": costs, "workloads": [TCP, lossy]}
    text = shown(compared(recipe, {**recipe, "facts": LATER}), width, whole=whole)
    assert "\x1b" not in text
    assert max(len(line) for line in text.splitlines()) <= width


def test_three_runs_are_two_comparisons(compared):
    assert len(compared({}, {}, {}).pairs) == 2
    assert [run_letter(number) for number in (0, 25, 26)] == ["A", "Z", "R27"]


@pytest.mark.parametrize("width", [40, 80])
def test_it_is_a_screen_with_the_answer_in_twenty_words(compared, width: int):
    workloads = [Workload(f"{letter}-of-some-length", TCP.metrics) for letter in "abcdefgh"]
    recipe = {"workloads": workloads, "outputs": False}
    costs = {f"environment-{number}": 1.2 for number in range(4)}
    found = compared({**recipe, "costs": costs}, {**recipe, "costs": {**costs, "environment-1": 1.5}, "facts": LATER})
    lines = shown(found, width).splitlines()
    assert 10 <= len(lines) <= LINES and max(map(len, lines)) <= width
    assert lines[-1].endswith("weighbridge compare run0 run1 --all")
    words = plain_text(pair_answer(found.pairs[0], "A", "B", brief=True))
    assert len(words.split()) <= 20 and "environment-1" in words
    interval = next(number for number, line in enumerate(lines) if "[" in line)
    name = "".join(line.split("  ")[0] for line in lines[interval - 1 : interval + 1])
    assert name.startswith("environment-1,"), "complete, also in a column that is too narrow for it"


def test_an_untrusted_run_is_said_on_top(compared):
    found = compared({}, {"aa_factor": 1.3})
    assert shown(found, 80).count("CONTROL FAILED") == 2, "beside its name, and why"
    text = shown(found, 120, whole=True)
    assert "CONTROL FAILED" in text.split("What changed")[0]
    assert "Absolute values are not compared: the control of run1 failed." in text


def test_what_took_a_verdict_stands_beside_it(compared):
    precise = Workload("tcp", [(TCP.metrics[0][0], 8e9, 0.001)])
    loud = {"workloads": [precise], "slowed": {(block, "native-again"): 1.2 for block in range(1, 5)}}
    (pair,) = compared(loud, {**loud, "costs": {"bridge": 1.25, "host": 1.005}}).pairs
    rows = {row.environment: row for row in pair.metrics[0].rows}
    assert why_inconclusive(rows["bridge"], "bit/s").startswith("within both runs' noise floors (±")
    assert why_inconclusive(rows["native-again"], "bit/s") == ""
    (pair,) = compared({"aa_factor": 1.3}, {"costs": {"bridge": 1.9, "host": 1.0}}).pairs
    assert why_inconclusive(pair.metrics[0].rows[0], "bit/s") == "the control of one run failed"


def test_a_significant_change_in_a_sentence(compared):
    quiet = Workload("tcp", [(TCP.metrics[0][0], 8e9, 0.002)])
    (pair,) = compared({"workloads": [quiet]}, {"workloads": [quiet], "costs": {"bridge": 1.0, "host": 1.0}}).pairs
    metric = pair.metrics[0]
    rows = {row.environment: row for row in metric.rows}
    told = plain_text(change_sentence(metric, rows["bridge"], "A", "B"))
    assert re.search(r"is (19|20)\.\d% \[.*\] higher in B than in A - significant$", told), told
    assert change_verdict(rows["host"]) == "within ±3%"
    answer = plain_text(pair_answer(pair, "A", "B"))
    assert "costs changed significantly from A to B: bridge TCP throughput is" in answer


def test_few_blocks_have_no_verdict(compared):
    found = compared({"blocks": 3}, {"blocks": 3})
    assert "too few rounds" in shown(found)
    assert {each["verdict"] for each in compare_json(found)["pairs"][0]["costs"]} == {"inconclusive"}
    assert plain_text(pair_answer(found.pairs[0], "A", "B")).startswith("No cost could be compared")


def test_facts_in_words():
    mitigations = FactChange(FactKind.MITIGATIONS, "mitigations", "a: on; b: off; c: x", "a: on; b: on; c: x")
    assert fact_words(mitigations) == "mitigations: b: off → b: on"
    assert fact_words(FactChange(FactKind.ENGINE, "docker", "20", "29", environments=("a", "b"))) == (
        "docker in a, b: 20 → 29"
    )
    assert fact_words(FactChange(FactKind.CPU, "microcode", "0x1", "", "b")) == "microcode on host b: 0x1 → unknown"
    assert "changed" in fact_words(FactChange(FactKind.LAUNCHER, "launcher", "ab" * 20, "cd" * 20))
    packages = [FactChange(FactKind.PACKAGES, name, "1", "2") for name in ("x", "y")]
    assert fact_lines(packages) == ["2 packages: x 1 → 2, y 1 → 2"]
    assert changes_in_short([*packages, mitigations]) == "mitigations, 2 packages"
    host = FactChange(FactKind.KERNEL, "kernel", "6.1", "6.2")
    site = FactChange(FactKind.KERNEL, KERNEL, "6.1", "6.2", environments=("native",))
    assert fact_words(site) == "kernel in native: 6.1 → 6.2" and changes_in_short([host, site]) == "kernel"


def test_the_document_is_as_its_schema_says(compared):
    retries = Workload("udp", [(RETRANSMITS, 4.0, 0.5)])
    found = compared({"workloads": [TCP, retries]}, {"workloads": [TCP, retries]},
                     {"facts": LATER, "blocks": 1, "aa": False, "options": {"bridge": {"mtu": [1, 2]}}})  # fmt: skip
    document = compare_json(found)
    fits(SchemaDocument.COMPARE, document)
    (bridge,) = [
        each for each in document["pairs"][0]["costs"]
        if (each["environment"], each["metric"]) == ("bridge", "throughput")
    ]  # fmt: skip
    change = bridge["change"]
    assert change["allowed_low"] < change["change_low"] < change["change"] < change["change_high"]
    assert (change["change_unit"], change["allowance"], bridge["before"]["blocks"]) == ("%", 0.01, 15)
    assert document["pairs"][1]["values_not_compared"][0]["reason"] == "machine"
    assert document["pairs"][1]["facts"][0]["before"] == "Linux 6.1"
    assert {each["unknown"] for each in document["pairs"][1]["costs"]} == {"few-blocks"}


def test_the_page_has_every_run_in_every_chart(compared, tmp_path):
    found = compared({}, {"facts": LATER, "costs": {"bridge": 1.4, "host": 1.0}}, {})
    page = page_of(found, tmp_path)
    charts = [json.loads(text) for attrs, text in page.scripts if attrs.get("type") == "application/json"]
    of_metrics = [each for each in charts if "run" in json.dumps(each["layer"][-1]["encoding"].get("shape", {}))]
    assert len(charts) == 4 and len(of_metrics) == 2, "two pairs, two metrics"
    for each in of_metrics:
        assert {row["run"] for rows in each["datasets"].values() for row in rows if "run" in row} == {"A", "B", "C"}


def test_charts_are_valid_and_drawn_without_a_script(compared):
    found = compared({}, {"costs": {"bridge": 1.4, "host": 1.0}})
    (pair,) = found.pairs
    metric = pair.metrics[0]
    both = costs_of_runs({"A": metric.before, "B": metric.after})
    root, words = drawing(both)
    assert len(elements(root, "path")) == 6 and len({each.get("d") for each in elements(root, "path")}) == 2
    assert {"bridge", "host"} <= {each.text for each in words}
    changed, _ = drawing(changes_of_pair(pair), 1080)
    assert len(elements(changed, "path")) == 2 and len(elements(changed, "rect")) >= 2
    few = compared({"blocks": 1}, {"blocks": 1}).pairs[0]
    assert changes_of_pair(few) is None and costs_of_runs({"A": few.metrics[0].before}) is None


@pytest.fixture
def folder(run, tmp_path):
    """A folder of three runs, the last in a folder of its own, with something else beside them."""
    place = tmp_path / "runs"
    place.mkdir()
    facts = (FACTS, LATER, LATER)
    for number in range(3):
        store = run(costs={"bridge": 1.2, "host": 1.0}, seed=number, facts=facts[number])
        at = place / ("deep/third" if number == 2 else f"run{number}")
        at.parent.mkdir(exist_ok=True)
        store.close()
        store.directory.rename(at)
    (place / "notes").mkdir()
    (place / "broken").mkdir()
    (place / "broken" / "run.sqlite").write_text("no database")
    return place


def test_history_is_in_order_and_names_what_it_skips(folder):
    found = history(folder)
    assert [each.run.name for each in found.runs] == ["run0", "run1", "deep/third"]
    assert [len(each.changed) for each in found.runs] == [0, 1, 0]
    assert {each.name for each in found.skipped} == {"notes", "broken"}
    assert found.runs[0].blocks == 10


def headings(found) -> list[str]:
    return [each.soft for each in history_document(found).blocks if isinstance(each, Heading) and each.level == 2]


@pytest.mark.parametrize("width", [40, 80, 160])
def test_history_in_the_terminal(folder, width):
    file = io.StringIO()
    print_document(history_document(history(folder)), Console(file=file, width=width, highlight=False), full=True)
    text = file.getvalue()
    assert max(len(line) for line in text.splitlines()) <= width
    assert "run 2 differs from the previous run of its study: kernel" in " ".join(text.split())


def test_costs_of_another_study_are_in_a_table_of_their_own(run):
    """Both have an environment and a metric of the same name."""
    stores = [run(costs={"bridge": 1.2}, study=study, seed=number) for number, study in enumerate(("a", "b", "a"))]
    found = history(stores[0].directory.parent)
    assert headings(found) == [
        "a: cost [95%] against native; positive is worse",
        "b: cost [95%] against native; positive is worse",
    ]
    _, *tables = [block for block in history_document(found).blocks if isinstance(block, Table)]
    numbers = [[plain_text(row[0].parts) for row in each.rows] for each in tables]
    assert numbers == [["1", "3"], ["2"]]


def test_two_commands_under_one_name_are_no_history_of_one_program(run):
    """`sh -c 'pack a'` and `sh -c 'sort b'` were both the program of weigh-sh."""
    programs = ("pack a", "sort b", "pack a")
    stores = [
        run(costs={"bridge": 1.2}, study="weigh-sh", question=each, notes={"tcp": each}, seed=number)
        for number, each in enumerate(programs)
    ]
    found = history(stores[0].directory.parent)
    assert [each.series for each in found.runs] == [1, 2, 1]
    assert [[point.number for point in each.points] for each in series_of(found)] == [[1, 3], [2]]
    assert [each["series"] for each in history_json(found)["runs"]] == [1, 2, 1]
    assert headings(found) == [
        "weigh-sh (pack a): cost [95%] against native; positive is worse",
        "weigh-sh (sort b): cost [95%] against native; positive is worse",
    ]


def test_history_as_document_and_page(folder, tmp_path):
    found = history(folder)
    document = history_json(found)
    fits(SchemaDocument.HISTORY, document)
    assert [each["changed"][0]["fact"] for each in document["runs"] if each["changed"]] == ["kernel"]
    write_document(history_document(found), tmp_path / "history.html")
    page = Page((tmp_path / "history.html").read_text())
    assert len([1 for attrs, _ in page.scripts if attrs.get("type") == "application/json"]) == 2


def test_the_chart_over_time_marks_what_changed(folder):
    (series,) = series_of(history(folder))
    assert series.environments == ("bridge", "host")
    chart = over_runs(series, "bridge")
    layers = definition_of(chart)["layer"]
    assert r"\u25b2" in layers[0]["encoding"]["x"]["axis"]["labelExpr"]
    costs = [rows for rows in chart.definition["datasets"].values() if rows and "when" in rows[0]]
    assert [len(rows) for rows in costs] == [3]
    assert [rows for rows in chart.definition["datasets"].values() if rows and "changed" in rows[0]] == [
        [{"at": 1.5, "changed": "kernel"}]
    ]


def test_an_environment_in_a_hypervisor_is_called_so_and_another_one_is_a_fact(compared, tmp_path):
    found = compared({}, {})
    emulated = Isolation((SiteLayers("here", (), (Layer("QEMU, TCG", emulated=True),)),))
    first = replace(found.first, analysis=replace(found.first.analysis, isolation={"bridge": emulated}))
    (pair,) = compare_runs(first, found.pairs[0].second).pairs
    assert pair.facts == (
        FactChange(FactKind.ENGINE, "hypervisor", "QEMU, TCG (emulated)", "none", environments=("bridge",)),
    )
    both = compare_runs(first, found.pairs[0].second)
    assert "bridge (QEMU, TCG: emulated)" in shown(both, 160)
    assert "bridge (QEMU, TCG: emulated)" in page_of(both, tmp_path).text
    assert {each["environment"] for each in compare_json(both)["pairs"][0]["costs"]} == {
        "bridge", "host", "native-again",
    }  # fmt: skip
