import re
from dataclasses import replace

import pytest

from weighbridge.analysis.analyse import analyse
from weighbridge.analysis.remarks.cost import Unproven
from weighbridge.model.measurement import CPU_USER, Metric
from weighbridge.report.sections.top import matrix_section
from weighbridge.report.text.matrix import cost_range, large, matrix, reference_values, small
from weighbridge.report.text.steps import ladder_sentences
from weighbridge.report.text.summary import sentence, verdict_sentences
from weighbridge.report.text.verdicts import comparison_verdict, cost_text, effect, open_ends
from weighbridge.workloads.command.options import TIME

from .made_up_runs import JITTER, LATENCY, REQUESTS, TCP, THROUGHPUT, Workload, rising_load
from .test_html import check_links, page_of
from .test_terminal import shown

CPU = Workload("cpu", [(Metric("events", "1/s", "higher"), 2100.0, 0.004)])
NOISY = Workload("noisy", [(THROUGHPUT, 1e9, 0.4)])


def words(analysis) -> dict[str, list[str]]:
    return {row.title: [large(row, cell).replace("\u00a0", " ") for cell in row.cells]
            for row in matrix(analysis).rows}  # fmt: skip


def test_costs_by_environment_and_workload_in_words_and_figures(run):
    analysis = analyse(run(costs={"host": 1.0, "bridge": 1.25, "fast": 0.8}, workloads=[TCP, NOISY]))
    found = words(analysis)
    assert matrix(analysis).environments == ("host", "bridge", "fast")  # neither the baseline nor its A/A arm
    assert found["TCP throughput"] == ["within ±3%", "20% lower", "25% higher"]
    assert "undecided" in found["noisy · throughput"]
    first = matrix(analysis).rows[0]
    assert ", ".join(reference_values(analysis, first)).replace("\u00a0", " ").startswith("native 8,")
    assert small(first, first.cells[1]).startswith("[") and "lower" not in small(first, first.cells[1])


def test_what_is_not_decided_has_its_interval_and_why(run):
    analysis = analyse(run(costs={"host": 1.0, "bridge": 1.25}, workloads=[TCP, NOISY]))
    certain, noisy = matrix(analysis).rows
    (open_,) = [cell for cell in noisy.cells if cell.shown_as == "inconclusive"][:1]
    cost = open_.rows[0][1].cost
    low = f"{abs(cost.percent.low):.1f}% {'higher' if cost.percent.low < 0 else 'lower'} to "
    assert cost_range(noisy, open_).replace("\u00a0", " ").startswith(low) or abs(cost.percent.low) >= 9.95
    assert [cost_range(certain, cell) for cell in certain.cells] == ["", ""]
    report, compared = open_.rows[0]
    within = replace(open_, rows=((report, replace(compared, remarks=(Unproven(),))),))
    assert cost_range(noisy, within).splitlines()[1:] == ["control failed"]


def test_a_small_cost_that_is_proven_is_said_beside_the_margin(run):
    """*No difference* stood over an interval that excludes 0."""
    analysis = analyse(run(costs={"host": 1.0, "small": 1.02, "gain": 0.985}, blocks=20, workloads=[CPU]))
    (row,) = matrix(analysis).rows
    assert words(analysis)["cpu · events"] == ["within ±3%"] * 3
    host, small_, gain = (small(row, cell).replace("\u00a0", " ") for cell in row.cells)
    assert re.fullmatch(r"cost -?0\.\d% \[-0\.\d, \d\.\d\] \(90%\)", host)
    assert re.fullmatch(r"\d\.\d% \[[12]\.\d, [123]\.\d\] \(90%\) lower", small_) and gain.endswith("higher")
    (report,) = analysis.headlines
    verdicts = [comparison_verdict(each) for each in report.comparisons]
    assert verdicts[:3] == ["within ±3%", "within ±3%, but a significant cost", "within ±3%, but a significant gain"]
    sentences = [text.replace("\u00a0", " ") for _, text in verdict_sentences(analysis)]
    assert any(
        re.match(r"small has \d\.\d% .*\(20 rounds\) - within ±3%, but a significant cost", each)
        for each in sentences
    )
    assert "host is within ±3% of native in cpu events (20 rounds)" in sentences
    assert re.search(r"\d% \[.*lower", shown(run(costs={"small": 1.02}, blocks=20, workloads=[CPU]), whole=False))


@pytest.mark.parametrize("factor", [1.0, 1.02, 0.98])
def test_what_is_undecided_has_one_sign_everywhere(run, factor):
    """The page said "0.0% [-4.9, 5.0] faster" where the terminal said "cost [-5.0, 4.9]"."""
    for metric in (THROUGHPUT, LATENCY):
        noisy = Workload("noisy", [(metric, 1.0, 0.15)])
        store = run(costs={"bridge": factor}, workloads=[noisy], ladder=["native", "bridge"])
        analysis = analyse(store)
        (report,) = analysis.headlines
        compared = report.comparisons[0]
        assert compared.verdict == "inconclusive"
        text = cost_text(compared, report.unit)
        assert f"{compared.cost.percent.low:.1f},\u00a0{compared.cost.percent.high:.1f}" in text
        ends = open_ends(report, compared)
        gain, cost = ("lower", "higher") if report.better == "lower" else ("higher", "lower")
        assert [each.split()[1] for each in ends] == [
            cost if end >= 0 else gain for end in (compared.cost.percent.low, compared.cost.percent.high)
        ]
        (cell,) = matrix_section(analysis).rows[0].cells
        assert cell.small == cell.title == f"between {ends[0]} and {ends[1]}"
        assert " to ".join(ends) in " ".join(shown(store, whole=False).split())
        assert f"has between {ends[0]} and {ends[1]} " in sentence(report, compared)
        assert [f" has between {ends[0]}" in each for _, each in ladder_sentences(analysis)] == [True]


@pytest.mark.parametrize(
    ("metric", "word"),
    [(THROUGHPUT, "lower"), (Metric("latency_p99", "us", "lower"), "higher"), (TIME, "slower"), (JITTER, "higher"),
     (Metric("memory_per_site", "MiB", "lower"), "higher"), (CPU_USER, "higher"),
     (Metric("score", "x", "higher"), "lower")],
    ids=lambda each: getattr(each, "name", each),
)  # fmt: skip
def test_a_time_is_slower_and_not_higher(run, metric, word):
    analysis = analyse(run(costs={"bridge": 1.25}, workloads=[Workload("w", [(metric, 4.0, 0.01)])]))
    (report,) = analysis.metrics
    assert effect(report, report.comparisons[0]).word == word


def test_a_verdict_that_is_not_known_is_said_as_it_is(run):
    analysis = analyse(run(costs={"host": 1.0}))
    (report, *others) = analysis.metrics
    rows = tuple(replace(row, verdict="hidden") if not row.aa else row for row in report.comparisons)
    hidden = replace(analysis, metrics=(replace(report, comparisons=rows), *others))
    assert words(hidden) == {"TCP throughput": ["hidden by a bottleneck"]}
    assert matrix_section(hidden).rows[0].cells[0].style == "hidden"


def test_few_blocks_show_the_measured_value(run):
    analysis = analyse(run(costs={"host": 1.0}, blocks=2))
    (row,) = matrix(analysis).rows
    assert large(row, row.cells[0]).endswith("Mbit/s") and small(row, row.cells[0]) == "too few rounds"


def test_an_environment_may_be_absent_from_a_cell(run):
    analysis = analyse(
        run(costs={"host": 1.0, "bridge": 1.25}, workloads=[TCP, Workload("web", [(REQUESTS, 9.0, 0.01)])])
    )
    kept = tuple(t for t in analysis.trials if (t.workload, t.environment) != ("web", "bridge"))
    without = replace(analysis, trials=kept)
    assert words(without)["web · requests/s"] == ["within ±3%", "–"]
    assert matrix_section(without).rows[1].cells[1].style == ""


def test_many_levels_are_one_row_that_leads_to_their_curve(run):
    store = run(**rising_load())
    analysis = analyse(store)
    (row,) = matrix(analysis).rows
    assert words(analysis) == {"web · requests/s": ["1.3 to 3.1% lower", "20 to 43% lower"]}
    assert small(row, row.cells[1]) == "at 5 of 6 levels, overloaded at 2 of them"
    assert "#load0" in check_links(page_of(store), store.directory)


def test_a_click_leads_to_the_metric(run):
    store = run(costs={"bridge": 1.25}, workloads=[TCP, NOISY])
    page = page_of(store)
    assert {"#w0m0", "#w1m0"} <= set(check_links(page, store.directory))
    (table,) = [attrs for attrs in page.all("table") if attrs.get("id") == "matrix"]
    assert table["class"] == "matrix"


@pytest.mark.parametrize("width", [40, 80, 160])
def test_the_terminal_has_it_in_bands_that_fit(run, width):
    text = shown(run(costs={f"environment-{n}": 1.25 for n in range(7)}), width=width)
    assert text.count("20% lower") + text.count("20%\n") >= 1 and max(map(len, text.splitlines())) <= width
    head = text.split("Trusted")[0]
    assert all(f"{n}" in head for n in range(7)) and "…" not in head


def test_the_terminal_keeps_the_medians_at_80_columns(run):
    text = shown(run(costs={"docker-published": 1.25}), width=80)
    line = next(line for line in text.splitlines() if line.startswith(" docker-published") and "[" in line)
    assert "Mbit/s" in line and "significant" in line
    assert "Mbit/s" in shown(run(costs={"docker-published": 1.25}), width=50)


def test_the_page_shows_the_further_metrics_of_a_single_workload(run):
    store = run(costs={"host": 1.0, "bridge": 1.25})
    analysis = analyse(store)
    assert [row.title for row in matrix(analysis).further] == ["p99 latency"]
    first, further = matrix_section(analysis).rows
    assert (first.further, further.further) == (False, True)
    assert further.link != first.link
    host, bridge = further.cells
    assert re.fullmatch(r"\[-\d\.\d, \d\.\d\] \(90%\)", host.small.replace("\u00a0", " "))
    assert bridge.verdict == "different" and bridge.small.startswith("[")
    assert "p99 latency" not in shown(store).partition("Control")[0]


def test_further_metrics_are_not_in_the_matrix_of_several_workloads_or_of_one_environment(run):
    several, single = run(costs={"host": 1.0, "bridge": 1.25}, workloads=[TCP, CPU]), run(costs={"bridge": 1.25})
    for store in (several, single):
        assert not matrix(analyse(store)).further
