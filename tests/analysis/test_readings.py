"""Figures that are absent where they are small: left out for a whole workload, or kept."""

import pytest

from weighbridge.analysis.readings import ReadingRate, without_selections
from weighbridge.model.level import Level
from weighbridge.store.run import Value


def values(metric: str, absent: set[int], trials: int = 20) -> list[Value]:
    """A rate of every trial, and another metric of all but some; native's have even numbers."""
    found = []
    for number in range(trials):
        environment = ("native", "bridge")[number % 2]
        for name in ("rate", *(() if number in absent else (metric,))):
            found.append(Value(number, number // 2, 0, environment, "w", Level(), name, "s", "lower", 1.0, 0.0, ()))
    return found


def kept(found: list[Value]) -> set[str]:
    return {value.metric for value in found}


@pytest.mark.parametrize("absent", [set(), {1}, {0, 1}])
def test_one_in_ten_may_lack_it(absent: set[int]):
    given = values("cpu_all_per_gbit", absent)
    assert without_selections(given, None) == given


def test_more_in_one_environment_leaves_it_out_of_all():
    assert kept(without_selections(values("cpu_all_per_gbit", {1, 3}), None)) == {"rate"}
    assert kept(without_selections(values("softirq_share", {0, 2}), None)) == {"rate"}


def test_what_a_hypervisor_took_is_no_selection():
    given = values("cpu_all_per_gbit", {1, 3, 5})
    assert kept(without_selections(given, None, {1, 3, 5})) == {"rate", "cpu_all_per_gbit"}


def test_other_metrics_are_not_judged():
    assert kept(without_selections(values("p99", {1, 3, 5, 7}), None)) == {"rate", "p99"}


def test_memory_that_was_read_too_seldom_is_left_out():
    given = values("memory_client_beyond_baseline", set())
    often, seldom = (dict.fromkeys(range(20), seconds) for seconds in (1.0, 0.3))
    assert without_selections(given, ReadingRate(10, often)) == given
    assert kept(without_selections(given, ReadingRate(10, seldom))) == {"rate"}
