"""``mtu`` as the size of a datagram: what was probed, in every workload that sends UDP."""

from dataclasses import replace
from typing import Any

import pytest
from pydantic import ValidationError

from sentences import raises_sentence
from weighbridge import registry
from weighbridge.model.measurement import ProgramFailed
from weighbridge.model.workload import Endpoint, Workload

from .captured import AT, UDP

PROBED = replace(AT, udp_payload=1422)
LOAD = {"test": "under-load", "rate": 5000}
CASES = [
    ("netperf", {"test": "UDP_RR", "request_size": "mtu"}, "-r 1422,1422"),
    ("netperf", {"test": "UDP_RR", "request_size": "100B", "response_size": "mtu"}, "-r 100,1422"),
    ("netperf", {"test": "UDP_STREAM", "message_size": "mtu"}, "-m 1422 -R"),
    ("iperf", UDP | {"length": "mtu"}, "-l 1422"),
    ("iperf3", UDP | {"length": "mtu"}, "-l 1422"),
    ("iperf3", UDP | {"length": "mtu", "reverse": True}, "-l 1422 -R"),
    ("sockperf", {"message_size": "mtu"}, "-m 1422"),
    ("sockperf", LOAD | {"message_size": "mtu"}, "-m 1422"),
    ("nuttcp", UDP | {"length": "mtu"}, "-l1422"),
]
BY_CASE = pytest.mark.parametrize(("kind", "options", "words"), CASES)


def _workload(kind: str, options: dict[str, Any]) -> tuple[Workload, Any]:
    workload = registry.workloads()[kind]
    return workload, workload.options.model_validate(options)


def _client(kind: str, options: dict[str, Any], at: Endpoint) -> str:
    workload, read = _workload(kind, options)
    return " ".join(workload.command("client", read, at).argv)


@BY_CASE
def test_mtu_is_what_was_probed(kind: str, options: dict[str, Any], words: str):
    workload, read = _workload(kind, options)
    assert workload.wants_payload(read)
    assert f" {words}" in _client(kind, options, PROBED)
    assert "mtu" not in _client(kind, options, PROBED)
    assert workload.packet_size(read, PROBED) == 1422


def test_both_ends_of_iperf_are_told_of_it():
    workload, read = _workload("iperf", UDP | {"length": "mtu"})
    assert "1422" in workload.command("server", read, PROBED).argv


def test_the_warm_up_of_netperf_has_it_too():
    workload, read = _workload("netperf", {"test": "UDP_RR", "request_size": "mtu"})
    warm_up = workload.warm_up(read, PROBED)
    assert warm_up is not None
    assert "1422,1422" in warm_up.argv


@BY_CASE
def test_without_a_probe_there_is_no_size(kind: str, options: dict[str, Any], words: str):
    workload, read = _workload(kind, options)
    assert workload.packet_size(read, AT) is None
    with raises_sentence(ProgramFailed):
        workload.command("client", read, AT)


@pytest.mark.parametrize(
    ("kind", "options", "size"),
    [
        ("netperf", {"test": "UDP_RR"}, 1),
        ("netperf", {"test": "UDP_RR", "request_size": "1418B"}, 1418),
        ("netperf", {"test": "UDP_RR", "request_size": "1B", "response_size": "1kB"}, 1000),
        ("netperf", {"test": "UDP_STREAM"}, 1468),
        ("netperf", {"test": "TCP_RR", "request_size": "1468B"}, None),
        ("netperf", {"test": "TCP_STREAM"}, None),
        ("iperf", UDP, 1468),
        ("iperf", UDP | {"length": "8KiB"}, 8192),
        ("iperf", {"length": "8KiB"}, None),
        ("iperf3", UDP, 1468),
        ("iperf3", {}, None),
        ("sockperf", {}, 64),
        ("sockperf", LOAD | {"message_size": "65507B"}, 65507),
        ("sockperf", {"protocol": "tcp"}, None),
        ("nuttcp", UDP, 1468),
        ("nuttcp", UDP | {"length": "1418B"}, 1418),
        ("nuttcp", {"length": "1418B"}, None),
        ("redis-benchmark", {}, None),
        ("sysbench-cpu", {}, None),
    ],
)
def test_the_payload_that_is_sent(kind: str, options: dict[str, Any], size: int | None):
    workload, read = _workload(kind, options)
    assert workload.packet_size(read, PROBED) == size
    assert not workload.wants_payload(read)


@pytest.mark.parametrize(
    ("kind", "options"),
    [
        ("netperf", {"request_size": "mtu"}),
        ("netperf", {"test": "TCP_STREAM", "message_size": "mtu"}),
        ("netperf", {"test": "UDP_RR", "message_size": "mtu"}),
        ("iperf", {"length": "mtu"}),
        ("iperf3", {"length": "mtu"}),
        ("sockperf", {"protocol": "tcp", "message_size": "mtu"}),
        ("nuttcp", {"length": "mtu"}),
        ("iperf3", UDP | {"length": "MTU"}),
        ("iperf", UDP | {"length": "1468"}),
    ],
)
def test_mtu_where_it_makes_no_sense(kind: str, options: dict[str, Any]):
    with raises_sentence(ValidationError):
        _workload(kind, options)
