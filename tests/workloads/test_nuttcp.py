"""nuttcp: two ports, rates in whole kbit/s, and zeros that are failures."""

from typing import Any

from weighbridge.workloads.nuttcp import PLUGIN, RECEIVER_CPU, SENDER_CPU, THROUGHPUT, NuttcpOptions

from .captured import AT, TWO, UDP, data, parse


def _options(**options: Any) -> NuttcpOptions:
    return PLUGIN.options.model_validate(options)


def _client(**options: Any) -> str:
    return " ".join(PLUGIN.command("client", _options(**options), AT).argv)


def test_retransmits_are_absent_where_they_are_not_printed():
    stdout = data("nuttcp-tcp.txt").replace(b" retrans=0", b"")
    assert [measured.metric for measured in parse("nuttcp", {}, stdout)] == [THROUGHPUT, SENDER_CPU, RECEIVER_CPU]


def test_a_note_about_fragments_is_no_failure():
    note = b'nuttcp-t: Warning="IP_frags_or_no_data_reception_since_buflen=65507_>_ctlconnmss=32741"\n'
    assert parse("nuttcp", TWO | UDP, data("nuttcp-udp-loss.txt"), note)
