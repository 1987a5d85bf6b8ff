"""What a gate writes for CI systems: escaped, countable, the same figures everywhere."""

import json
import re
from dataclasses import replace
from typing import get_args
from xml.etree import ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st

from documents import fits
from report.made_up_runs import TCP, THROUGHPUT, Workload
from weighbridge import registry
from weighbridge.analysis.analyse import analyse
from weighbridge.analysis.limits import Reason, judge
from weighbridge.analysis.requirement import BUDGET, LIMIT, MARGIN, parse_requirement
from weighbridge.cli.commands.studies import SchemaDocument
from weighbridge.features.gate.gate_analysis import judge_gate
from weighbridge.features.gate.gate_export import (
    bmf,
    gate_json,
    gate_markdown,
    github_commands,
    gitlab_code_quality,
    junit_xml,
)
from weighbridge.features.gate.gate_looks import Spending
from weighbridge.features.gate.gate_text import GateRow, gate_answer, gate_rows
from weighbridge.report.text.limits import limit_sentence

ANY = st.text(alphabet=st.characters(), max_size=40)
OUTCOMES = st.sampled_from(["passed", "failed", "undecided"])
ROWS = st.builds(GateRow, ANY, ANY, OUTCOMES, ANY, ANY, st.integers(0, 99), st.booleans())
PASSED, FAILED, UNDECIDED = (
    GateRow("bridge.tcp.throughput", "<= 35%", outcome, "20.0% [19.1, 20.9]", "because", 12)
    for outcome in ("passed", "failed", "undecided")
)


@pytest.fixture
def judged(run):
    store = run(costs={"bridge": 1.25, "host": 1.0}, workloads=[TCP, Workload("udp", [(THROUGHPUT, 1e9, 0.2)])])
    analysis = analyse(store)
    budgets = [parse_requirement(each, BUDGET) for each in ("*.tcp.throughput<=10%", "bridge.udp.throughput<=20%")]
    return judge_gate(budgets, store, analysis, Spending()), store, analysis


def test_for_machines(judged):
    gate, _, analysis = judged
    made = gate_json(gate, analysis)
    fits(SchemaDocument.GATE, made)
    assert (made["answer"], made["looks"], made["earlier_looks"], made["against"]) == ("failed", 1, [], None)
    bridge, host, noisy = made["findings"]
    assert (bridge["environment"], bridge["outcome"], bridge["about"]) == ("bridge", "failed", "cost")
    assert (host["outcome"], host["reason"], noisy["outcome"]) == ("passed", "within", "undecided")
    assert bridge["confidence"] == pytest.approx(0.95)
    assert bridge["cost_low"] < bridge["cost"] < bridge["cost_high"] and bridge["budget"] == "*.tcp.throughput<=10%"


def test_for_people(judged):
    gate, _, analysis = judged
    bridge, host, noisy = (row.sentence for row in gate_rows(gate, analysis))
    assert bridge.startswith("failed: bridge.tcp.throughput: 2") and "over its budget" in bridge
    assert host.startswith("passed: host.tcp.throughput: ") and "(10 rounds)" in host
    assert noisy.endswith("the budget is inside the interval")
    assert all("] (95% interval)" in each for each in (bridge, host, noisy))
    assert gate_answer(gate) == "Gate failed: 1 of 3 comparisons over budget, 1 of 3 comparisons undecided."


@pytest.mark.parametrize(("blocks", "words", "cell"), [
    (2, "(2 rounds, exploratory)", "| 2, exploratory |"), (9, "(9 rounds, exploratory)", "| 9, exploratory |"),
    (10, "(10 rounds)", "| 10 |"), (1, "passed: a.b.c: 1%, budget <= 3%: within", "| 1 |"),
])  # fmt: skip
def test_a_gate_of_fewer_than_ten_blocks_is_exploratory(blocks: int, words: str, cell: str):
    row = GateRow("a.b.c", "<= 3%", "passed", "1%", "within", blocks)
    assert words in row.sentence and cell in gate_markdown("study", "", [row])


def test_an_interval_is_labelled_as_it_differs_from_the_reports(judged):
    """A single gate has intervals of 96%, the report of the same run 95%: both looked alike."""
    _, store, analysis = judged
    budget = parse_requirement("bridge.tcp.throughput<=10%", BUDGET)
    gate = judge_gate([budget], store, analysis, Spending(now=0.8))
    (finding,), (row,) = gate_json(gate, analysis)["findings"], gate_rows(gate, analysis)
    assert finding["confidence"] == pytest.approx(0.96) and row.cost.endswith("] (96% interval)")
    (limit,) = judge([parse_requirement("bridge.tcp.throughput > 10%", LIMIT)], analysis)
    assert "] (95% interval)" in limit_sentence(limit, analysis)
    assert "96% interval" in gate_markdown("study", "", [row])


def test_every_reason_has_words_whichever_way_a_requirement_is_spelled(judged):
    gate, _, analysis = judged
    margin = replace(gate.findings[0], requirement=parse_requirement("3%", MARGIN))
    for finding in (gate.findings[0], margin):
        every = [replace(finding, reason=reason) for reason in get_args(Reason)]
        whys = [row.reason for row in gate_rows(replace(gate, findings=tuple(every)), analysis)]
        assert all(whys) and len(set(whys)) == len(every)
    spent = replace(gate.findings[0], outcome="undecided", reason="spent")
    (row,) = gate_rows(replace(gate, findings=(spent,)), analysis)
    assert row.reason == "earlier gates used up this run's error budget: measure a new run"


def test_limits_for_people(judged):
    analysis = judged[2]
    limits = ("bridge.tcp.throughput > 10%", "host.tcp.throughput >= 10%", "bridge.udp.throughput > 20%")
    findings = judge([parse_requirement(each, LIMIT) for each in limits], analysis)
    exceeded, kept, unsure = (limit_sentence(each, analysis).replace("\u00a0", " ") for each in findings)
    assert exceeded.startswith("limit exceeded: bridge.tcp.throughput: ") and exceeded.endswith(", limit 10%")
    assert kept.startswith("limit kept: host.tcp.throughput: ") and kept.endswith(", limit 10%")
    assert unsure.startswith("undecided: bridge.udp.throughput: ")
    assert unsure.endswith(", limit 20%, the limit is inside the interval")


def test_junit_counts_and_names(judged):
    gate, _, analysis = judged
    root = ET.fromstring(junit_xml("tour", gate_rows(gate, analysis)))
    (suite,) = root
    assert [suite.get(key) for key in ("name", "tests", "failures", "errors")] == ["tour", "3", "1", "1"]
    ends = [[child.tag for child in case] for case in suite]
    assert ends == [["failure"], ["system-out"], ["error"]]
    assert suite[0].get("name") == "bridge.tcp.throughput <= 10%"


@given(study=ANY, rows=st.lists(ROWS, max_size=3))
def test_junit_is_xml_whatever_a_run_calls_its_things(study, rows):
    root = ET.fromstring(junit_xml(study, rows))
    assert len(list(root.iter("testcase"))) == len(rows)
    assert len(list(root.iter("failure"))) == sum(row.outcome == "failed" for row in rows)


@given(study=ANY, answer=ANY, rows=st.lists(ROWS, max_size=3))
def test_a_table_in_markdown_has_a_line_for_each_comparison(study, answer, rows):
    lines = gate_markdown(study, answer, rows).split("\n")
    table = [line for line in lines if line.startswith("|")]
    assert len(table) == 2 + len(rows)
    for line in table[2:]:
        assert len(re.findall(r"(?<!\\)(?:\\\\)*\|", line)) == 7, "six columns"


def test_a_summary_can_be_appended():
    made = gate_markdown("tour", "Gate passed.", [PASSED])
    assert made.startswith("## ") and made.endswith("\n\n")


def test_github_s_commands_have_a_line_each():
    failed, undecided, passed = github_commands([FAILED, UNDECIDED, PASSED]).splitlines()
    assert failed.startswith("::error title=weighbridge gate failed::failed: bridge.tcp.throughput")
    assert "20.0%25 [19.1" in failed.replace("\u00a0", " ")
    assert undecided.startswith("::warning ") and passed.startswith("::notice ")


@given(rows=st.lists(ROWS, max_size=3))
def test_no_name_begins_another_command(rows):
    made = github_commands(rows)
    assert made.count("\n") == len(rows) and "\r" not in made
    for line, row in zip(made.split("\n"), rows, strict=False):
        said = line.split("::", 2)[2]
        assert said.replace("%0A", "\n").replace("%0D", "\r").replace("%25", "%") == row.sentence


def test_gitlab_s_report_has_what_is_not_passed():
    made = json.loads(gitlab_code_quality([PASSED, FAILED, UNDECIDED], "runs/one"))
    assert [each["severity"] for each in made] == ["major", "minor"]
    assert {each["location"]["path"] for each in made} == {"runs/one"}
    assert all(each["location"]["lines"]["begin"] == 1 and each["check_name"] for each in made)
    again = GateRow(FAILED.name, FAILED.budget, "failed", "99%", "because", 20)
    assert json.loads(gitlab_code_quality([again], "runs/one"))[0]["fingerprint"] == made[0]["fingerprint"]
    other = GateRow(FAILED.name, "<= 36%", "failed", "99%", "because", 20)
    assert json.loads(gitlab_code_quality([other], "runs/one"))[0]["fingerprint"] != made[0]["fingerprint"]
    assert json.loads(gitlab_code_quality([PASSED], "runs/one")) == []


def test_bencher_gets_every_cost_with_its_limits(judged):
    _, _, analysis = judged
    made = bmf(analysis)
    json.dumps(made, allow_nan=False)
    assert set(made) == {f"{name}.{kind}" for name in ("bridge", "host", "native-again") for kind in ("tcp", "udp")}
    cost = made["bridge.tcp"]["throughput cost (%)"]
    row = next(each for each in analysis.metrics[0].comparisons if each.environment == "bridge").cost.penalty
    assert (cost["value"], cost["lower_value"], cost["upper_value"]) == (row.estimate, row.low, row.high)


def test_the_adapter_reads_what_bencher_gets(judged):
    made = bmf(judged[2])
    benchmarks = ["bridge.tcp", "host.udp"]
    given = {"measure": "throughput cost (%)", "unit": "%", "better": "lower", "benchmarks": benchmarks}
    adapter = registry.adapters()["bmf"].options.model_validate(given)
    read = adapter.read(json.dumps(made).encode(), b"")
    assert [each.value for each in read] == [made[name]["throughput cost (%)"]["value"] for name in benchmarks]


def test_bencher_gets_no_cost_of_few_blocks(run):
    assert bmf(analyse(run(costs={"bridge": 1.25}, blocks=4))) == {}
    assert bmf(analyse(run(costs={"bridge": 1.25}, blocks=0))) == {}
