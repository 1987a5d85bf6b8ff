"""What all who worked cost: the figures of whole machines, and where they are absent."""

from collections.abc import Mapping
from types import SimpleNamespace

import pytest

from weighbridge.analysis.resources import by_difference, is_resource_use
from weighbridge.meters.machines import RESOLUTION_S, Idle, Tcp, Use
from weighbridge.model.trial import Work
from weighbridge.runner import machine_use
from weighbridge.runner.machine_use import STOLEN, IdleLevels, MachineUse, all_who_worked, networks_of

GBIT = Work(10.0, "gbit")
LEVEL = {"host": Idle(0.1, 50.0)}


def made(*uses: Use, tcp: Tcp | None = None, tool_s: float = 0.0) -> MachineUse:
    names = ["host", "host b"][: len(uses)]
    found = MachineUse(dict.fromkeys(names, lambda path: b""), {})
    found.uses, found.tcp, found.tool_s = dict(zip(names, uses, strict=True)), tcp, tool_s
    return found


def figures(use: MachineUse | None, idle=LEVEL, not_work_s=0.0, work: Work | None = GBIT) -> Mapping[str, float]:
    found = all_who_worked(use, idle, not_work_s, work)
    assert all(each.metric.better == "lower" and is_resource_use(each.metric.name) for each in found)
    return {each.metric.name: each.value for each in found}


def test_what_one_machine_did_beyond_its_idle_level():
    use = made(Use(2.0, 3.0, 0.6, 1100.0, 3.0), tcp=Tcp(1000.0, 5.0), tool_s=0.05)
    assert figures(use, not_work_s=0.25) == pytest.approx({
        "cpu_all_per_gbit": (3.0 - 2 * 0.1 - 0.05 - 0.25) / 10, "context_switches_per_gbit": 100.0,
        "tcp_retransmits_per_gbit": 0.5, "softirq_share": 20.0,
    })  # fmt: skip
    units = {each.metric.name: each.metric.unit for each in all_who_worked(use, LEVEL, 0.0, GBIT)}
    assert list(units.values()) == ["s/Gbit", "1/Gbit", "1/Gbit", "%"]


@pytest.mark.parametrize("unit", ["1000_transactions", "1000_objects"])
def test_other_units_of_work(unit):
    found = all_who_worked(made(Use(2.0, 3.0, 0.6, 1100.0, 3.0)), LEVEL, 0.0, Work(4.0, unit))
    assert {each.metric.name: each.metric.unit for each in found} == {
        f"cpu_all_per_{unit}": "s/1000", f"context_switches_per_{unit}": "1/1000", "softirq_share": "%"}  # fmt: skip


def test_the_sum_over_machines_without_the_tool_of_a_third():
    both = made(Use(2.0, 1.0, 0.1, 500.0), Use(2.0, 2.0, 0.2, 900.0), tool_s=0.1)
    level = LEVEL | {"host b": Idle(0.0, 0.0)}
    assert figures(both, level)["cpu_all_per_gbit"] == pytest.approx((0.8 - 0.1 + 2.0) / 10)
    elsewhere = MachineUse({"host b": lambda path: b""}, {}, {"host b": Use(2.0, 2.0, 0.2, 900.0)}, None, 0.1)
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
    del use.uses["host b"]
    assert figures(use) == {}, "the second machine was not read"


def test_retransmits_are_compared_by_difference_as_they_are_rare():
    assert by_difference("tcp_retransmits_per_gbit") and not by_difference("cpu_all_per_gbit")


# -- the idle level --------------------------------------------------------------------------------


def test_the_idle_level_is_the_median_of_the_last_looks(monkeypatch: pytest.MonkeyPatch):
    clock = SimpleNamespace(now=0.0, unused=0.0, share=0.0)

    def sleep(seconds: float) -> None:
        clock.now += seconds
        clock.unused += seconds * 100 * (1 - clock.share)

    kept: list[Mapping[str, str]] = []
    monkeypatch.setattr(machine_use.time, "sleep", sleep)
    monkeypatch.setattr(machine_use.time, "monotonic", lambda: clock.now)
    looks = IdleLevels({"host": lambda path: b"cpu 0 0 0 %d 0 0 0 0\ncpu0 0\nctxt 7\n" % clock.unused}, kept.append)
    assert looks.due and looks.levels == {}
    for share in (0.5, 0.02, 0.04, 0.04, 0.06, 0.06):
        clock.share = share
        looks.look()
    assert looks.levels["host"].busy_cpus == pytest.approx(0.04)
    assert kept[0] == {"host: CPUs busy": "0.5000", "host: context switches per second": "0"} and len(kept) == 6
    assert clock.now == machine_use.FIRST_S + 5 * machine_use.AGAIN_S and not looks.due
    clock.now += machine_use.BETWEEN_S
    assert looks.due


# -- network namespaces ----------------------------------------------------------------------------


def _site(scope: Mapping[str, str], name: str = "host", pid: str = "self") -> SimpleNamespace:
    network = name, f"/proc/{pid}/net/dev"
    return SimpleNamespace(host=SimpleNamespace(network=network, read=bytes), scope=lambda: scope)


def test_each_network_namespace_counts_once():
    shared = {"server": _site({}), "client": _site({"cpu.stat": "/x"})}
    assert set(networks_of(shared)) == {("host", "/proc/self/net/dev")}
    own = {"server": _site({"net": "/proc/77/net/dev"}), "client": _site({})}
    assert {path for _, path in networks_of(own).values()} == {"/proc/self/net/snmp", "/proc/77/net/snmp"}
    apart = {"server": _site({}, "a", "1"), "client": _site({"net": "/proc/7/net/dev"}, "b", "1")}
    assert set(networks_of(apart)) == {
        ("a", "/proc/1/net/dev"), ("b", "/proc/1/net/dev"), ("b", "/proc/7/net/dev")}  # fmt: skip


def test_where_a_hypervisor_took_part_the_cpu_time_of_all_is_not_known():
    assert "cpu_all_per_gbit" in figures(made(Use(2.0, 3.0, 0.6, 1100.0, 3.0, STOLEN)))
    assert "cpu_all_per_gbit" not in figures(made(Use(2.0, 3.0, 0.6, 1100.0, 3.0, 2 * STOLEN)))


def test_all_who_worked_are_no_less_than_the_sites():
    use, work = made(Use(2.0, 1.0, 0.1, 1100.0, 1.0)), Work(1.0, "gbit")
    for sites_s, known in ((0.5, True), (0.84, True), (1.5, False)):
        found = {each.metric.name for each in all_who_worked(use, LEVEL, 0.0, work, sites_s)}
        assert ("cpu_all_per_gbit" in found) is known
