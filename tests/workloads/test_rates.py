"""The rates that programs are told to keep, and how long their data are on the network."""

from typing import Any

import pytest

from weighbridge import registry
from weighbridge.model.measurement import Measurement, Metric

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
    datagrams = registry.workloads()["datagram-test"]
    options = datagrams.options.model_validate({"packets": 20_000, "report_interval": 20_000})
    rate = next(metric for metric in datagrams.metrics(options) if metric.unit in ("1/s", "packets/s"))
    assert datagrams.sending_s(options, [Measurement(rate, 8000.0)]) == 2.5
    assert datagrams.sending_s(options, []) is None
    puts = registry.workloads()["coherence-put"]
    assert puts.sending_s(puts.options.model_validate({"duration": "3s", "warm_up": "1s"}), []) == 4.0
    tcp = registry.workloads()["iperf3"]
    measured = [Measurement(Metric("throughput", "Mbit/s", "higher"), 94.0)]
    assert tcp.sending_s(tcp.options.model_validate({"duration": "2s", "omit": "1s"}), measured) == 3.0
