"""netperf: its ports, its sizes, and the stalls that it does not tell."""

from typing import Any

import pytest

from sentences import raises_sentence
from weighbridge.model.flag import FlagCode
from weighbridge.model.measurement import Measurement, ProgramFailed
from weighbridge.workloads.netperf import ONE_WAY_LATENCY, PLUGIN, RATE, NetperfOptions

from .captured import AT, data, ended, parse

RR = "-k TRANSACTION_RATE,MEAN_LATENCY,P50_LATENCY,P90_LATENCY,P99_LATENCY,STDDEV_LATENCY,ELAPSED_TIME"
CRR = RR.replace("ELAPSED", "MAX_LATENCY,ELAPSED")
STREAM = "-k REMOTE_RECV_THROUGHPUT,LOCAL_SEND_THROUGHPUT,THROUGHPUT_UNITS,ELAPSED_TIME"


def _options(**options: Any) -> NetperfOptions:
    return PLUGIN.options.model_validate(options)


def _client(**options: Any) -> str:
    return " ".join(PLUGIN.command("client", _options(**options), AT).argv)


def test_the_warm_up_is_a_second_of_the_same():
    options = _options(test="UDP_RR", duration="1min")
    measured = PLUGIN.command("client", options, AT).argv
    warm_up = PLUGIN.warm_up(options, AT).argv
    assert [pair for pair in zip(measured, warm_up, strict=True) if pair[0] != pair[1]] == [("60", "1")]


CONNECTS = {"test": "TCP_CRR", "count": 9619, "duration": "2s"}


def test_connections_have_no_one_way_latency():
    measured = {each.metric.name: each.value for each in parse("netperf", CONNECTS, data("netperf-tcp-crr.txt"))}
    assert (measured["rate"], measured["latency_p50"]) == (4809.264, 62)
    assert "one_way_latency" not in measured
    assert not flags("netperf-tcp-crr.txt")


def flags(name: str, *changes: tuple[bytes, bytes]) -> list[tuple[str, float]]:
    text = data(name)
    for before, after in changes:
        assert before in text
        text = text.replace(before, after)
    found = PLUGIN.parse(PLUGIN.options.model_validate(CONNECTS), {"client": ended(text)}).flags
    return [(flag.code, flag.figures["seconds"]) for flag in found]


def test_a_trial_whose_connection_was_lost_is_flagged():
    """In two seconds of the captured one a request of connection was dropped, and came again after a second."""
    assert flags("netperf-tcp-crr-stalled.txt") == [(FlagCode.CONNECTION_LOST, 1.039959)]
    [(_, seconds)] = flags("netperf-tcp-crr.txt", (b"4809.264", b"2404.632"))
    assert seconds == pytest.approx(1.0, abs=0.01), "still waited for at the end"
    with raises_sentence(ProgramFailed):
        flags("netperf-tcp-crr.txt", (b"4809.264", b"0.000"))


def test_one_way_latency_is_computed_as_published():
    stdout = data("netperf-udp-rr.txt").replace(b"164382.399", b"1000.000").replace(b"6.04", b"995.50")
    measured = parse("netperf", {"test": "UDP_RR"}, stdout)
    assert measured[0] == Measurement(RATE, 1000.0)
    assert measured[-1] == Measurement(ONE_WAY_LATENCY, 0.5)
