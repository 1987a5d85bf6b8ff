"""The scale on which costs are computed, by metric and unit."""

import pytest

from weighbridge.model.measurement import scale_of


@pytest.mark.parametrize("unit", ["count", "%"])
def test_counts_and_shares_are_compared_by_difference(unit):
    assert scale_of("sites", unit) == "difference"


@pytest.mark.parametrize(
    "metric",
    [
        "memory_usage",
        "cpu_usage",
        "memory_server_beyond_baseline",
        "tcp_retransmits_per_gbit",
        "softnet_drops_per_gbit",
        "conntrack_drops_per_1000_transactions",
    ],
)
def test_what_is_a_difference_itself_is_compared_by_difference(metric):
    assert scale_of(metric, "MiB") == "difference"


@pytest.mark.parametrize("unit", ["bit/s", "us", ""])
def test_of_others_the_values_decide(unit):
    assert scale_of("throughput", unit) is None and scale_of("cpu_all_per_gbit", unit) is None
