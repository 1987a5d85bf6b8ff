"""datagram-test: what its options mean, what its commands say, and how it fails."""

from typing import Any

from sentences import raises_sentence
from weighbridge.model.measurement import ProgramFailed
from weighbridge.workloads.datagram_test import PLUGIN, DatagramTestOptions

from .captured import AT, data, parse

GOOD = data("datagram-test.listener.stderr")


def _options(**given: Any) -> DatagramTestOptions:
    return DatagramTestOptions.model_validate(given)


def _listened(stderr: bytes, **options: Any):
    return parse("datagram-test", options, b"", aside={"server": stderr})


def test_the_published_parameters_are_the_defaults():
    assert (_options().packet_size, _options().packets, _options().report_interval) == (1468, 2_200_000, 100_000)


def test_both_ends_have_the_same_packets_and_the_publisher_a_port_of_its_own():
    options = _options(packet_size="1418B", packets=20_000, report_interval=10_000, rate=12)
    server, client = (PLUGIN.command(role, options, AT).argv for role in ("server", "client"))
    for argv in (server, client):
        assert argv[argv.index("-packetSize") + 1] == "1418"
        assert argv[argv.index("-reportInterval") + 1] == "10000"
    first = server.index("weighbridge.DatagramListener") + 1
    assert server[first : first + 4] == (AT.listen, "15201", "20000", "0")
    first = client.index("weighbridge.DatagramPublisher") + 1
    assert client[first : first + 4] == (AT.client, "15202", AT.address, "15201")
    assert client[client.index("-txRate") + 1] == "12"
    assert "-txRate" not in server


def test_mtu_is_what_was_probed():
    from dataclasses import replace

    options = _options(packet_size="mtu")
    probed = replace(AT, udp_payload=1472)
    assert PLUGIN.wants_payload(options)
    assert PLUGIN.packet_size(options, probed) == 1472
    assert PLUGIN.packet_size(options, AT) is None
    assert "1472" in PLUGIN.command("client", options, probed).argv
    with raises_sentence(ProgramFailed):
        PLUGIN.command("client", options, AT)


def test_the_report_at_the_number_of_packets_counts_and_not_a_later_one():
    first, whole = (_listened(GOOD, packets=packets)[0].value for packets in (100_000, 300_000))
    assert first != whole
