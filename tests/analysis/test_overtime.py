import math
from collections import OrderedDict

import pytest
from hypothesis import given
from hypothesis import strategies as st

from report import made_up_runs, swept_runs
from report.made_up_runs import TCP, Workload
from report.swept_runs import Sweep, make_sweep
from weighbridge.analysis.analyse import analyse
from weighbridge.analysis.levels import groups_of
from weighbridge.analysis.metered import (
    CPU,
    IN,
    MEMORY,
    OUT,
    READ,
    SHORTEST_S,
    WRITTEN,
    QuantityId,
    about_s,
    mean,
    most,
    quantities,
    stretches,
)
from weighbridge.analysis.overtime import KEPT_GAP_S, MOST_QUERIES, BlockChoice, pictures
from weighbridge.analysis.use_by_level import by_level
from weighbridge.model.trial import PROMETHEUS, Series


@pytest.fixture
def swept(tmp_path):
    """Make a run over a rising load; every store is closed at the end."""
    opened = []

    def make(**recipe):
        opened.append(make_sweep(tmp_path / f"run{len(opened)}", Sweep(**recipe)))
        return opened[-1]

    yield make
    for store in opened:
        store.close()


# -- readings --------------------------------------------------------------------------------------


def _series(place, name, *values, at=(1.0, 2.0, 3.0)):
    return Series(place, name, tuple(at[: len(values)]), values)


def test_what_the_meters_name_becomes_a_quantity_of_a_place():
    found = quantities([
        _series("server", "cpu_share", 0.5), _series("client", "cpu_share", 0.25), _series("solo", "cpu_share", 0.1),
        _series("server", "throttled_share", 0.9), _series("server", "pids_count", 7.0),
        _series("server", "memory_bytes", 99.0), _series("server", "memory_anonymous_bytes", 5.0),
        _series("server", "memory_shared_bytes", 2.0), _series("server", "memory_files_bytes", 50.0),
        _series("server", "eth0_receive_bytes_per_s", 3.0), _series("server", "eth0_receive_packets_per_s", 3e9),
        _series("server", "disk_read_bytes_per_s", 6.0), _series("server", "disk_written_bytes_per_s", 8.0),
    ])  # fmt: skip
    at = {key: read[1.0] for key, read in found.items()}
    assert at == {
        QuantityId("server", CPU): 0.5, QuantityId("generator", CPU): 0.25, QuantityId("program", CPU): 0.1,
        QuantityId("server", MEMORY): 7.0, QuantityId("server", IN): 3.0, QuantityId("server", READ): 6.0,
        QuantityId("server", WRITTEN): 8.0,
    }  # fmt: skip


def test_a_host_s_cpu_time_is_by_kind_and_in_all_without_what_only_waits():
    kinds = {
        "user": 0.5, "nice": 0.25, "system": 0.125, "irq": 1.0, "softirq": 2.0, "iowait": 4.0, "steal": 8.0,
        "idle": 9.0,
    }  # fmt: skip
    found = quantities(_series("host a", f"cpu_{kind}_share", value) for kind, value in kinds.items())
    at = {(key.quantity, key.kind): read[1.0] for key, read in found.items()}
    assert at == {
        (CPU, "user"): 0.75, (CPU, "system"): 0.125, (CPU, "interrupts"): 3.0, (CPU, "waiting for disks"): 4.0,
        (CPU, "steal"): 8.0, (CPU, ""): 3.875,
    }  # fmt: skip


def test_of_several_interfaces_and_disks_the_busiest_counts():
    found = quantities([
        _series("host a", "eth0_transmit_bytes_per_s", 1.0, 9.0),
        _series("host a", "br-0_transmit_bytes_per_s", 5.0, 2.0),
        _series("host a", "disk_vda_written_bytes_per_s", 7.0),
        _series("host a", "disk_loop0_written_bytes_per_s", 6.0),
        _series("host a", "disk_vda_writes_per_s", 1e9), _series("host a", "memory_used_bytes", 4.0),
        _series("host a", "memory_committed_bytes", 8.0),
    ])  # fmt: skip
    assert found == {
        QuantityId("host a", OUT): {1.0: 5.0, 2.0: 9.0}, QuantityId("host a", WRITTEN): {1.0: 7.0},
        QuantityId("host a", MEMORY): {1.0: 4.0},
    }  # fmt: skip


def test_an_environment_s_own_host_is_shown_under_its_host_s_name():
    read = [_series("host web-1-docker", "memory_used_bytes", 1.0), _series("host web-1", "memory_used_bytes", 2.0)]
    assert quantities(read, ("web", "web-1")) == {
        QuantityId("host web-1", MEMORY): {1.0: 1.0}
    }  # the first: one machine
    assert set(quantities(read)) == {QuantityId("host web-1-docker", MEMORY), QuantityId("host web-1", MEMORY)}


def test_what_prometheus_had_is_kept_apart():
    found = quantities([_series(PROMETHEUS, 'cpu_share{place="server"} 1', 0.5)])
    assert found == {QuantityId(PROMETHEUS, 'cpu_share{place="server"} 1'): {1.0: 0.5}}


def test_a_rate_is_about_the_time_before_it():
    steps = stretches({1.0: 2.0, 2.0: 4.0, 2.5: 8.0})
    assert [(each.start, each.end, each.value) for each in steps] == [
        (0.0, 1.0, 2.0),
        (1.0, 2.0, 4.0),
        (2.0, 2.5, 8.0),
    ]
    assert [(each.start, each.end) for each in stretches({0.001: 5.0, 1.0: 7.0})] == [(0.0, 1.0)]
    (joined,) = stretches({1.0: 2.0, 2.0: 4.0}, 2.0)
    assert (joined.start, joined.end, joined.value) == (0.0, 2.0, 3.0)
    late = stretches({1.0: 2.0, 1.25: 4.0}, every_s=1.0)  # the last reading is that of the trial's end
    assert [(each.start, each.end) for each in late] == [(0.0, 1.0), (1.0, 1.25)]
    assert mean({2.0: 4.0, 2.5: 1.0}, (0.0, 9.0), 1.0) == pytest.approx((4 + 0.5) / 1.5)
    assert stretches({}) == []
    assert [(each.start, each.end, each.value) for each in stretches({0.01: 3.0})] == [(0.0, 0.01, 3.0)]


@given(
    st.lists(st.tuples(st.floats(0.06, 5), st.floats(0, 1e9)), min_size=2, max_size=30),
    st.floats(0, 40),
)
def test_longer_steps_keep_the_mean_and_the_extremes(read, least_s):
    at, readings = 0.0, {}
    for gap, value in read:
        at += gap
        readings[at] = value
    fine, coarse = stretches(readings), stretches(readings, least_s)

    def area(steps):
        return sum((each.end - each.start) * each.value for each in steps)

    assert area(coarse) == pytest.approx(area(fine), rel=1e-9, abs=1e-6)
    assert [a.end for a in coarse[:-1]] == [b.start for b in coarse[1:]]
    assert all(min(readings.values()) - 1e-3 <= each.value <= max(readings.values()) * (1 + 1e-9) for each in coarse)
    assert all(each.end - each.start >= SHORTEST_S for each in coarse)


def test_means_and_peaks_are_those_of_the_measured_time():
    read = {1.0: 1.0, 2.0: 3.0, 3.0: 5.0, 4.0: 100.0}
    assert mean(read, (1.5, 3.0)) == pytest.approx((0.5 * 3 + 5) / 1.5)
    assert most(read, (1.5, 2.5)) == 5.0  # read just after its end
    assert mean(read, (9.0, 10.0)) is None and most({}, (0.0, 1.0)) is None
    assert mean(read, (0.0, math.inf)) == pytest.approx(109 / 4)


def test_what_disks_did_is_about_a_second_however_often_the_meters_read():
    read = {0.95: 100.0, 1.15: 0.0}
    assert mean(read, (0.0, 1.15), about_s(QuantityId("server", READ), 0.2)) == pytest.approx(95 / 1.15)
    assert about_s(QuantityId("server", CPU), 0.2) == 0.2 and about_s(QuantityId("server", WRITTEN), 10.0) == 10.0
    assert about_s(QuantityId(PROMETHEUS, "read"), 0.2) == 0.2


# -- medians ---------------------------------------------------------------------------------------


def test_each_trial_counts_as_one_and_the_generator_s_limit_is_told(swept):
    store = swept(blocks=7)
    (nginx, _) = by_level(store, analyse(store))
    assert [(row.level.text, row.environment) for row in nginx.rows][:5] == [
        ("50", "native"), ("50", "host"), ("50", "bridge"), ("50", "native-again"), ("100", "native")
    ]  # fmt: skip
    rows = {(row.level.text, row.environment): row for row in nginx.rows}
    assert rows["400", "native"].generator_limited and rows["400", "native"].generator == 7
    assert not rows["200", "native"].generator_limited
    assert rows["400", "bridge"].broke == 7 == rows["400", "bridge"].trials and not rows["400", "bridge"].use
    cpu = rows["200", "bridge"].use[QuantityId("server", CPU)]
    assert cpu.blocks == 7 and cpu.low <= cpu.middle <= cpu.high
    assert cpu.middle == pytest.approx(0.95 * 200 / 320 * 1.25, rel=0.1)
    assert (
        QuantityId("server", OUT) in rows["200", "bridge"].use
        and QuantityId("server", OUT) not in rows["200", "native"].use
    )


def test_levels_rise_as_numbers_and_other_factors_are_workloads_apart(run):
    levels = [("rate", "1000"), ("rate", "200")]
    cells = [
        Workload("web", TCP.metrics, (("content", content), load))
        for content in ("page", "picture") for load in levels
    ]  # fmt: skip
    cells += [Workload("net", TCP.metrics, (("size", size),)) for size in ("small", "large")]
    store = run(costs={}, workloads=[*cells, TCP], blocks=1, loads={"web": "rate", "net": "connections"})
    groups = groups_of(store)
    assert [(each.title, each.load, [level.text for level in each.levels]) for each in groups] == [
        ("web (content=page)", "rate", ["200", "1000"]), ("web (content=picture)", "rate", ["200", "1000"]),
        ("net", "", ["size=small", "size=large"]), ("tcp", "", [""]),
    ]  # fmt: skip


# -- the block that is drawn -----------------------------------------------------------------------


def test_the_block_nearest_to_the_medians_is_drawn(swept):
    store = swept(blocks=4, slow_block=2)
    drawn = pictures(store, analyse(store))
    assert [each.group.workload for each in drawn] == ["nginx", "redis"]
    for each in drawn:
        assert each.block != 2 and each.choice == BlockChoice("nearest", 4)


def test_a_block_in_which_something_is_missing_is_not_drawn(swept):
    store = swept(blocks=3, missing={(1, "host", 50), (3, "native", 200)})
    (first, _) = pictures(store, analyse(store))
    assert (first.block, first.choice) == (2, BlockChoice("most-results", 1))
    store = swept(blocks=1)
    assert pictures(store, analyse(store))[0].choice.reason == "only"


def test_every_trial_of_the_block_is_a_span_in_order_and_the_time_of_others_is_cut_out(swept):
    store = swept()
    (nginx, _) = pictures(store, analyse(store))
    assert len(nginx.spans) == 16 == len({span.trial.id for span in nginx.spans})
    edges = [edge for span in nginx.spans for edge in (span.start, span.end)]
    assert edges == sorted(edges)
    wall = [span.wall_s for span in nginx.spans]
    assert wall == sorted(wall) and wall[0] == 0
    for before, after in zip(nginx.spans, nginx.spans[1:], strict=False):
        left_out = after.wall_s - before.wall_s - 4.0
        assert after.cut == (left_out > KEPT_GAP_S)
        assert after.start - before.end == pytest.approx(min(left_out, KEPT_GAP_S), abs=0.011)
    assert any(span.cut for span in nginx.spans)
    assert {span.level for span in nginx.spans} == {"50", "100", "200", "400"}
    assert [span.trial.outcome for span in nginx.spans].count("broke") == 1


def test_the_panels_hold_what_was_read_and_nothing_that_was_never_used(swept):
    store = swept(disks=True)
    (nginx, _) = pictures(store, analyse(store))
    assert [f"{panel.place}: {panel.quantity}" for panel in nginx.panels] == [
        "server: CPU", "generator: CPU", "host local: CPU", "server: memory", "generator: memory",
        "host local: memory", "host local: disk read", "server: disk written", "host local: disk written",
        "server: network in", "host local: network in", "server: network out", "host local: network out",
    ]  # fmt: skip
    assert nginx.step_s == 0
    server = nginx.panels[0]
    assert set(server.curves) == {""} and set(server.curves[""]) == set(range(16))
    for number, (at, values) in server.curves[""].items():
        span = nginx.spans[number]
        assert len(at) == len(values) == 5 and values[-1] == values[-2]
        assert span.start <= at[0] and at[-1] <= span.end and list(at) == sorted(at)
    assert list(nginx.panels[2].curves) == ["user", "system", "interrupts", "waiting for disks", "steal"]
    assert [(panel.quantity, panel.unit) for panel in nginx.queries] == [
        ('accepted{instance="127.0.0.1:9113"}', "1/s"), ("node_memory", "B")
    ]  # fmt: skip


def test_long_blocks_are_drawn_in_longer_steps(swept):
    levels = (10, 50, 100, 200, 300, 500, 1000, 2000)
    store = swept(levels=levels, blocks=1, trial_s=60.0, hz=2.0, workloads=(("mysql", "threads"),))
    (picture,) = pictures(store, analyse(store))
    assert picture.step_s > 1
    (cpu, *_) = picture.panels
    at, values = cpu.curves[""][0]
    read = next(each for _, each in store.series(picture.spans[0].trial.id) if each.name == "cpu_share")
    drawn = sum((b - a) * value for a, b, value in zip(at, at[1:], values, strict=False)) / (at[-1] - at[0])
    assert drawn == pytest.approx(sum(read.values) / len(read.values), rel=0.02)


def test_many_series_of_prometheus_are_not_all_drawn(swept, monkeypatch):
    many = tuple(_series(PROMETHEUS, f"query_{n:02d} 1/s", 1.0) for n in range(MOST_QUERIES + 3))
    monkeypatch.setattr(swept_runs, "_prometheus", lambda *_: many)
    monkeypatch.setattr(made_up_runs, "_MADE", OrderedDict())
    store = swept(blocks=1)
    (first, _) = pictures(store, analyse(store))
    assert len(first.queries) == MOST_QUERIES and first.further == 3
