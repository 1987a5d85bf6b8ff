"""CPU time and memory per unit of work: pure, and absent wherever something is not known."""

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from weighbridge.analysis.resources import is_resource_use
from weighbridge.model.measurement import Measurement, Metric
from weighbridge.model.trial import Series, Work
from weighbridge.runner.costs import derived, usage, work_of

MBIT = Metric("throughput", "Mbit/s", "higher")
RATE = Metric("rate", "1/s", "higher")
JITTER = Metric("jitter", "ms", "lower")
USED = {"client": {"cpu_s": 4.0}, "server": {"cpu_s": 2.0}}
MIB = 2.0**20


def costs(measurements, used=USED, measured_s=10.0, series=()) -> dict[str, tuple[float, str]]:
    found = derived(used, series, work_of([Measurement(metric, value) for metric, value in measurements], measured_s))
    assert all(each.metric.better == "lower" and is_resource_use(each.metric.name) for each in found)
    return {each.metric.name: (each.value, each.metric.unit) for each in found}


def test_cpu_seconds_per_gigabit():
    assert costs([(MBIT, 1000.0)]) == {
        "cpu_client_per_gbit": (0.4, "s/Gbit"), "cpu_server_per_gbit": (0.2, "s/Gbit")}  # fmt: skip
    assert costs([(Metric("sent", "MiB/s", "higher"), 1e9 / 8 / MIB)])["cpu_client_per_gbit"][0] == pytest.approx(0.4)


def test_cpu_seconds_per_thousand():
    assert costs([(RATE, 2000.0), (JITTER, 1.0)]) == {
        "cpu_client_per_1000_transactions": (0.2, "s/1000"), "cpu_server_per_1000_transactions": (0.1, "s/1000")
    }  # fmt: skip


def test_the_rate_need_not_be_the_headline():
    assert set(costs([(JITTER, 0.1), (MBIT, 10.0)])) == {"cpu_client_per_gbit", "cpu_server_per_gbit"}


@pytest.mark.parametrize(
    "measurements", [[], [(MBIT, 0.0)], [(JITTER, 5.0)], [(MBIT, 5.0), (Metric("reverse", "Mbit/s", "higher"), 5.0)]]
)
def test_no_work_or_none_that_is_known(measurements):
    assert costs(measurements) == {}


def test_cpu_that_could_not_be_read():
    assert set(costs([(MBIT, 5.0)], {"client": {"cpu_s": 1.0}, "server": {"memory_bytes": 5.0}})) == {
        "cpu_client_per_gbit"
    }
    assert costs([(MBIT, 5.0)], {"solo": {"cpu_s": 1.0}}) == {}
    assert costs([(MBIT, 5.0)], USED, 0.0) == {}


def test_memory_beyond_the_first_reading():
    series = [
        Series("server", "memory_anonymous_bytes", (0.0, 1.0, 2.0), (10 * MIB, 50 * MIB, 20 * MIB)),
        Series("server", "memory_shared_bytes", (0.0, 1.0, 2.0), (1 * MIB, 1 * MIB, 41 * MIB)),
        Series("server", "memory_files_bytes", (0.0, 1.0, 2.0), (0.0, 900 * MIB, 0.0)),
        Series("client", "memory_anonymous_bytes", (0.0,), (5 * MIB,)),
        Series("host a", "memory_anonymous_bytes", (0.0, 1.0), (0.0, 9 * MIB)),
    ]
    assert costs([], series=series) == {"memory_server_beyond_baseline": (50.0, "MiB")}


@settings(derandomize=True, deadline=None)
@given(st.just(0.0) | st.floats(1e-100, 1e100), st.floats(-1e300, 1e300), st.floats(0, 1e9))
def test_every_cost_is_a_finite_number(rate: float, cpu_s: float, measured_s: float):
    for value, _ in costs([(MBIT, rate)], {"client": {"cpu_s": cpu_s}}, measured_s).values():
        assert math.isfinite(value)
        assert value >= 0


def test_work_that_the_workload_counts_itself():
    found = derived(USED, (), Work(8.0, "1000_objects"))
    assert [(each.metric.name, each.value) for each in found] == [
        ("cpu_client_per_1000_objects", 0.5), ("cpu_server_per_1000_objects", 0.25)]  # fmt: skip


def _of_the_host(name: str, values: tuple[float, ...]) -> Series:
    return Series("host b", name, tuple(float(second) for second in range(1, len(values) + 1)), values)


def test_what_a_whole_host_used_while_the_measured_process_ran():
    series = [
        _of_the_host("cpu_user_share", (0.0, 1.0, 2.0)), _of_the_host("cpu_idle_share", (2.0, 1.0, 0.0)),
        _of_the_host("memory_committed_bytes", (5 * MIB, 9 * MIB, 7 * MIB)),
        Series("host a", "cpu_idle_share", (1.0,), (2.0,)),
    ]  # fmt: skip
    assert {each.metric.name: each.value for each in usage(series, "host b")} == {
        "cpu_usage": 50.0, "memory_usage": 4.0}  # fmt: skip
    (cpu, _) = usage(series, "host b", (1.5, 3.0))
    assert (cpu.value, cpu.metric.unit) == (pytest.approx(100 * (0.5 * 0.5 + 1.0) / 1.5), "%")
    assert usage(series, "host c") == usage([], "host b") == ()
