"""A workload that is measured without the rate limit of the hosts' cables."""

import pytest

from sentences import raises_sentence
from weighbridge.errors import StudyError
from weighbridge.study.loader import check
from weighbridge.study.source import parse

TEXT = """\
study: linked
question: What does it cost?
hosts:
  a: {{kind: testbed, link: 100mbit}}
  b: {{kind: testbed, link: 100mbit}}
placement: {{client: a, server: b}}
baseline: native
environments:
  native: {{kind: native}}
  other: {{kind: native, own_host: true{environment}}}
workloads:
  tcp: {{kind: iperf3}}
  latency: {{kind: netperf, test: UDP_RR{workload}}}
"""


def study(workload: str = "", environment: str = ""):
    return check(parse(TEXT.format(workload=workload, environment=environment), "linked.yaml"))


def test_a_cable_without_a_limit_is_the_workload_s():
    found = study(", link: none", ", workloads: {latency: {request_size: 64B}}")
    assert {cell.workload: cell.link for cell in found.cells} == {"tcp": None, "latency": "none"}
    assert {cell.link for cell in study().cells} == {None}


@pytest.mark.parametrize("given", ["100mbit", "null", "true", "[none]", "{}"])
def test_nothing_but_none_is_taken(given: str):
    with pytest.raises(StudyError, match=r"linked\.yaml:\d+.*link"):
        study(f", link: {given}")


def test_it_is_the_same_in_every_environment():
    with raises_sentence(StudyError):
        study("", ", workloads: {latency: {link: none}}")
