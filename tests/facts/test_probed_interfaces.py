"""Which interfaces carried a probe, from counters captured beside others' traffic (bytes of each sending)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from weighbridge.facts.probed_interfaces import Sending, Watch, carriers, undecided_ends, unsure

ETH0, BUSY, LO = ("client", "eth0"), ("client", "busy"), ("client", "lo")


def sendings(*captured: tuple[int, float, float, float]) -> list[Sending]:
    """Of bytes sent, carried by eth0, and by the busy interface meanwhile and in the silence after."""
    return [
        Sending(sent, {LO: 0.0, ETH0: own, BUSY: meanwhile}, {LO: 0.0, ETH0: 200.0, BUSY: silent})
        for sent, own, meanwhile, silent in captured
    ]


STEADY = sendings(
    (262144, 265478.0, 74021000.0, 81756528.2), (131072, 132876.0, 1303542.0, 998133.8),
    (131072, 132822.0, 916960.0, 914045.6),
)  # fmt: skip
"""Some 40 MB/s all the time."""
DATAGRAMS = sendings(
    (262144, 274175.0, 6501628.0, 6408333.9), (256864, 267923.0, 5918560.0, 5416018.1),
    (256864, 267923.0, 4584800.0, 5996618.2),
)  # fmt: skip
BURSTS = sendings(
    (262144, 264514.0, 2081372.0, 0.0),
    (1333225, 1339583.0, 2084000.0, 2080491.1),
    (1333225, 1339979.0, 0.0, 2076071.0),
)
UNLUCKY = sendings(
    (262144, 264714.0, 2084000.0, 2080743.6),
    (1012980, 1018216.0, 2084000.0, 0.0),
    (1012980, 1018282.0, 2084000.0, 0.0),
)
"""Bursts that met each sending and only one silence: three sendings do not tell, and more are asked for."""


@pytest.mark.parametrize("captured", [STEADY, DATAGRAMS, BURSTS])
def test_what_others_send_is_no_part_of_it(captured: list[Sending]):
    assert carriers(captured) == [ETH0]


def test_more_is_asked_for_where_others_may_have_been_it():
    assert unsure(UNLUCKY) and unsure(STEADY)
    assert not unsure(BURSTS), "one sending did not go there"
    more = sendings((16384, 16500.0, 0.0, 2084000.0))
    assert carriers(UNLUCKY + more) == [ETH0] and not unsure(UNLUCKY + more)


def test_where_it_is_not_told_all_that_may_have_been_it_are():
    alone = [Sending(each.sent, {BUSY: each.meanwhile[BUSY]}, {BUSY: each.silent[BUSY]}) for each in DATAGRAMS]
    assert carriers(alone) == [] and carriers(alone, ("server",)) == [] and carriers(alone, ("client",)) == [BUSY]
    assert carriers(DATAGRAMS, ("client",)) == [ETH0]
    assert undecided_ends(alone, ("client",)) == {"client"} and not undecided_ends(DATAGRAMS, ("client",))


def test_an_interface_that_others_use_too_is_a_part_of_it():
    shared = [
        Sending(each.sent, {ETH0: each.meanwhile[ETH0] + each.meanwhile[BUSY]}, {ETH0: each.silent[BUSY]})
        for each in sendings((4194304, 4230000.0, 916960.0, 998133.8), (4194304, 4230000.0, 1303542.0, 914045.6))
    ]
    assert carriers(shared) == [ETH0] and unsure(shared)


def test_both_ways_of_the_loopback_interface_are_counted():
    captured = [Sending(262144, {LO: 526714.0}, {LO: 0.0}), Sending(1048576, {LO: 2103000.0}, {LO: 0.0})]
    assert carriers(captured) == [LO] and not unsure(captured)


def test_nothing_sent_is_carried_by_nobody():
    assert carriers([]) == [] and not unsure([])


counts = st.floats(min_value=0, max_value=1e15)


@given(st.lists(st.tuples(st.integers(1, 2**40), counts, counts, counts), max_size=5))
def test_what_is_sure_needs_no_more(captured: list[tuple[int, float, float, float]]):
    read = sendings(*captured)
    found = carriers(read)
    for one in (ETH0, BUSY):
        least = min((each.meanwhile[one] / each.sent for each in read), default=0.0)
        assert least >= 0.9 or one not in found


def test_counters_are_read_around_a_sending_and_in_a_silence():
    reads = iter(range(0, 4000, 1000))
    watch = Watch({"client": lambda: f"a\nb\n  eth0: {next(reads)} 0 0 0 0 0 0 0 5 0 0 0 0 0 0 0\n"})
    assert watch.during(lambda: "sent") == "sent"
    watch.silence(900)
    (sending,) = watch.sendings
    assert sending.sent == 900 and sending.meanwhile == {ETH0: 1000.0} and 0 <= sending.silent[ETH0] <= 1000.0
