"""boot, burst and density: what is asked of the runner, and what is read from its record of opened sites."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sentences import raises_sentence
from weighbridge.model.measurement import ProgramFailed, Unparseable
from weighbridge.model.openings import Opened, Opening, Openings, are_slow, start_slowdown
from weighbridge.workloads import boot, burst, density

from .captured import data, parse

PHASES = {metric.name for metric in boot.OF_PHASES.values()}


def record(*sites: dict[str, Any], **more: Any) -> bytes:
    usual = {"open_s": 0.01, "ready_s": 0.02, "own_cpu_s": 0.004, "close_s": 0.005}
    return json.dumps({"openings": [usual | site for site in sites], **more}).encode()


def values(kind: str, output: bytes, **options: Any) -> dict[str, float]:
    return {each.metric.name: each.value for each in parse(kind, options, output)}


def test_boot_opens_one_after_another_and_density_all_together():
    asked = boot.BootOptions.model_validate({"sites": 3, "duration": "500ms"})
    assert boot.PLUGIN.openings(asked) == Openings(3, lasting_s=0.5)
    asked = boot.BootOptions.model_validate({"cold": True, "ports": 8, "running": 4, "image_files": "2MiB"})
    wanted = Openings(lasting_s=1.0, cold=True, ports=8, running=4, image_files=2**21)
    assert boot.PLUGIN.openings(asked) == wanted
    bursts = burst.BurstOptions.model_validate({"at_once": 16})
    assert burst.PLUGIN.openings(bursts) == Openings(lasting_s=1.0, at_once=16)
    options = density.DensityOptions.model_validate({"sites": 5, "settle": "2s", "slow": 4})
    assert density.PLUGIN.openings(options) == Openings(5, together=True, settle_s=2.0, slow=4.0)


@pytest.mark.parametrize(
    ("asked", "start_s", "number"),
    [
        (Openings(3), 0.0, 3), (Openings(3), 9.0, 3), (Openings(lasting_s=1), 0.016, 62),
        (Openings(lasting_s=1), 0.6, 2),
        (Openings(lasting_s=1), 0.9, 1), (Openings(lasting_s=1), 9.0, 1), (Openings(lasting_s=1), 0.0, 100),
        (Openings(5, lasting_s=1), 0.5, 5),
    ],
)  # fmt: skip
def test_as_many_sites_as_fit_in_the_time(asked: Openings, start_s: float, number: int):
    assert asked.number(start_s) == number


def test_boot_gives_the_geometric_means_of_a_trial():
    sites = [{"ready_s": ready, "close_s": close} for ready, close in ((0.4, 1), (0.1, 9), (0.2, 3))]
    for fewest in (1, 3):
        means = values("boot", record(*sites), sites=fewest)
        both = (1.4 * 9.1 * 3.2) ** (1 / 3)
        assert means == pytest.approx({"time_to_ready": 0.2, "time_to_close": 3, "start_and_stop": both})


@pytest.mark.parametrize(
    ("sites", "percents"), [(1, ()), (2, (50,)), (19, (50,)), (20, (50, 95)), (99, (50, 95)), (100, (50, 95, 99))]
)
def test_boot_has_the_percentiles_of_which_a_trial_has_enough_starts(sites: int, percents: tuple[int, ...]):
    sorted_starts = [{"ready_s": number, "close_s": 0.5} for number in range(1, sites + 1)]
    found = values("boot", record(*sorted_starts), sites=sites, duration="0s")
    names = [f"{metric}_p{each}" for metric in ("time_to_ready", "start_and_stop") for each in percents]
    assert [name for name in found if "_p" in name] == names
    options = boot.BootOptions.model_validate({"sites": sites, "duration": "0s"})
    assert {*found} == {metric.name for metric in boot.PLUGIN.metrics(options)} - PHASES
    for percent in percents:  # of evenly spread starts, k of n is the quantile k / (n + 1)
        assert found[f"time_to_ready_p{percent}"] == pytest.approx((sites + 1) * percent / 100, abs=0.5)
        assert found[f"start_and_stop_p{percent}"] == pytest.approx(found[f"time_to_ready_p{percent}"] + 0.5)


def test_boot_has_no_percentiles_of_a_number_that_differs_between_environments():
    found = values("boot", record(*[{}] * 100), sites=100, duration="1s")
    assert not any("_p" in name for name in found)
    assert not any("_p" in each.name for each in boot.PLUGIN.metrics(boot.BootOptions(sites=100)))


def test_boot_gives_the_phases_that_every_site_of_a_trial_has():
    phases = [{"phases": {"create": 0.1, "start": start}} for start in (0.2, 0.8)]
    found = values("boot", record(*phases), sites=2)
    assert {name: value for name, value in found.items() if name in PHASES} == pytest.approx(
        {"time_to_create": 0.1, "time_to_start": 0.4}
    )
    assert not PHASES & {*values("boot", record(*phases, {}), sites=3)}


def test_burst_gives_the_last_and_the_median_answer_of_each_burst():
    answers = [{"ready_s": each} for each in (1, 4, 2, 3, 8, 2, 4, 6)]
    found = values("burst", record(*answers), at_once=4)
    assert found == pytest.approx({"time_to_last": (4 * 8) ** 0.5, "time_to_median": (2.5 * 5) ** 0.5})


def test_a_part_of_a_burst_is_no_burst():
    with raises_sentence(Unparseable):
        values("burst", record({}, {}, {}), at_once=2)


@pytest.mark.parametrize("sites", [({},), ({}, {"close_s": None}), ({}, {"close_s": 0})])
def test_boot_takes_no_fewer_sites(sites: tuple[dict[str, Any], ...]):
    with raises_sentence(Unparseable):
        values("boot", record(*sites), sites=2)


def grown(*available: int, **more: Any) -> bytes:
    before, *after = available
    sites = [{"available_bytes": level, "group_bytes": 2**20} for level in after]
    return record(*sites, available_bytes=before, total_bytes=2**34, **more)


def test_memory_per_site_is_the_slope_of_the_line_from_no_site_on():
    mib = 2**20
    found = values("density", grown(1000 * mib, 990 * mib, 980 * mib, 970 * mib), sites=3)
    assert found["memory_per_site"] == pytest.approx(10)
    assert (found["memory_in_group"], found["start_slowdown"]) == (1, 1)


@given(st.floats(-500, 500), st.integers(2, 20))
def test_the_slope_of_any_line_is_found(mib_each: float, sites: int):
    levels = [2**35 - round(number * mib_each * 2**20) for number in range(sites + 1)]
    opened = Opened(available_bytes=levels[0], openings=tuple(_opening(level) for level in levels[1:]))
    assert density.memory_per_site(opened) / 2**20 == pytest.approx(mib_each, abs=1e-5)


def _opening(available: int) -> Opening:
    return Opening(open_s=0.1, ready_s=0.1, own_cpu_s=0.01, available_bytes=available)


def test_a_number_of_sites_that_the_option_capped_is_no_figure():
    assert "sites" not in values("density", grown(1000, 900, 800), sites=2)
    assert values("density", grown(1000, 900, 800, stopped="memory"), sites=3)["sites"] == 2


def starting(*ready: float) -> bytes:
    return record(*({"ready_s": each, "available_bytes": 2**30} for each in ready), available_bytes=2**30)


@pytest.mark.parametrize(
    ("ready", "slowdown"),
    [
        ((1, 4), 4),
        ((2, 9, 4), 2),
        ((1, 3, 5, 7), 3),
        ((1, 2, 9, 90, 4, 8, 5), 2.5),
        ((2, 50, 2, 1, 1, 3, 3, 90), 1.5),
    ],
)
def test_the_slowdown_is_that_of_medians(ready: tuple[float, ...], slowdown: float):
    assert values("density", starting(*ready), sites=len(ready))["start_slowdown"] == slowdown


@pytest.mark.parametrize(
    ("ready", "slow"),
    [
        ((), False),
        ((1,), False),
        ((1, 9, 9), False),
        ((1, 1, 9, 9), False),
        ((1, 1, 9, 9, 9), True),
        ((1, 1, 9, 9, 1, 9, 9), False),
        ((1, 1, 1, 1, 9, 9, 9), True),
        ((1, 9, 1, 1, 9, 9, 9), True),
        ((9, 9, 1, 1, 9, 9, 9), False),
    ],
)
def test_three_slow_starts_in_a_row_stop_a_trial_and_a_hiccup_does_not(ready: tuple[float, ...], slow: bool):
    assert are_slow(ready, 4) is slow


@given(st.lists(st.floats(1e-3, 1e3), min_size=1), st.floats(1e-2, 1e2))
def test_a_slower_clock_changes_no_slowdown(ready: list[float], factor: float):
    assert start_slowdown([each * factor for each in ready]) == pytest.approx(start_slowdown(ready))


def test_fewer_sites_are_a_result_where_something_stopped_them():
    assert values("density", grown(900, 800, 700, stopped="memory"), sites=8)["sites"] == 2
    with raises_sentence(Unparseable):
        values("density", grown(900, 800, 700), sites=8)


def test_too_little_memory_from_the_start_is_a_failure():
    with raises_sentence(ProgramFailed):
        values("density", grown(900, stopped="memory"))
    with raises_sentence(ProgramFailed):
        values("density", grown(900, 800, stopped="memory"))


def test_memory_that_could_not_be_read_is_no_zero():
    with raises_sentence(Unparseable):
        values("density", record({}, {}), sites=2)
    without_groups = [{"available_bytes": level} for level in (800, 700)]
    assert "memory_in_group" not in values("density", record(*without_groups, available_bytes=900), sites=2)


def test_what_could_not_be_opened_is_told():
    with raises_sentence(ProgramFailed):
        parse("boot", {}, data("boot-docker.json"), b"no luck", returncode=1)


@pytest.mark.parametrize(
    "damage", [{"ready_s": 0}, {"ready_s": -1}, {"open_s": None}, {"close_s": 1e9}, {"other": 1}, {"ready_s": "1"}]
)
def test_a_record_that_cannot_be_is_none(damage: dict[str, Any]):
    with raises_sentence(Unparseable):
        values("boot", record(damage))
