"""iperf 2: the server's report counts, and failures end with code 0."""

from typing import Any

import pytest

from weighbridge.workloads.iperf import JITTER, PLUGIN, IperfOptions

from .captured import AT, TWO, UDP, data, parse


def _options(**options: Any) -> IperfOptions:
    return PLUGIN.options.model_validate(options)


def _both(name: str, options: dict[str, Any], client: bytes | None = None, server: bytes | None = None) -> Any:
    client = data(f"{name}.client.csv") if client is None else client
    server = data(f"{name}.server.csv") if server is None else server
    return parse("iperf", TWO | options, client, others={"server": server})


def test_nothing_is_sent_before_the_measurement():
    assert PLUGIN.warm_up(_options(**UDP), AT) is None


def test_a_warning_is_no_failure():
    warning = b"WARNING: TCP window size set to 4096 bytes.\n"
    server = {"server": data("iperf-udp.server.csv")}
    assert parse("iperf", TWO | UDP, data("iperf-udp.client.csv"), warning, others=server)


def test_jitter_is_the_mean_of_the_streams():
    server = data("iperf-udp-parallel.server.csv").replace(b",0.000,78223", b",0.004,78223")
    found = {
        measured.metric: measured.value
        for measured in _both("iperf-udp-parallel", UDP | {"parallel": 2}, None, server)
    }
    assert found[JITTER] == pytest.approx(0.002)


def test_a_stream_of_zero_bits_is_a_value():
    server = data("iperf-tcp.server.csv").replace(b"18226394954", b"0")
    assert _both("iperf-tcp", {}, None, server)[0].value == 0.0
