"""nuttcp: two ports, rates in whole kbit/s, and zeros that are failures."""

from typing import Any

import pytest
from pydantic import ValidationError

from sentences import raises_sentence
from weighbridge.model.measurement import ProgramFailed, Unparseable
from weighbridge.workloads.nuttcp import PLUGIN, RECEIVER_CPU, SENDER_CPU, THROUGHPUT, NuttcpOptions

from .captured import AT, TWO, UDP, data, parse


def _options(**options: Any) -> NuttcpOptions:
    return PLUGIN.options.model_validate(options)


def _client(**options: Any) -> str:
    return " ".join(PLUGIN.command("client", _options(**options), AT).argv)


def test_the_server_stays_in_the_foreground():
    server = PLUGIN.command("server", _options(), AT)
    assert " ".join(server.argv) == "nuttcp -S -4 --nofork -P 15201"
    assert server.listens == (("tcp", 15201),)


def test_the_client():
    client = "nuttcp -4 -fparse -P 15201 -p 15202 -T"
    assert _client() == f"{client} 10 192.0.2.7"
    assert _client(reverse=True, length="1MiB", duration="1min") == f"{client} 60 -r -l1048576 192.0.2.7"
    assert _client(**UDP) == f"{client} 10 -u -l1468 -R10000 192.0.2.7"


@pytest.mark.parametrize(
    "options",
    [
        {"protocol": "udp"},
        UDP | {"bitrate": "1500bit/s"},
        UDP | {"bitrate": "0Mbit/s"},
        UDP | {"length": "66kB"},
        {"length": "0B"},
        {"duration": "100ms"},
    ],
)
def test_options_that_make_no_sense(options: dict[str, Any]):
    with raises_sentence(ValidationError):
        _options(**options)


def test_retransmits_are_absent_where_they_are_not_printed():
    stdout = data("nuttcp-tcp.txt").replace(b" retrans=0", b"")
    assert [measured.metric for measured in parse("nuttcp", {}, stdout)] == [THROUGHPUT, SENDER_CPU, RECEIVER_CPU]


def test_zeros_over_zero_seconds_are_a_failure():
    with raises_sentence(ProgramFailed):
        parse("nuttcp", {}, data("nuttcp-data-taken.txt"))


def test_a_server_that_waited_for_the_end_of_udp_has_a_rate_that_is_too_low():
    with raises_sentence(ProgramFailed):
        parse("nuttcp", TWO | UDP, data("nuttcp-udp-tail-lost.txt"))


@pytest.mark.parametrize("file", ["nuttcp-data-refused.stderr", "nuttcp-control-refused.stderr"])
def test_failures_in_its_own_words(file: str):
    with raises_sentence(ProgramFailed):
        parse("nuttcp", {}, b"", data(file), returncode=1)


def test_figures_without_a_server_are_a_failure():
    with raises_sentence(ProgramFailed):
        parse("nuttcp", {}, data("nuttcp-tcp.txt"), data("nuttcp-control-refused.stderr"))


def test_a_note_about_fragments_is_no_failure():
    note = b'nuttcp-t: Warning="IP_frags_or_no_data_reception_since_buflen=65507_>_ctlconnmss=32741"\n'
    assert parse("nuttcp", TWO | UDP, data("nuttcp-udp-loss.txt"), note)


@pytest.mark.parametrize(("options", "file"), [({}, "nuttcp-udp-loss.txt"), (UDP, "nuttcp-tcp.txt")])
def test_the_line_of_the_other_protocol_is_unparseable(options: dict[str, Any], file: str):
    with raises_sentence(Unparseable):
        parse("nuttcp", options, data(file))
