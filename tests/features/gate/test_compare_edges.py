"""What a comparison of two runs says besides its costs: disturbances, facts, settings, and what is left out."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from report.made_up_runs import JITTER, TCP, Workload
from sentences import assert_sentence
from weighbridge.features.gate import compare_text as words
from weighbridge.features.gate.between_runs import RunPair, RunsCompared, compare_runs
from weighbridge.features.gate.compare_json import compare_json
from weighbridge.features.gate.compared_run import read_run
from weighbridge.model.flag import Flag, FlagCode
from weighbridge.model.measurement import Outcome
from weighbridge.report.document import plain_text

FACTS = {"kernel": "Linux 6.1", "CPU": "Imaginary 3000", "idle CPUs": "halt"}
WORSE: dict[str, Any] = {"costs": {"bridge": 2.0}}


def disturbed(*environments: str) -> dict[str, Any]:
    flags = (Flag(FlagCode.OTHER_WORK, figures={"cpus": 1.4}),)
    return {"flags": {(block, name): flags for block in range(1, 16) for name in environments}}


def on_host(**more: str) -> dict[str, Any]:
    return {"facts": {"host": FACTS | more}}


EVERYWHERE = disturbed("native", "native-again", "bridge")
SWAPPED = [on_host(**{"sysctl vm.swappiness": value}) for value in ("60", "10")]
FURTHER = [TCP, Workload("ping", [(JITTER, 1e-4, 0.02)])]
PAIRS: dict[str, tuple[dict[str, Any], dict[str, Any], dict[str, Any]]] = {
    "the first was disturbed": (EVERYWHERE, WORSE, {}),
    "the second was disturbed": ({}, WORSE | EVERYWHERE, {}),
    "one environment was disturbed": ({}, WORSE | disturbed("bridge"), {}),
    "both were disturbed alike": (EVERYWHERE, WORSE | EVERYWHERE, {}),
    "a fact was changed on purpose": (*SWAPPED, {"on_purpose": ["sysctl:vm.swappiness"]}),
    "facts changed": ({}, on_host(kernel="Linux 6.2", microcode="0x2"), {}),
    "settings differ": ({}, {"study": "second-look", "options": {"bridge": {"publish": True}}}, {}),
    "the second is not trusted": ({"aa": False}, {"aa_factor": 1.3}, {}),
    "each has more": ({"costs": {"bridge": 1.2, "host": 1.0}}, {"workloads": FURTHER, "aa": False}, {}),
    "trials failed": ({}, {"failing": {(block, "bridge"): Outcome.DEADLINE for block in (1, 2, 3)}}, {}),
    "few rounds": ({}, {"blocks": 1}, {}),
}


def sentences_of(pair: RunPair) -> Iterator[str]:
    yield words.run_words("A", replace(pair.first, created=0.0))
    yield words.run_words("B", replace(pair.second, created=0.0))
    yield f"answer: {plain_text(words.pair_answer(pair, 'A', 'B'))}"
    yield f"disturbance: {words.disturbance_sentence(pair, 'A', 'B')}"
    yield f"no values: {words.why_no_own_values(pair.no_own_values)}"
    if pair.on_purpose:
        yield words.on_purpose_words(pair)
    yield from words.fact_lines(pair.facts)
    yield from map(words.setting_words, pair.settings)
    yield from words.only_lines(pair.only, "A", "B")
    for metric in pair.metrics:
        for row in metric.rows:
            if not row.aa:
                why = words.why_inconclusive(row, metric.before.unit)
                yield f"{metric.before.metric}, {row.environment}: {words.change_verdict(row)}; {why}"


@pytest.mark.parametrize("name", PAIRS)
def test_the_sentences_of_a_comparison_at_an_edge(run, name: str):
    one, other, more = PAIRS[name]
    base = {"costs": {"bridge": 1.2}, "blocks": 15, **on_host()}
    stores = [run(**base | {"seed": 7} | one), run(**base | {"seed": 8} | other)]
    compared = compare_runs(*(read_run(each, f"run{i}") for i, each in enumerate(stores)), **more)
    (pair,) = compared.pairs
    assert_sentence("\n".join(sentences_of(pair)))
    document = compare_json(RunsCompared(pair.first, (pair,)))
    assert bool(document["pairs"][0]["on_purpose"]) == bool(more)
    assert document["pairs"][0]["disturbed_alike"] == (bool(one.get("flags")) == bool(other.get("flags")))
