"""Trials that open sites: like the measured one, timed, closed in reverse whatever happens, and nobody else's."""

import math
import threading
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from statistics import NormalDist, geometric_mean
from types import SimpleNamespace

import pytest

from sentences import raises_sentence
from weighbridge import registry
from weighbridge.errors import EnvironmentLost, TrialsFailed, Unavailable
from weighbridge.model.command import Command, Completed
from weighbridge.model.measurement import Outcome
from weighbridge.model.openings import Opened, OpeningPhases, Openings, StartTimes, read_opened
from weighbridge.model.site import SiteRequest
from weighbridge.model.workload import Workload
from weighbridge.runner import openings
from weighbridge.runner.openings import FLOOR_BYTES, open_sites
from weighbridge.workloads import boot

from .world import FakeSite, Layer, World, finished, go, study

TRUE = Command(("true",))
TOTAL = 16 * 2**30
StartTimesDict = dict[tuple[Openings, tuple[str, ...]], float]


def fresh(world: World, before: Callable[[int], None] = lambda _: None) -> Callable[[], Iterator[FakeSite]]:
    """Opens sites; ``before`` is called with the number of each."""

    @contextmanager
    def open_site() -> Iterator[FakeSite]:
        number = len(world.sites)
        before(number)
        site = FakeSite(world, f"{number}", "one", "server")
        world.sites.append(site)
        try:
            yield site
        finally:
            site.closed = True
            world.ran.append((site.name, ("closed",)))

    return open_site  # type: ignore[return-value]


def opened(completed: Completed) -> Opened:
    assert completed.returncode == 0, completed.stderr
    return read_opened(completed)


def reader(*levels: int, total: int = TOTAL) -> Callable[[], dict[str, int]]:
    """The machine's memory: available before, and after each site; the last one for ever."""
    left = list(levels)
    return lambda: {"total": total, "available": left.pop(0) if len(left) > 1 else left[0]}


def test_one_after_another_each_is_closed_before_the_next(world: World):
    done = open_sites(Openings(2), TRUE, fresh(world), reader(2**33), {})
    assert world.ran == [("0", ("true",)), ("0", ("closed",)), ("1", ("true",)), ("1", ("closed",))]
    found = opened(done)
    assert [each.close_s is not None and 0 <= each.open_s <= each.ready_s for each in found.openings] == [True] * 2
    assert (found.total_bytes, found.available_bytes, found.openings[0].group_bytes) == (TOTAL, 2**33, 4096)
    assert done.argv == ("true",) and done.duration_s >= found.openings[0].ready_s


def test_no_further_one_where_memory_would_run_under_the_floor(world: World):
    levels = [FLOOR_BYTES * 2 + (5 - number) * 2**28 for number in range(6)]
    steep = [6 * 2**30, 4 * 2**30, 3 * 2**30]  # a third would leave 1 GiB, less than a tenth of 16 GiB
    found = opened(open_sites(Openings(8, together=True), TRUE, fresh(world), reader(*steep), {}))
    assert (found.stopped, len(found.openings)) == ("memory", 2)
    assert [each.available_bytes for each in found.openings] == steep[1:]
    found = opened(open_sites(Openings(5, together=True), TRUE, fresh(world), reader(*levels), {}))
    assert (found.stopped, len(found.openings)) == ("", 5)


def test_memory_that_only_sites_get_may_be_used_up_and_their_groups_are_not_the_machines(world: World):
    levels = [2**29, 2**29 - 2**28, 2**28 - 2**27]  # another one would need more than is left
    asked = Openings(8, together=True)
    found = opened(open_sites(asked, TRUE, fresh(world), reader(*levels, total=2**30), {}, counted=False))
    assert (found.stopped, [each.available_bytes for each in found.openings]) == ("memory", levels[1:])
    assert {each.group_bytes for each in found.openings} == {None} and found.total_bytes == 2**30


def test_no_further_one_after_three_slow_starts_in_a_row(world: World, monkeypatch: pytest.MonkeyPatch):
    clock = [0.0]
    monkeypatch.setattr(openings.time, "monotonic", lambda: clock[0])

    def lasts(number: int) -> None:
        clock[0] += (1.0, 2.0, 9.0, 1.0, 9.0, 10.0, 9.0)[number]

    found = opened(open_sites(Openings(9, together=True, slow=4), TRUE, fresh(world, lasts), reader(2**33), {}))
    assert ([each.ready_s for each in found.openings], found.stopped) == ([1, 2, 9, 1, 9, 10, 9], "slow")


@pytest.mark.parametrize(
    ("fewest", "lasting_s", "opened_sites"), [(1, 0.0, 1), (1, 1.0, 1), (1, 2.6, 3), (1, 3.4, 3), (4, 2.5, 4)]
)
def test_the_first_trial_finds_how_many_sites_all_trials_open(
    world: World, monkeypatch: pytest.MonkeyPatch, fewest: int, lasting_s: float, opened_sites: int
):
    takes_s = 1.0
    clock = [0.0]
    monkeypatch.setattr(openings.time, "monotonic", lambda: clock[0])

    def takes(_: int) -> None:
        clock[0] += takes_s

    asked, start_s = Openings(fewest, lasting_s=lasting_s), StartTimesDict()
    first = opened(open_sites(asked, TRUE, fresh(world, takes), reader(2**33), start_s))
    discarded = len(world.sites) - len(first.openings)
    takes_s = 0.25
    second = opened(open_sites(asked, TRUE, fresh(world, takes), reader(2**33), start_s))
    assert [len(each.openings) for each in (first, second)] == [opened_sites] * 2
    assert (discarded, len(world.sites) - discarded - 2 * opened_sites) == ((2, 1) if lasting_s else (0, 0))
    assert all(site.closed for site in world.sites)


def test_a_start_longer_than_the_trial_has_no_other_before_it(world: World, monkeypatch: pytest.MonkeyPatch):
    clock = [0.0]
    monkeypatch.setattr(openings.time, "monotonic", lambda: clock[0])

    def takes(number: int) -> None:
        clock[0] += 9 - number

    start_s: StartTimes = {}
    for sites in (3, 4, 5):  # the first trial finds out with two
        opened(open_sites(Openings(lasting_s=1), TRUE, fresh(world, takes), reader(2**33), start_s))
        assert len(world.sites) == sites
    assert start_s == {(Openings(lasting_s=1), TRUE.argv): 8}


@pytest.mark.parametrize(
    ("asked", "discarded"),
    [(Openings(19), 0), (Openings(20), 1), (Openings(20, together=True), 0)],
    ids=["few", "many", "together"],
)
def test_the_first_of_many_starts_does_not_count(world: World, asked: Openings, discarded: int):
    """After a pause it is slower by 15 ms: the slowest of 100 starts, which decides the 99th percentile."""
    found = opened(open_sites(asked, TRUE, fresh(world), reader(2**40, total=2**41), {}))
    assert len(found.openings) == asked.sites
    assert len(world.sites) == asked.sites + discarded


@pytest.mark.parametrize("mean_s", [0.016, 0.1, 0.35, 0.6, 0.9, 1.5])
def test_a_trial_reports_the_time_of_a_start_however_long_starts_are(monkeypatch: pytest.MonkeyPatch, mean_s: float):
    """On a simulated clock. The quantiles of the times are spread evenly, so few sessions are enough."""
    spread, options = math.sqrt(math.log1p(0.45**2)), boot.BootOptions()
    true_s = mean_s * math.exp(-spread * spread / 2)
    clock, number, slower_s = [0.0], count(1), [0.0]
    monkeypatch.setattr(openings, "time", SimpleNamespace(monotonic=lambda: clock[0], sleep=lambda _: None))
    monkeypatch.setattr(openings, "_own_cpu_s", lambda: 0.0)

    def run(command: Command) -> Completed:
        quantile = next(number) * (math.sqrt(5) - 1) / 2 % 1
        clock[0] += true_s * math.exp(spread * NormalDist().inv_cdf(quantile)) + slower_s[0]
        slower_s[0] = 0.0
        return Completed(command.argv, 0, b"", b"", 0.0)

    @contextmanager
    def open_site() -> Iterator[SimpleNamespace]:
        yield SimpleNamespace(run=run, opening_phases={})
        clock[0] += mean_s / 4

    def reported_s(start_s: StartTimes) -> float:
        slower_s[0] = 0.015 if mean_s < 0.5 else 0.0  # after a pause; no other start comes before longer ones
        asked = boot.PLUGIN.openings(options)
        done = open_sites(asked, TRUE, open_site, reader(2**33), start_s, counted=False)  # type: ignore[arg-type]
        return boot.PLUGIN.parse(options, {"solo": done}).measurements[0].value

    sessions = [StartTimesDict() for _ in range(4)]
    reported = [reported_s(each) for each in sessions for _ in range(200 if mean_s > 0.3 else 20)]
    assert geometric_mean(reported) == pytest.approx(true_s, rel=0.01)


def test_page_caches_are_emptied_before_each_cold_start_and_its_time(world: World, monkeypatch: pytest.MonkeyPatch):
    clock = [0.0]
    monkeypatch.setattr(openings.time, "monotonic", lambda: clock[0])
    emptied: list[int] = []

    def empty() -> None:
        emptied.append(len(world.sites))
        clock[0] += 5

    def takes(_: int) -> None:
        clock[0] += 1

    for cold, expected in ((False, []), (True, [2, 3])):
        asked = Openings(2, cold=cold)
        found = opened(open_sites(asked, TRUE, fresh(world, takes), reader(2**33), {}, empty_caches=empty))
        assert ([each.ready_s for each in found.openings], emptied) == ([1, 1], expected)


def test_cold_and_warm_starts_of_one_study_have_their_own_numbers(world: World, monkeypatch: pytest.MonkeyPatch):
    clock, start_s = [0.0], StartTimesDict()
    monkeypatch.setattr(openings.time, "monotonic", lambda: clock[0])

    def takes(_: int) -> None:
        clock[0] += 0.1

    def empty() -> None:
        clock[0] += 0.4

    numbers = []
    for cold in (False, True):
        asked = Openings(lasting_s=2, cold=cold)
        done = open_sites(asked, TRUE, fresh(world, takes), reader(2**33), start_s, empty_caches=empty)
        numbers.append(len(opened(done).openings))
    assert numbers == [20, 4]


def test_idle_sites_are_open_before_the_first_start_and_until_the_end(world: World):
    open_before: list[int] = []

    def counts(_: int) -> None:
        open_before.append(sum(not site.closed for site in world.sites))

    found = opened(open_sites(Openings(2, running=3), TRUE, fresh(world, counts), reader(2**33), {}))
    assert open_before == [0, 1, 2, 3, 3]
    assert len(found.openings) == 2 and all(site.closed for site in world.sites)


def test_idle_sites_that_do_not_fit_are_refused(world: World):
    left = reader(FLOOR_BYTES * 2, FLOOR_BYTES * 2, FLOOR_BYTES)
    done = open_sites(Openings(running=3), TRUE, fresh(world), left, {})
    assert done.stderr == b"only 1 idle sites fit into the memory: use a smaller number (running)"
    assert all(site.closed for site in world.sites)


def test_sites_of_a_burst_open_at_the_same_time_and_close_before_the_next_burst(world: World):
    all_opening = threading.Barrier(3, timeout=20)

    def waits(_: int) -> None:
        all_opening.wait()

    found = opened(open_sites(Openings(2, at_once=3), TRUE, fresh(world, waits), reader(2**33), {}))
    assert len(found.openings) == len(world.sites) == 6
    ran = [argv for _, argv in world.ran]
    assert ran == 2 * [*3 * [("true",)], *3 * [("closed",)]]
    assert len({each.own_cpu_s for each in found.openings}) == 2, "each burst has one CPU time, which its sites share"


def test_a_burst_of_which_one_site_fails_closes_all_of_its_sites(world: World):
    all_opening = threading.Barrier(3, timeout=20)

    def fails(number: int) -> None:
        if all_opening.wait() == 0:
            raise Unavailable("no address is left")

    done = open_sites(Openings(at_once=3), TRUE, fresh(world, fails), reader(2**33), {})
    assert (done.returncode, done.stderr) == (1, b"no address is left")
    assert all(site.closed for site in world.sites)


def test_the_phases_that_a_site_knows_are_in_the_record(world: World):
    def open_site() -> Iterator[FakeSite]:
        with fresh(world)() as site:  # type: ignore[attr-defined]
            site.opening_phases = {"create": 0.25, "start": 0.5}
            yield site

    found = opened(open_sites(Openings(), TRUE, contextmanager(open_site), reader(2**33), {}))
    assert found.openings[0].phases == {"create": 0.25, "start": 0.5}


def test_phases_follow_each_other_without_a_gap():
    moments = iter([1.0, 1.5, 4.0])
    phases = OpeningPhases(lambda: next(moments))
    phases.end("create")
    phases.end("start")
    assert phases.seconds == {"create": 0.5, "start": 2.5}


def test_programs_that_an_opening_started_are_in_its_cpu_time(world: World, monkeypatch: pytest.MonkeyPatch):
    ended = SimpleNamespace(ru_utime=5.0, ru_stime=2.0)
    monkeypatch.setattr(openings.resource, "getrusage", lambda _: ended)

    def ends(_: int) -> None:
        ended.ru_utime += 0.25
        ended.ru_stime += 0.5

    found = opened(open_sites(Openings(1), TRUE, fresh(world, ends), reader(2**33), {}))
    assert 0.75 <= found.openings[0].own_cpu_s < 1


def test_one_whose_first_command_fails_is_told(world: World):
    world.fails = ("true",)
    done = open_sites(Openings(), TRUE, fresh(world), reader(2**33), {})
    assert done.stderr == b"its first command (true) exited with code 1: no space left"
    assert world.sites[0].closed


def test_a_machine_that_tells_no_memory_has_none_in_the_record(world: World):
    def unreadable() -> dict[str, int]:
        raise FileNotFoundError

    found = opened(open_sites(Openings(2, together=True), TRUE, fresh(world), unreadable, {}))
    assert found.available_bytes is None and len(found.openings) == 2


# -- in a session ----------------------------------------------------------------------------------


@pytest.fixture
def booting(world: World, monkeypatch: pytest.MonkeyPatch) -> World:
    workloads: Mapping[str, Workload] = {**world.workloads, "boot": boot.PLUGIN}
    monkeypatch.setattr(registry, "workloads", lambda: workloads)
    return world


def test_each_trial_opens_sites_like_its_own_environment(booting: World, tmp_path: Path):
    made = study(
        "boot: {kind: boot, sites: 2, duration: 0s}, net: {kind: fake}", blocks=1, more="resources: {memory: 64MiB}"
    )
    told = go(tmp_path, made)
    assert booting.left() == []
    assert set(finished(tmp_path).values()) == {Outcome.OK}
    its = {request.name: request for request in booting.requests if not request.joined_site}
    others = [request for request in booting.requests if request.joined_site]
    assert len(others) == 2 * len(made.arms)
    names = [request.name for request in booting.requests]
    assert len({*names}) == len(names)
    for request in others:
        like: SiteRequest = its[request.joined_site]
        assert request.ports == () != like.ports, "its ports are the open one's"
        assert (request.environment, request.limits, request.run.id, request.userland) == (
            like.environment, like.limits, like.run.id, like.userland)  # fmt: skip
    for record in (each for each in told.records if each.trial.workload == "boot"):
        assert [role.role for role in record.roles] == ["solo"]
        assert len(Opened.model_validate_json(record.roles[0].stdout).openings) == 2
        assert [each.metric.name for each in record.measurements[:2]] == ["time_to_ready", "time_to_close"]
        assert record.measured_s > 0


def test_fresh_sites_publish_different_free_ports_where_a_trial_asks_for_them(booting: World, tmp_path: Path):
    go(tmp_path, study("boot: {kind: boot, duration: 0s, ports: 3}, net: {kind: fake}", blocks=1))
    fresh_ones = [request for request in booting.requests if request.joined_site]
    assert fresh_ones
    for request in fresh_ones:
        assert [(port.transport, port.listens) for port in request.ports] == [("tcp", 20_000 + n) for n in range(3)]
        assert len({port.reached for port in request.ports}) == 3


def test_images_with_additional_files_are_made_before_the_first_trial(
    booting: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    made: list[tuple[str, int, set[int]]] = []

    def note(_: Layer, __: object, request: SiteRequest, sizes: Collection[int]) -> None:
        made.append((request.environment, len(booting.requests), {*sizes}))

    monkeypatch.setattr(Layer, "builds_images", True)
    monkeypatch.setattr(Layer, "make_images", note)
    go(tmp_path, study("boot: {kind: boot, duration: 0s, image_files: [0B, 1MiB, 2MiB]}", blocks=1))
    before_trials = len([request for request in booting.requests if not request.joined_site])
    assert {name for name, _, _ in made} == {"native", "native-again", "one", "two"}
    assert all(number <= before_trials and sizes == {2**20, 2**21} for _, number, sizes in made)
    fresh_ones = [request.image_files for request in booting.requests if request.joined_site]
    assert {*fresh_ones} == {0, 2**20, 2**21}


def test_an_opening_that_fails_is_a_failed_trial_and_the_run_goes_on(
    booting: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    plain = Layer.open

    @contextmanager
    def refused(self: Layer, options: object, request: SiteRequest) -> Iterator[FakeSite]:
        if request.joined_site and request.environment == "two":
            raise EnvironmentLost("the engine refused")
        with plain(self, options, request) as site:
            yield site

    monkeypatch.setattr(Layer, "open", refused)
    with raises_sentence(TrialsFailed):
        go(tmp_path, study("boot: {kind: boot, duration: 0s}", blocks=2))
    ended = {trial.environment: outcome for trial, outcome in finished(tmp_path).items()}
    assert ended.pop("two") is Outcome.PROGRAM_FAILED
    assert set(ended.values()) == {Outcome.OK}
    assert booting.left() == []
