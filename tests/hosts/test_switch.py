"""What the switch tells the kernel: token buckets and sets of CPUs."""

import pytest

from sentences import raises_sentence
from weighbridge.hosts.options import TestbedOptions
from weighbridge.hosts.switch import _mask, bucket, queue


def options(**given: object) -> TestbedOptions:
    return TestbedOptions.model_validate({"kind": "testbed", **given})


@pytest.mark.parametrize(("link", "packets"), [("100mbit", 173), ("1gbit", 692), ("10gbit", 6605)])
def test_the_queue_is_as_long_as_its_bucket_s_limit_but_in_packets(link: str, packets: int):
    words = bucket(options(link=link))
    assert queue(options(link=link)) == ["pfifo", "limit", str(packets)]
    assert int(words[words.index("limit") + 1]) // 1514 == packets


def test_a_fast_link_has_a_millisecond_of_burst_and_no_offloads():
    fast = options(link="1gbit")
    words = bucket(fast)
    assert "peakrate" not in words
    assert int(words[words.index("burst") + 1]) == 131072
    ten = bucket(options(link="10gbit"))
    assert int(ten[ten.index("burst") + 1]) == 1_250_000
    assert not fast.has_offloads
    assert options(link="100mbit").has_offloads and options().has_offloads
    assert not options(offloads=False).has_offloads
    with raises_sentence(ValueError):
        options(link="1gbit", offloads=True)


@pytest.mark.parametrize(
    ("cpus", "mask"),
    [
        ([0], "00000001"),
        ([0, 1, 5], "00000023"),
        ([32], "00000001,00000000"),
        ([0, 33, 64], "00000001,00000002,00000001"),
    ],
)
def test_cpus_as_the_kernel_takes_them(cpus: list[int], mask: str):
    assert _mask(cpus) == mask
