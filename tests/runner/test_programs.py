"""The programs of a trial: what is run before, beside and after the measured one, and in several sites at a time."""

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sentences import raises_sentence
from weighbridge.errors import EnvironmentLost
from weighbridge.model.command import Command, Completed
from weighbridge.model.host import Capabilities
from weighbridge.model.measurement import Measurement, Metric, Outcome, ProgramFailed
from weighbridge.model.trial import TrialRecord, TrialResult, Work
from weighbridge.model.workload import Endpoint
from weighbridge.runner.outputs import SLOWEST, add_up, per_site
from weighbridge.runner.programs import endpoints, settle_page_caches, start_in_all
from weighbridge.runner.stage import Stage
from weighbridge.runner.trial import run_trial

from .test_trial import TRIAL
from .world import ROLES, Act, FakeSite, FakeSolo, FakeWorkload, Load, World

A_GROUP: Any = "a group"
AT = Endpoint("0.0.0.0", "198.51.100.1", 5201)


def solo(world: World, sites: int = 1) -> Stage:
    first, *others = [FakeSite(world, f"solo-{number}", "one", "solo") for number in range(1, sites + 1)]
    return Stage({"solo": first}, {"solo": AT}, further=tuple(others))


def with_check(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(FakeWorkload, "check", lambda *_: Command(("grep", "-q", "42")))


def measured(world: World, stage: Stage) -> TrialRecord:
    workload = FakeSolo() if "solo" in stage.sites else FakeWorkload()
    return run_trial(TRIAL, workload, Load(), stage)


def test_a_check_that_fails_is_a_failed_trial(world: World, monkeypatch: pytest.MonkeyPatch):
    with_check(monkeypatch)
    world.fails = ("grep", "-q", "42")
    record = measured(world, solo(world))
    assert (record.outcome, record.measurements) == (Outcome.PROGRAM_FAILED, ())
    assert record.message == "the check failed: grep exited with code 1: no space left"


def test_the_check_is_run_where_the_client_was_while_the_server_still_runs(
    world: World, monkeypatch: pytest.MonkeyPatch
):
    alive: list[bool] = []

    class Watching(FakeSite):
        def run(self, command: Command):  # type: ignore[no-untyped-def]
            alive.append(any(each.site.role == "server" and not each.stopped for each in self.world.programs))
            return super().run(command)

    with_check(monkeypatch)
    sites = {role: Watching(world, role, "one", role) for role in ROLES}
    record = measured(world, Stage(sites, dict.fromkeys(sites, AT)))
    assert (record.outcome, world.ran[0][0], alive) == (Outcome.OK, "client", [True])


def test_each_of_several_sites_is_prepared_once_and_checked_each_time(world: World, monkeypatch: pytest.MonkeyPatch):
    with_check(monkeypatch)
    monkeypatch.setattr(FakeWorkload, "prepare", lambda *_: Command(("set-up",)))
    stage = solo(world, sites=2)
    for _ in range(2):
        assert measured(world, stage).outcome is Outcome.OK
    assert [name for name, argv in world.ran if argv == ("set-up",)] == ["solo-1", "solo-2"]
    assert [name for name, argv in world.ran if argv[0] == "grep"] == ["solo-1", "solo-2"] * 2


@pytest.mark.parametrize(
    ("step", "told"),
    [("prepare", "the preparation of the site failed"), ("restore", "the preparation of the trial failed")],
)
def test_what_cannot_be_prepared_is_told_without_a_word_of_data(
    world: World, monkeypatch: pytest.MonkeyPatch, step: str, told: str
):
    monkeypatch.setattr(FakeWorkload, step, lambda *_: Command(("make", "it")))
    world.fails = ("make", "it")
    record = measured(world, solo(world))
    assert (record.outcome, world.started) == (Outcome.PROGRAM_FAILED, [])
    assert record.message == f"{told}: make exited with code 1: no space left"


# -- data that are brought back --------------------------------------------------------------------


@pytest.fixture
def restored(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> Stage:
    monkeypatch.setattr(FakeWorkload, "prepare", lambda *_: Command(("prepare",)))
    monkeypatch.setattr(FakeWorkload, "restore", lambda *_: Command(("restore",)))
    return stage


def test_once_made_and_each_time_restored(world: World, restored: Stage):
    for _ in range(2):
        assert run_trial(TRIAL, FakeWorkload(), Load(), restored).outcome is Outcome.OK
    assert world.ran == [("server", (name,)) for name in ("prepare", "restore", "restore")]


def test_what_cannot_be_restored_starts_nothing(world: World, restored: Stage, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(FakeWorkload, "needs_data", lambda *_: True)
    world.fails = ("restore",)
    record = run_trial(TRIAL, FakeWorkload(), Load(), restored)
    assert (record.outcome, world.started) == (Outcome.SERVER_NOT_READY, [])
    assert record.message == "the data at /srv cannot be restored: no space left"


# -- page caches -----------------------------------------------------------------------------------


@pytest.fixture
def stage(world: World) -> Stage:
    sites = {role: FakeSite(world, role, "one", role) for role in ROLES}
    return Stage(sites, dict.fromkeys(sites, Endpoint("0.0.0.0", "198.51.100.1", 5201)))


@pytest.fixture
def settled(monkeypatch: pytest.MonkeyPatch) -> list[tuple[object, ...]]:
    """Whether caches were emptied, and the names of the sites, by call."""
    found: list[tuple[object, ...]] = []
    name = "weighbridge.runner.programs.settle_page_caches"
    monkeypatch.setattr(name, lambda sites, *_, empty: found.append((empty, *(site.name for site in sites))))
    return found


def test_only_where_the_workload_asks_for_it(stage: Stage, settled: list[tuple[object, ...]], monkeypatch):
    names = [site.name for site in stage.sites.values()]
    assert run_trial(TRIAL, FakeWorkload(), Load(), stage).outcome is Outcome.OK
    assert not settled
    monkeypatch.setattr(FakeWorkload, "needs_data", lambda *_: True)
    assert run_trial(TRIAL, FakeWorkload(), Load(), stage).outcome is Outcome.OK
    assert settled == [(False, *names)], "what the trial before wrote is on the disk"
    monkeypatch.setattr(FakeWorkload, "cold", lambda *_: True)
    assert run_trial(TRIAL, FakeWorkload(), Load(), stage).outcome is Outcome.OK
    assert settled[1:] == [(True, *names)]


@pytest.mark.parametrize("empty", [True, False])
@pytest.mark.parametrize("guest", ["", "host b"])
def test_each_machine_once(stage: Stage, monkeypatch: pytest.MonkeyPatch, guest: str, empty: bool):
    """Guests of ours have their disks in files of this machine, which comes last."""
    asked: list[str] = []
    completed = stage.sites["server"].run(Command(("true",)))

    def noted(name: str, command: Command) -> Completed:
        assert ("drop_caches" in command.argv[-1]) == empty and "sync" in command.argv[-1]
        asked.append(name)
        return completed

    class Machine:
        layers = ()

        def __init__(self, machine: str) -> None:
            self.name = self.machine = machine
            self.capabilities = Capabilities(hypervisor=A_GROUP if machine == guest else None)

        def run(self, command: Command) -> Completed:
            return noted(self.machine, command)

    class Container:
        name, layers = "one", ()
        host = Machine("host")

    monkeypatch.setattr("weighbridge.runner.programs.run_here", lambda command: noted("this machine", command))
    settle_page_caches([Container(), Container()], [Machine("host b")], empty=empty)  # type: ignore[list-item]
    assert asked == ["host", "host b", *(["this machine"] if guest else [])]


def test_other_hosts_are_written_and_stay_full(stage: Stage):
    """One that is gone is not this trial's loss."""
    asked: list[tuple[str, bool]] = []
    completed = stage.sites["server"].run(Command(("true",)))

    class Machine:
        layers, capabilities = (), Capabilities()

        def __init__(self, machine: str) -> None:
            self.name = self.machine = machine

        def run(self, command: Command) -> Completed:
            asked.append((self.machine, "drop_caches" in command.argv[-1]))
            if self.machine == "gone":
                raise EnvironmentLost("it is gone")
            return completed

    class Container:
        name, layers = "one", ()
        host = Machine("a")

    others = [Machine(name) for name in ("a", "gone", "b", "b")]
    settle_page_caches([Container()], (), others, empty=True)  # type: ignore[list-item, arg-type]
    assert asked == [("a", True), ("gone", False), ("b", False)]


# -- several sites ---------------------------------------------------------------------------------


WRITES, LATENCY = Metric("writes", "1/s", "higher"), Metric("latency_p99", "ms", "lower")


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


def test_each_site_has_a_folder_of_its_own(world: World):
    sites = [FakeSite(world, "solo", "one", "solo") for _ in range(3)]
    assert [each.data for each in endpoints(AT, sites, keeps=True)] == ["/srv/site-1", "/srv/site-2", "/srv/site-3"]
    assert [argv for _, argv in world.ran] == [("mkdir", "-p", f"/srv/site-{number}") for number in (1, 2, 3)]
    assert endpoints(AT, sites[:1], keeps=True) == [AT]
    assert endpoints(AT, sites, keeps=False) == [AT] * 3


def test_a_folder_that_cannot_be_made_fails_the_trial(world: World):
    world.fails = ("mkdir", "-p", "/srv/site-1")
    with raises_sentence(ProgramFailed):
        endpoints(AT, [FakeSite(world, "solo", "one", "solo") for _ in range(2)], keeps=True)


def test_all_are_waited_for_and_ended(world: World):
    world.act = lambda site, command: Act(
        stdout=command.argv[0].encode(), lasts=float(command.argv[1]), clock_s=float(command.argv[1])
    )
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
