import re
from collections import Counter
from dataclasses import replace

import pytest

from weighbridge.analysis.analyse import analyse
from weighbridge.model.level import Level
from weighbridge.model.measurement import Metric, Outcome
from weighbridge.report.sections.top import matrix_section
from weighbridge.report.text.answer import MOST_WORDS, answer
from weighbridge.report.text.summary import verdict_sentences

from .made_up_runs import LATENCY, REQUESTS, TCP, THROUGHPUT, Workload, rising_load

INTERVAL_WORDS = 5
"""Words of ``(95% interval: 19.1% to 20.9%)``."""
HERE, ELSEWHERE = Level([("client", "here")]), Level([("client", "elsewhere")])
CPU = Workload("cpu", [(Metric("events", "1/s", "higher"), 2100.0, 0.01)])


def said(store) -> str:
    return answer(analyse(store)).replace("\u00a0", " ")


def test_what_costs_most_is_named_and_the_rest_counted(run):
    text = said(run(costs={"host": 1.0, "bridge": 1.25}, bends={("bridge", Level()): 1.0}, workloads=[TCP, CPU]))
    assert re.fullmatch(r"bridge costs up to 20% \((TCP throughput|cpu events)\); host is within ±3%\.", text)


def test_a_gain_is_faster_and_never_a_negative_cost(run):
    text = said(run(costs={"host": 0.8}))
    assert re.fullmatch(r"host: TCP throughput is 25% higher \(95% interval: 2\d\.\d% to 2\d\.\d%\)\.", text), text


def test_of_a_metric_of_which_less_is_better_it_costs_more(run):
    text = said(run(costs={"host": 1.25}, workloads=[Workload("rr", [(LATENCY, 1.0, 0.01)])]))
    assert re.fullmatch(r"host: rr p99 latency is 2[45]% higher \(95% interval: .*\)\.", text), text


def test_what_takes_hundreds_of_times_as_long(run):
    boot = Workload("boot", [(Metric("time to ready", "s", "lower"), 0.02, 0.01)])
    guest = run(costs={"guest": 250.0}, workloads=[boot])
    assert re.fullmatch(
        r"guest takes 2[45]\d times as long \(boot time to ready\) \(95% interval: 2\d\d to 2\d\d times\)\.",
        said(guest),
    )
    told = verdict_sentences(analyse(guest))[0][1].replace("\u00a0", " ")
    assert re.match(
        r"guest takes 2[45]\d times \[2[45]\d, 2[45]\d\] as long as native in boot time to ready", told
    ), told


def test_nothing_proven_is_not_no_difference(run):
    noisy = Workload("tcp", [(THROUGHPUT, 1e9, 0.3)])
    text = said(run(costs={"a": 1.05, "b": 1.0}, workloads=[noisy]))
    assert text == "No cost is significant: both comparisons are undecided."
    assert said(run(costs={"a": 1.0})) == "Every cost is within ±3%."


def test_with_a_ladder_it_is_the_step_that_costs(run):
    costs = {"netns": 1.5, "bridge": 1.5, "published": 1.65}
    text = said(run(costs=costs, ladder=["native", *costs]))
    assert re.fullmatch(
        r"published: TCP throughput is (39|40)% lower \(95% interval: .*\); most of it is netns \(33%\)\. All 3 comparisons are "
        r"significant\.",
        text,
    )


def test_it_has_no_more_words_than_anybody_reads(finished_run):
    for name in ("first-look", "docker-networks"):
        assert len(answer(finished_run(name).analysis).split()) <= MOST_WORDS + INTERVAL_WORDS
    text = answer(finished_run("first-look").analysis).replace("\u00a0", " ")
    assert text == (
        "docker-published costs up to 15% (TCP throughput, remote clients). 3 of 22 comparisons are significant, 15 are "
        "undecided."
    )


def test_what_costs_is_told_where_no_step_could_be_shown(run):
    costs = {"netns": 1.05, "bridge": 1.1, "published": 1.16}
    noisy = [Workload("web", [(REQUESTS, 1000.0, 0.1)])]
    text = said(run(costs=costs, ladder=["native", *costs], workloads=noisy))
    assert text.startswith("published: web requests/s is 1") and "; no single step is significant. " in text
    assert text.endswith("2 of 3 comparisons are significant, 1 is undecided.")


@pytest.mark.parametrize("recipe", ["rich", "rising load"])
def test_it_counts_the_cells_of_the_matrix(run, rich_analysis, recipe):
    """It counted steps of the ladder, and each of many levels, above a matrix with a cell for an environment."""
    analysis = rich_analysis if recipe == "rich" else analyse(run(**rising_load(outputs=False)))
    cells = Counter(each.style for row in matrix_section(analysis).rows for each in row.cells)
    counted = re.search(r"(?:(\d+) of (\d+) |Both )comparisons are significant", answer(analysis))
    different, total = (int(each or 2) for each in counted.groups())
    assert (different, total) == (cells["different"], cells.total())


def test_both_places_of_the_clients_are_named(run):
    both = [replace(TCP, level=HERE), replace(TCP, level=ELSEWHERE), CPU]
    bends = {("bridge", ELSEWHERE): 1.1 / 1.25, ("bridge", Level()): 1 / 1.25}
    text = said(run(costs={"bridge": 1.25}, workloads=both, bends=bends, seed=2))
    assert text.startswith("bridge costs up to 20% (TCP throughput, local clients). ")
    assert text.endswith("2 of 3 comparisons are significant, 1 is within ±3%.") and "client=" not in text
    only = said(run(costs={"bridge": 1.25}, workloads=both, bends={**bends, ("bridge", ELSEWHERE): 1 / 1.25}, seed=2))
    assert only.startswith("bridge: TCP throughput is 20% lower (local clients) (95% interval: ")


def test_of_many_levels_it_is_the_most(run):
    text = said(run(**rising_load(outputs=False)))
    assert text == "bridge costs up to 43% (web requests/s, connections=2000). Both comparisons are significant."


@pytest.mark.parametrize("blocks", [1, 4])
def test_too_few_blocks_have_no_answer(run, blocks):
    assert said(run(costs={"bridge": 1.5}, blocks=blocks)).startswith("Too few rounds for a verdict")


def test_nothing_to_compare(run):
    assert said(run(costs={})).startswith("Only native was measured")
    assert said(run(costs={"host": 1.0}, blocks=0)).startswith("No trial has finished")
    failing = {
        (block, name): Outcome.PROGRAM_FAILED for block in (1, 2) for name in ("native", "host", "native-again")
    }
    assert said(run(costs={"host": 1.0}, blocks=2, failing=failing)) == (
        "All 6 trials failed: there is nothing to compare."
    )


def test_no_block_is_complete(run):
    failing = {(block, "host"): Outcome.PROGRAM_FAILED for block in range(1, 11)}
    told = "No cost could be measured: no round has both native and another environment."
    assert said(run(costs={"host": 1.0}, failing=failing)) == told
    ladder = ["native", "host"]
    assert said(run(costs={"host": 1.0}, failing=failing, ladder=ladder)) == told


def test_comparisons_of_too_few_blocks_are_counted_as_such(run):
    failing = {(block, "host"): Outcome.PROGRAM_FAILED for block in range(1, 9)}
    text = said(run(costs={"host": 1.0, "bridge": 1.25}, failing=failing))
    assert text.endswith("1 of 2 comparisons is significant, 1 has too few rounds.")


def test_values_without_noise_have_an_answer(run):
    assert said(run(costs={"host": 1.0}, workloads=[Workload("w", [(REQUESTS, 10.0, 0.0)])]))
