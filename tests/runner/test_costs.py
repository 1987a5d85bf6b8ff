"""CPU time and memory per unit of work: pure, and absent wherever something is not known."""

import math
from collections.abc import Mapping

import pytest

from weighbridge.meters.machines import RESOLUTION_S, Idle, Use
from weighbridge.model.measurement import Measurement, Metric, is_resource_use
from weighbridge.model.trial import Series, Work
from weighbridge.runner.costs import STOLEN, all_who_worked, derived, events_cost, throttling, usage, work_of
from weighbridge.runner.window import MachineUse

MBIT = Metric("throughput", "Mbit/s", "higher")
JITTER = Metric("jitter", "ms", "lower")
USED = {"client": {"cpu_s": 4.0}, "server": {"cpu_s": 2.0}}
MIB = 2.0**20


def costs(measurements, used=USED, measured_s=10.0, series=()) -> dict[str, tuple[float, str]]:
    found = derived(used, series, work_of([Measurement(metric, value) for metric, value in measurements], measured_s))
    assert all(each.metric.better == "lower" and is_resource_use(each.metric.name) for each in found)
    return {each.metric.name: (each.value, each.metric.unit) for each in found}


def test_the_site_that_its_limit_held_back_longest_tells_how_long():
    used = {"client": {"throttled_s": 0.1, "throttled_periods": 2.0}, "server": {"throttled_s": 1.5}}
    told = {each.metric.name: (each.value, each.metric.unit) for each in throttling(used, 2.0)}
    assert told == {"throttled_time": (75.0, "%")} and all(is_resource_use(name) for name in told)
    told = {each.metric.name: (each.value, each.metric.unit) for each in throttling({"client": used["client"]}, 2.0)}
    assert told == {"throttled_time": (5.0, "%"), "throttled_periods": (2.0, "count")}
    assert throttling({"client": {"cpu_s": 1.0}}, 2.0) == throttling({}, 2.0) == ()


def test_cpu_seconds_per_gigabit():
    assert costs([(MBIT, 1000.0)]) == {
        "cpu_client_per_gbit": (0.4, "s/Gbit"), "cpu_server_per_gbit": (0.2, "s/Gbit")}  # fmt: skip
    assert costs([(Metric("sent", "MiB/s", "higher"), 1e9 / 8 / MIB)])["cpu_client_per_gbit"][0] == pytest.approx(0.4)


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


# -- all who worked --------------------------------------------------------------------------------

GBIT = Work(10.0, "gbit")
LEVEL = {"host": Idle(0.1, 50.0)}


def made(*uses: Use | None, tcp: tuple[float, float] | None = None, tool_s: float = 0.0) -> MachineUse:
    segments = dict(zip(("sent_segments", "resent_segments"), tcp or (), strict=False))
    return MachineUse(dict(zip(("host", "host b"), uses, strict=False)), tool_s, segments)


def figures(use: MachineUse | None, idle=LEVEL, not_work_s=0.0, work: Work | None = GBIT) -> Mapping[str, float]:
    found = all_who_worked(use, idle, not_work_s, work)
    assert all(each.metric.better == "lower" and is_resource_use(each.metric.name) for each in found)
    return {each.metric.name: each.value for each in found}


def test_what_one_machine_did_beyond_its_idle_level():
    use = made(Use(2.0, 3.0, 0.6, 1100.0, 3.0), tcp=(1000.0, 5.0), tool_s=0.05)
    assert figures(use, not_work_s=0.25) == pytest.approx({
        "cpu_all_per_gbit": (3.0 - 2 * 0.1 - 0.05 - 0.25) / 10, "context_switches_per_gbit": 100.0,
        "tcp_retransmits_per_gbit": 0.5, "tcp_segments_per_gbit": 100.0, "softirq_share": 20.0,
    })  # fmt: skip
    units = {each.metric.name: each.metric.unit for each in all_who_worked(use, LEVEL, 0.0, GBIT)}
    assert list(units.values()) == ["s/Gbit", "1/Gbit", "1/Gbit", "1/Gbit", "%"]


def test_the_sum_over_machines_without_the_tool_of_a_third():
    both = made(Use(2.0, 1.0, 0.1, 500.0), Use(2.0, 2.0, 0.2, 900.0), tool_s=0.1)
    level = LEVEL | {"host b": Idle(0.0, 0.0)}
    assert figures(both, level)["cpu_all_per_gbit"] == pytest.approx((0.8 - 0.1 + 2.0) / 10)
    elsewhere = MachineUse({"host b": Use(2.0, 2.0, 0.2, 900.0)}, 0.1)
    assert figures(elsewhere, level)["cpu_all_per_gbit"] == pytest.approx(0.2), "the tool ran on this machine"


@pytest.mark.parametrize("busy_s", [0.0, 0.1, 0.2, 0.2 + RESOLUTION_S, -1.0])
def test_below_the_resolution_there_is_no_figure(busy_s: float):
    assert "cpu_all_per_gbit" not in figures(made(Use(2.0, busy_s, 0.0, 50.0)))
    assert "context_switches_per_gbit" not in figures(made(Use(2.0, busy_s, 0.0, 50.0)))


@pytest.mark.parametrize(("ticks_s", "told"), [(0.1, False), (0.5, False), (20 * RESOLUTION_S, True), (3.0, True)])
def test_a_share_of_few_ticks_is_absent(ticks_s: float, told: bool):
    use = made(Use(2.0, ticks_s, 0.1 * ticks_s, 50.0, ticks_s))
    assert ("softirq_share" in figures(use)) is told


def test_what_is_not_known_is_absent():
    assert figures(None) == {}
    use = made(Use(2.0, 3.0, 0.6, 1100.0, 3.0), Use(2.0, 3.0, 0.6, 1100.0, 3.0))
    assert set(figures(use)) == {"softirq_share"}, "the second machine has no idle level"
    assert set(figures(use, work=None)) == {"softirq_share"}
    assert set(figures(use, work=Work(0.0, "gbit"))) == {"softirq_share"}
    unread = made(Use(2.0, 3.0, 0.6, 1100.0, 3.0), None)
    assert figures(unread) == {}, "the second machine was not read"


def test_where_a_hypervisor_took_part_the_cpu_time_of_all_is_not_known():
    assert "cpu_all_per_gbit" in figures(made(Use(2.0, 3.0, 0.6, 1100.0, 3.0, STOLEN)))
    assert "cpu_all_per_gbit" not in figures(made(Use(2.0, 3.0, 0.6, 1100.0, 3.0, 2 * STOLEN)))


def test_all_who_worked_are_no_less_than_the_sites():
    use, work = made(Use(2.0, 1.0, 0.1, 1100.0, 1.0)), Work(1.0, "gbit")
    for sites_s, known in ((0.5, True), (0.84, True), (1.5, False)):
        found = {each.metric.name for each in all_who_worked(use, LEVEL, 0.0, work, sites_s)}
        assert ("cpu_all_per_gbit" in found) is known


# -- what the kernel counted ------------------------------------------------------------------------

EVENTS = {
    "softnet_drops": 0.0, "softnet_squeezes": 20.0, "conntrack_drops": 1.0,
    "received_octets": 6e6, "received_packets": 1e3, "disk_busy_s": 0.5, "disk_flushes": 40.0, "vm_exits": 8.0,
}  # fmt: skip


def counted(events: Mapping[str, float], work: Work | None) -> dict[str, tuple[float, str]]:
    found = [*events_cost(events, work, 2.0)]
    assert all(is_resource_use(each.metric.name) for each in found)
    assert [each.metric.name for each in found if each.metric.better == "higher"] in ([], ["bytes_per_packet"])
    return {each.metric.name: (each.value, each.metric.unit) for each in found}


def test_what_the_kernel_counted_for_a_unit_of_work():
    assert counted(EVENTS, GBIT) == {
        "bytes_per_packet": (6000.0, "B"), "disk_time": (25.0, "%"),
        "softnet_drops_per_gbit": (0.0, "1/Gbit"), "softnet_squeezes_per_gbit": (2.0, "1/Gbit"),
        "conntrack_drops_per_gbit": (0.1, "1/Gbit"), "disk_flushes_per_gbit": (4.0, "1/Gbit"),
        "vm_exits_per_gbit": (0.8, "1/Gbit"),
    }  # fmt: skip
    assert counted(EVENTS, Work(4.0, "1000_transactions"))["disk_flushes_per_1000_transactions"] == (10.0, "1/1000")


def test_of_unknown_work_flushes_and_exits_count_for_the_whole_trial():
    for work in (None, Work(0.0, "gbit"), Work(math.inf, "gbit")):
        assert counted(EVENTS, work).items() >= {"disk_flushes": (40.0, "count"), "vm_exits": (8.0, "count")}.items()
        assert {name for name in counted(EVENTS, work) if "_per_" in name} == {"bytes_per_packet"}


def test_what_was_not_counted_is_absent():
    assert counted({}, GBIT) == counted({"received_octets": 0.0, "received_packets": 0.0}, GBIT) == {}
    assert counted({"vm_exits": -5.0, "disk_flushes": -1.0}, None) == {}, "a guest, or a disk, has gone"
