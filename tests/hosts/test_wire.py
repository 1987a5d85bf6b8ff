"""What a cable has carried: tc's own words, and the files of network cards."""

import json

import pytest

from weighbridge.hosts._wire import card, carried_bits

TOLD = (
    '[{"kind":"tbf","handle":"1:","root":true,"refcnt":2,"options":{"rate":12500000},"bytes":1514000,"packets":1000,'
    '"drops":3,"overlimits":9,"requeues":0,"backlog":0,"qlen":0},{"kind":"pfifo","handle":"8001:","parent":"1:1",'
    '"options":{"limit":173},"bytes":9,"packets":9}]'
)
"""tc -s -j qdisc show dev eth0, iproute2 6.1, shortened."""


def test_each_frame_has_what_an_ethernet_adds():
    assert carried_bits(TOLD) == 8 * 1000 * 1538


@pytest.mark.parametrize(
    "told", ["", "[]", "{}", "null", "[1]", '[{"root": true}]', '[{"root": true, "bytes": "x"}]']
)
def test_what_tc_does_not_tell_is_not_known(told: str):
    assert carried_bits(told) is None


def files(**more: bytes):
    base = "/sys/class/net/eth1"
    own = {
        f"{base}/device/uevent": b"DRIVER=igb\n", f"{base}/speed": b"1000\n",
        f"{base}/statistics/tx_bytes": b"15140000\n", f"{base}/statistics/tx_packets": b"100\n",
        f"{base}/statistics/rx_bytes": b"6400\n", f"{base}/statistics/rx_packets": b"100\n",
    }  # fmt: skip
    own.update({f"{base}/{name}": value for name, value in more.items()})

    def read(path: str) -> bytes:
        if not own.get(path):
            raise FileNotFoundError(path)
        return own[path]

    return read


def test_a_card_that_counts_large_packets_as_one_carried_more_frames():
    link = card(files(), "host a", "eth1")
    assert link is not None and (link.where, link.rate) == ("host a", 1e9)
    assert link.carried() == pytest.approx({"out": 8 * 10_000 * 1538, "in": 8 * 100 * 88})


@pytest.mark.parametrize("more", [{"speed": b"-1\n"}, {"speed": b""}, {"speed": b"x"}, {"device/uevent": b""}])
def test_a_card_without_a_rate_is_no_link(more: dict[str, bytes]):
    assert card(files(**more), "host a", "eth1") is None
    assert card(lambda path: json.dumps(path).encode(), "host a", "") is None
