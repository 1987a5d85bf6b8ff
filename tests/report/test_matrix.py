from dataclasses import replace

import pytest

from weighbridge.analysis.analyse import analyse
from weighbridge.analysis.remarks import Unproven
from weighbridge.report.sections.top import matrix_section
from weighbridge.report.text.matrix import cost_range, large, matrix, native, small

from .made_up_runs import REQUESTS, TCP, THROUGHPUT, Workload, rising_load
from .test_html import check_links, page_of
from .test_terminal import shown

NOISY = Workload("noisy", [(THROUGHPUT, 1e9, 0.4)])


def words(analysis) -> dict[str, list[str]]:
    return {row.title: [large(row, cell).replace("\u00a0", " ") for cell in row.cells]
            for row in matrix(analysis).rows}  # fmt: skip


def test_costs_by_environment_and_workload_in_words_and_figures(run):
    analysis = analyse(run(costs={"host": 1.0, "bridge": 1.25, "fast": 0.8}, workloads=[TCP, NOISY]))
    found = words(analysis)
    assert matrix(analysis).environments == ("host", "bridge", "fast")  # neither the baseline nor its A/A arm
    assert found["tcp · throughput"] == ["no difference", "20 % slower", "25 % faster"]
    assert "cannot tell yet" in found["noisy · throughput"]
    first = matrix(analysis).rows[0]
    assert native(analysis, first).replace("\u00a0", " ").startswith("native 8 ")
    assert small(first, first.cells[1]).startswith("[") and "slower" not in small(first, first.cells[1])


def test_what_is_not_decided_has_its_interval_and_why(run):
    analysis = analyse(run(costs={"host": 1.0, "bridge": 1.25}, workloads=[TCP, NOISY]))
    certain, noisy = matrix(analysis).rows
    (open_,) = [cell for cell in noisy.cells if cell.shown_as == "inconclusive"][:1]
    cost = open_.rows[0][1].cost
    assert cost_range(noisy, open_).startswith(f"cost [{cost.percent.low:.1f},")
    assert [cost_range(certain, cell) for cell in certain.cells] == ["", ""]
    report, compared = open_.rows[0]
    within = replace(open_, rows=((report, replace(compared, remarks=(Unproven(),))),))
    assert cost_range(noisy, within).splitlines()[1:] == ["session not trusted"]


def test_a_verdict_that_is_not_known_is_said_as_it_is(run):
    analysis = analyse(run(costs={"host": 1.0}))
    (report, *others) = analysis.metrics
    rows = tuple(replace(row, verdict="hidden") if not row.aa else row for row in report.comparisons)
    hidden = replace(analysis, metrics=(replace(report, comparisons=rows), *others))
    assert words(hidden) == {"tcp · throughput": ["hidden"]}
    assert matrix_section(hidden).rows[0].cells[0].style == "hidden"


def test_few_blocks_show_the_measured_value(run):
    analysis = analyse(run(costs={"host": 1.0}, blocks=2))
    (row,) = matrix(analysis).rows
    assert large(row, row.cells[0]).endswith("Mbit/s") and small(row, row.cells[0]) == "too few to say"


def test_an_environment_may_be_absent_from_a_cell(run):
    analysis = analyse(
        run(costs={"host": 1.0, "bridge": 1.25}, workloads=[TCP, Workload("web", [(REQUESTS, 9.0, 0.01)])])
    )
    kept = tuple(t for t in analysis.trials if (t.workload, t.environment) != ("web", "bridge"))
    without = replace(analysis, trials=kept)
    assert words(without)["web · requests/s"] == ["no difference", "–"]
    assert matrix_section(without).rows[1].cells[1].style == ""


def test_many_levels_are_one_row_that_leads_to_their_curve(run):
    store = run(**rising_load())
    analysis = analyse(store)
    (row,) = matrix(analysis).rows
    assert words(analysis) == {"web · requests/s": ["1.3 to 3.1 % slower", "20 to 43 % slower"]}
    assert small(row, row.cells[1]) == "at 5 of 6 levels, broke at 2"
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
    assert text.count("20 % slower") + text.count("20 %\n") >= 1 and max(map(len, text.splitlines())) <= width
    head = text.split("Trusted")[0]
    assert all(f"{n}" in head for n in range(7)) and "…" not in head


def test_the_terminal_keeps_the_medians_at_80_columns(run):
    text = shown(run(costs={"docker-published": 1.25}), width=80)
    line = next(line for line in text.splitlines() if line.startswith(" docker-published") and "[" in line)
    assert "Mbit/s" in line and "different" in line
    assert "Mbit/s" in shown(run(costs={"docker-published": 1.25}), width=50)
