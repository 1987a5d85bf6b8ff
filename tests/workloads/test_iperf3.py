"""iperf3: its options as arguments, and the failures that it ends with code 0."""

from typing import Any

import pytest

from weighbridge.model.measurement import Measurement, Unparseable
from weighbridge.workloads.iperf3 import JITTER, LOSS, PLUGIN, THROUGHPUT

from .captured import AT, UDP, data, parse


def _client(**options: Any) -> str:
    return " ".join(PLUGIN.command("client", PLUGIN.options.model_validate(options), AT).argv)


def test_both_directions():
    assert _client(bidirectional=True).endswith("-t 10 -P 1 --bidir")
    with pytest.raises(Unparseable, match="sum_received_bidir_reverse"):
        parse("iperf3", {"bidirectional": True}, data("iperf3-tcp.json"))
    one_way = parse("iperf3", {}, data("iperf3-tcp-bidirectional.json"))
    assert one_way == parse("iperf3", {"bidirectional": True}, data("iperf3-tcp-bidirectional.json"))[:2]


def test_zero_throughput_is_a_value():
    stdout = data("iperf3-tcp.json").replace(b"8662628718.9106846", b"0")
    assert parse("iperf3", {}, stdout)[0] == Measurement(THROUGHPUT, 0.0)


def test_retransmits_are_absent_where_the_kernel_does_not_count_them():
    stdout = data("iperf3-tcp.json").replace(b"retransmits", b"retransmitted")
    assert [measured.metric for measured in parse("iperf3", {}, stdout)] == [THROUGHPUT]


@pytest.mark.parametrize("value", [b"null", b"NaN", b"Infinity", b'"fast"', b"true", b"-1", b"1e999", b"9" * 5000])
def test_what_is_no_number_is_unparseable(value: bytes):
    stdout = data("iperf3-tcp.json").replace(b"8662628718.9106846", value)
    with pytest.raises(Unparseable, match="bits_per_second"):
        parse("iperf3", {}, stdout)


@pytest.mark.parametrize("key", [b"sum_received", b"sum_sent", b"lost_percent", b"jitter_ms"])
def test_a_missing_key_is_unparseable_and_never_zero(key: bytes):
    stdout = data("iperf3-udp-10M.json").replace(key, b"something_else")
    with pytest.raises(Unparseable, match=key.decode()):
        parse("iperf3", UDP, stdout)


def test_when_no_datagram_arrives_all_are_lost_whatever_iperf3_says():
    assert b'"lost_percent":\t0' in data("iperf3-udp-all-lost.json")
    measured = parse("iperf3", UDP, data("iperf3-udp-all-lost.json"))
    assert measured == (Measurement(LOSS, 100.0), Measurement(THROUGHPUT, 0.0))


def test_a_loss_that_nothing_came_after_is_counted_too():
    measured = {found.metric: found.value for found in parse("iperf3", UDP, data("iperf3-udp-tail-lost.json"))}
    assert measured[LOSS] == pytest.approx(100 * (851 - 401) / 851)
    assert measured[JITTER] == 0.00999299818422466
    assert measured[THROUGHPUT] == pytest.approx(4.708209321553506)
