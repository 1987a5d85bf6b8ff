"""A program in several sites at a time: each site's own result is kept, and rates and counts are added up."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from weighbridge.model.command import Command
from weighbridge.model.measurement import Measurement, Metric, ProgramFailed
from weighbridge.model.trial import TrialResult, Work
from weighbridge.model.workload import Endpoint
from weighbridge.runner.several_sites import SLOWEST, add_up, endpoints, per_site, place, start_in_all
from weighbridge.runner.stage import Stage

from .world import Act, FakeSite, World

WRITES, LATENCY = Metric("writes", "1/s", "higher"), Metric("latency_p99", "ms", "lower")
AT = Endpoint("127.0.0.1", "127.0.0.1", 0)


def results(rates: Sequence[float]) -> list[TrialResult]:
    return [
        TrialResult((Measurement(WRITES, rate), Measurement(LATENCY, 2.0)), Work(rate, "1000_transactions"))
        for rate in rates
    ]


@given(st.lists(st.floats(0.001, 1e6), min_size=1, max_size=20))
def test_the_sum_is_that_of_the_sites(rates: list[float]):
    found = add_up(results(rates))
    values = {each.metric: each.value for each in found.measurements}
    kept = [value for _, name, value in per_site(results(rates)) if name == "writes"]
    assert kept == rates
    assert values[WRITES] == pytest.approx(sum(kept))
    assert found.work is not None and found.work.amount == pytest.approx(sum(rates))
    assert values[SLOWEST] == pytest.approx(100 * min(rates) / (sum(rates) / len(rates)))


@given(st.lists(st.tuples(st.floats(1, 1e6), st.floats(0.1, 100)), min_size=1, max_size=20))
def test_of_fixed_amounts_the_sum_is_all_work_over_the_longest_time(sites: list[tuple[float, float]]):
    """Each site's rate is its amount over its own time."""
    rates, seconds = [amount / worked for amount, worked in sites], [worked for _, worked in sites]
    values = {each.metric: each.value for each in add_up(results(rates), seconds).measurements}
    assert values[WRITES] == pytest.approx(sum(amount for amount, _ in sites) / max(seconds))


def test_latencies_of_several_sites_have_no_sum():
    assert LATENCY not in {each.metric for each in add_up(results([1.0, 2.0])).measurements}
    assert ("site 2", "latency_p99", 2.0) in per_site(results([1.0, 2.0]))


def test_no_work_in_any_site_is_zero_and_no_share():
    assert [each.metric for each in add_up(results([0.0, 0.0])).measurements] == [WRITES]


def test_each_site_has_a_folder_of_its_own(world: World):
    sites = [FakeSite(world, "solo", "one", "solo") for _ in range(3)]
    assert [each.data for each in endpoints(AT, sites, keeps=True)] == ["/srv/site-1", "/srv/site-2", "/srv/site-3"]
    assert [argv for _, argv in world.ran] == [("mkdir", "-p", f"/srv/site-{number}") for number in (1, 2, 3)]
    assert endpoints(AT, sites[:1], keeps=True) == [AT]
    assert endpoints(AT, sites, keeps=False) == [AT] * 3


def test_a_folder_that_cannot_be_made_fails_the_trial(world: World):
    world.fails = ("mkdir", "-p", "/srv/site-1")
    with pytest.raises(ProgramFailed, match="/srv/site-1 cannot be made: no space left"):
        endpoints(AT, [FakeSite(world, "solo", "one", "solo") for _ in range(2)], keeps=True)


def test_all_are_waited_for_and_ended(world: World):
    world.act = lambda site, command: Act(stdout=command.argv[0].encode(), lasts=float(command.argv[1]))
    sites = [FakeSite(world, "solo", "one", "solo") for _ in range(2)]
    running = start_in_all(sites, [Command(("a", "0")), Command(("b", "0.05"))])
    assert running.poll() is None
    assert any(running.wait(1.0) for _ in range(100))
    assert running.poll() == 0
    assert running.stop().stdout == b"b", "the one that was longest at work"
    assert [each.stdout for each in running.left] == [b"a", b"b"]


def test_what_has_started_is_ended_where_another_cannot_be(world: World):
    world.act = lambda site, command: Act(hangs=True, raises=KeyboardInterrupt() if command.argv[0] == "b" else None)
    sites = [FakeSite(world, "solo", "one", "solo") for _ in range(2)]
    with pytest.raises(KeyboardInterrupt):
        start_in_all(sites, [Command(("a",)), Command(("b",))])
    assert [each.stopped is not None for each in world.programs[:1]] == [True]


def test_the_counters_of_all_sites_are_added_up(world: World):
    class Counted(FakeSite):
        def meters(self):
            return {"cpu_s": 2.0, "throttled_s": 0.5}

    sites = [Counted(world, "solo", "one", "solo") for _ in range(3)]
    stage = Stage({"solo": sites[0]}, {"solo": AT}, {}, further=tuple(sites[1:]))
    assert stage.counters() == {"solo": {"cpu_s": 6.0, "throttled_s": 0.5}}
    assert stage.sites_of("solo") == tuple(sites)


def test_the_programs_of_a_trial_have_different_names():
    assert [place("solo", number) for number in (1, 2)] == ["solo", "solo 2"]
