"""What the two ends of a path probe print, and whose address was translated."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from weighbridge.facts.connection import parse, translation

DATA = Path(__file__).parent / "data"
CONNECT, LISTEN = ((DATA / f"connection-{role}.txt").read_text() for role in ("connect", "listen"))


def test_what_both_ends_tell():
    near, far = parse(CONNECT), parse(LISTEN)
    assert near is not None and far is not None
    assert near.numbers["mss"] == 65483 and far.numbers["mss"] == 32768 and near.numbers["ttl"] == 1
    assert near.addresses["own"] == far.addresses["peer"] == ("127.0.0.1", 43638)
    (interface,) = near.interfaces
    assert (interface.name, interface.kind, interface.mtu) == ("lo", "loopback", 65536)
    assert interface.offloads == ("gro", "gso", "tso")


@given(st.integers(min_value=0, max_value=len(LISTEN)))
def test_an_output_cut_short_is_read_as_nothing_or_as_what_it_says(end: int):
    found = parse(LISTEN[:end])
    whole = parse(LISTEN)
    assert whole is not None
    if found is not None:
        assert found.addresses["own"] == whole.addresses["own"] and found.interfaces


@pytest.mark.parametrize(
    "text", ["", "no answer\n", "namespace x\n", "namespace 1\n", "own 127.0.0.1\n", LISTEN + "more of it\n"]
)
def test_anything_else_is_nothing(text: str):
    assert parse(text) is None


@given(st.text())
def test_no_text_is_a_fault(text: str):
    parse(text)


def test_a_translated_destination_is_seen():
    """The client connected to port 23500, which the packet filter sent to the server's 23456."""
    near, far = parse(CONNECT), parse(LISTEN)
    assert near is not None and far is not None
    assert translation(("127.0.0.1", 23500), near, far) == "destination"
    assert translation(("127.0.0.1", 23456), near, far) == "none"
    near.addresses["own"] = ("192.0.2.1", 43638)
    assert translation(("127.0.0.1", 23456), near, far) == "source"
    assert translation(("127.0.0.1", 1), near, far) == "source and destination"
    near.addresses["own"] = ("127.0.0.1", 40000)
    assert translation(("127.0.0.1", 23500), near, far) == "proxy", "a connection of its own"


@pytest.mark.parametrize(("sent", "arrived", "translated"), [
    (163, 163, "source and destination"), (163, 147, "source and destination"), (163, 146, "proxy"),
    (163, 64, "proxy"), (163, 128, "proxy"), (163, 254, "proxy"), (163, None, "proxy"), (None, 163, "proxy"),
])  # fmt: skip
def test_another_port_is_no_program_in_between_where_the_packets_are_the_same(
    sent: int | None, arrived: int | None, translated: str
):
    """kube-proxy masquerades with a port that it chooses at random."""
    near, far = parse(CONNECT), parse(LISTEN)
    assert near is not None and far is not None
    near.addresses["own"] = ("10.244.1.5", 40000)
    near.numbers |= {} if sent is None else {"sent": sent}
    far.numbers |= {} if arrived is None else {"arrived": arrived}
    assert translation(("127.0.0.1", 23500), near, far) == translated


@pytest.mark.parametrize(
    ("arrived", "translated"), [(64, "proxy"), (162, "source and destination"), (None, "source and destination")]
)
def test_a_program_in_between_that_keeps_the_port_is_seen_by_its_own_packets(arrived: int | None, translated: str):
    """QEMU's user network over UDP, which has no segments."""
    near, far = parse(CONNECT), parse(LISTEN)
    assert near is not None and far is not None
    near.addresses["own"] = ("192.0.2.1", 43638)
    near.numbers["sent"] = 163
    far.numbers |= {} if arrived is None else {"arrived": arrived}
    assert translation(("127.0.0.1", 23500), near, far) == translated
    near.addresses["own"] = ("127.0.0.1", 43638)
    assert translation(("127.0.0.1", 23500), near, far) == "destination", "its source is the client"


def test_a_program_in_between_that_keeps_the_port_is_seen_by_segments_that_would_not_fit():
    """QEMU's user network: segments of the size of the loopback interface, and an interface of 1500 bytes."""
    near, far = (parse((DATA / f"connection-user-network-{role}.txt").read_text()) for role in ("connect", "listen"))
    assert near is not None and far is not None
    assert near.addresses["own"][1] == far.addresses["peer"][1]
    assert near.numbers["mss"] > 1500
    near.interfaces, far.interfaces = (
        [each for each in end.interfaces if each.name == name] for end, name in ((near, "lo"), (far, "eth0"))
    )  # what carried it
    asked = ("127.0.0.1", 23200)
    assert translation(asked, near, far) == "proxy"
    near.numbers["mss"] = 1460
    assert translation(asked, near, far) == "source and destination"
