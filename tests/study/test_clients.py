"""Clients on several hosts in turn: a factor of every workload that has a client."""

import pytest

from sentences import raises_sentence
from weighbridge.errors import StudyError
from weighbridge.model.study import Study
from weighbridge.study.loader import check
from weighbridge.study.schedule import block
from weighbridge.study.source import parse

TEXT = """
study: s
question: q
hosts: {here: {kind: local}, elsewhere: {kind: testbed}}
placement: {server: here, client: [here, elsewhere]}
baseline: native
environments:
  native: {kind: native}
  inner:  {kind: netns, clients: [here]}
  port:   {kind: docker, network: bridge, publish: true}
workloads:
  tcp: {kind: iperf3, duration: 1s, parallel: [1, 2]}
  cpu: {kind: sysbench-cpu}
"""


def loaded(text: str = TEXT) -> Study:
    return check(parse(text, "s.yaml"))


def test_a_workload_with_a_client_has_a_cell_for_the_clients_of_each_host():
    cells = [(cell.workload, dict(cell.level), cell.client) for cell in loaded().cells]
    assert cells == [
        ("tcp", {"parallel": "1", "client": "here"}, "here"),
        ("tcp", {"parallel": "1", "client": "elsewhere"}, "elsewhere"),
        ("tcp", {"parallel": "2", "client": "here"}, "here"),
        ("tcp", {"parallel": "2", "client": "elsewhere"}, "elsewhere"),
        ("cpu", {}, ""),
    ]


def test_an_environment_is_measured_with_the_clients_that_reach_it():
    study = loaded()
    by_client = {cell.client: [arm.name for arm in study.arms_of(cell)] for cell in study.cells}
    assert by_client == {
        "here": ["native", "inner", "port", "native-again"],
        "elsewhere": ["native", "port", "native-again"],
        "": ["native", "inner", "port", "native-again"],
    }
    trials = block(study, 1)
    assert len(trials) == len({*trials}) == 2 * 4 + 2 * 3 + 4
    assert not [t for t in trials if t.environment == "inner" and dict(t.level).get("client") == "elsewhere"]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (", clients: [here]", ""),
        ("native}", "native, clients: [here]}"),
        ("clients: [here]", "clients: [her]"),
        ("clients: [here]", "clients: []"),
        ("clients: [here]", "clients: here"),
        ("[here, elsewhere]", "[here, here]"),
        ("[here, elsewhere]", "[]"),
        ("[here, elsewhere]", "[here, there]"),
        ("elsewhere: {kind: testbed}", "elsewhere: {kind: local}"),
    ],
)
def test_mistakes(before: str, after: str):
    with raises_sentence(StudyError):
        loaded(TEXT.replace(before, after))
