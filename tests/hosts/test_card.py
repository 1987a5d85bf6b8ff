"""What a network card has carried, from its files."""

import json

import pytest

from weighbridge.hosts.remote.machine import card


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
