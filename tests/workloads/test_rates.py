"""The rates that programs are told to keep, and how long their data are on the network."""

from dataclasses import replace
from typing import Any

import pytest

from weighbridge import registry

from .captured import GOOD, Case

ASKED: list[tuple[str, dict[str, Any], tuple[str, float] | None]] = [
    ("iperf", {"protocol": "udp", "bitrate": "10Mbit/s", "parallel": 2}, ("throughput", 20.0)),
    ("iperf", {}, None),
    ("iperf3", {"bitrate": "5Mbit/s", "parallel": 3}, ("throughput", 15.0)),
    ("iperf3", {}, None),
    ("nuttcp", {"protocol": "udp", "bitrate": "10Mbit/s"}, ("throughput", 10.0)),
    ("nuttcp", {}, None),
    ("sockperf", {"test": "under-load", "rate": 1000}, ("rate", 1000.0)),
    ("sockperf", {}, None),
    ("datagram-test", {"rate": 5}, ("throughput", 5.0)),
    ("datagram-test", {}, None),
    ("nginx-vegeta", {"rate": 500}, ("requests", 500.0)),
    ("nginx-vegeta", {"objective": "10ms"}, None),
    ("netperf", {"test": "UDP_RR"}, None),
    ("redis-benchmark", {}, None),
    ("sysbench-cpu", {}, None),
]


@pytest.mark.parametrize(("kind", "given", "wanted"), ASKED)
def test_what_a_program_is_told_is_a_value_of_one_of_its_metrics(
    kind: str, given: dict[str, Any], wanted: tuple[str, float] | None
):
    plugin = registry.workloads()[kind]
    options = plugin.options.model_validate(given)
    asked = plugin.asked_rate(options)
    assert (asked and (asked.metric.name, asked.value)) == wanted
    assert asked is None or (asked.metric in plugin.metrics(options) and asked.metric.unit.endswith("/s"))


def test_the_start_of_a_virtual_machine_sends_nothing_and_a_warm_up_does():
    def sending_s(case: Case) -> float | None:
        options = case.workload.options.model_validate(case.options)
        return case.result(case.stdout).times(options, ran_s=99.0).sending_s

    cases = {case.kind: case for case in GOOD}
    listened = cases["datagram-test"]
    rate = listened.values["packets_per_second"]
    packets = listened.workload.options.model_validate(listened.options).packets
    assert sending_s(listened) == pytest.approx(packets / rate)
    puts = replace(cases["coherence-put"], options={"duration": "3s", "warm_up": "1s"})
    assert sending_s(puts) == 4.0
    tcp = replace(cases["iperf3"], options={"duration": "2s", "omit": "1s"})
    assert sending_s(tcp) == 3.0
