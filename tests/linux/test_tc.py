"""Token buckets: what they have let through, in tc's own words."""

import pytest

from weighbridge.linux.tc import carried, token_bucket

TOLD = (
    '[{"kind":"tbf","handle":"1:","root":true,"refcnt":2,"options":{"rate":12500000},"bytes":1514000,"packets":1000,'
    '"drops":3,"overlimits":9,"requeues":0,"backlog":0,"qlen":0},{"kind":"pfifo","handle":"8001:","parent":"1:1",'
    '"options":{"limit":173},"bytes":9,"packets":9}]'
)
"""tc -s -j qdisc show dev eth0, iproute2 6.1, shortened."""


def test_each_frame_has_what_an_ethernet_adds():
    assert carried({"out": TOLD}) == {"out": 8 * 1000 * 1538}


@pytest.mark.parametrize(
    "told", ["", "[]", "{}", "null", "[1]", '[{"root": true}]', '[{"root": true, "bytes": "x"}]']
)
def test_what_tc_does_not_tell_is_not_known(told: str):
    assert carried({"in": told}) == {}


def test_a_bucket_that_splits_large_packets_has_a_peak_rate():
    words = token_bucket(1e8, peakrate="10gbit")
    assert words[words.index("mtu") + 1] == "1614" and words[words.index("limit") + 1] == "262144"
    assert not {"peakrate", "mtu"} & {*token_bucket(1e8)}
