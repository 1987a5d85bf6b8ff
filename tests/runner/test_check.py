"""What is run before a trial's program and after it, of workloads that keep no data."""

import pytest

from weighbridge.model.command import Command
from weighbridge.model.measurement import Outcome
from weighbridge.model.trial import TrialRecord
from weighbridge.model.workload import Endpoint
from weighbridge.runner.stage import Stage
from weighbridge.runner.trial import run_trial

from .test_trial import TRIAL
from .world import ROLES, Act, FakeSite, FakeSolo, FakeWorkload, Load, World, usual

AT = Endpoint("0.0.0.0", "198.51.100.1", 5201)


@pytest.fixture
def world() -> World:
    return World(act=usual)


def solo(world: World, sites: int = 1) -> Stage:
    first, *others = [FakeSite(world, f"solo-{number}", "one", "solo") for number in range(1, sites + 1)]
    return Stage({"solo": first}, {"solo": AT}, {}, {"solo": "a"}, further=tuple(others))


def with_check(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(FakeWorkload, "check", lambda *_: Command(("grep", "-q", "42")))


def measured(world: World, stage: Stage) -> TrialRecord:
    workload = FakeSolo() if "solo" in stage.sites else FakeWorkload()
    return run_trial(TRIAL, workload, Load(), stage)


def test_the_check_gets_what_was_printed_and_its_output_is_kept(world: World, monkeypatch: pytest.MonkeyPatch):
    with_check(monkeypatch)
    record = measured(world, solo(world))
    assert record.outcome is Outcome.OK
    assert (world.ran, world.given) == ([("solo-1", ("grep", "-q", "42"))], [b"42"])
    assert [role.role for role in record.roles] == ["solo", "check"]


def test_a_check_that_fails_is_a_failed_trial(world: World, monkeypatch: pytest.MonkeyPatch):
    with_check(monkeypatch)
    world.fails = ("grep", "-q", "42")
    record = measured(world, solo(world))
    assert (record.outcome, record.measurements) == (Outcome.PROGRAM_FAILED, ())
    assert record.message == "the check failed: grep ended with code 1: no space left"


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
    record = measured(world, Stage(sites, dict.fromkeys(sites, AT), {}, {"server": "a", "client": "a"}))
    assert (record.outcome, world.ran[0][0], alive) == (Outcome.OK, "client", [True])


def test_the_check_is_left_out_where_the_program_failed(world: World, monkeypatch: pytest.MonkeyPatch):
    with_check(monkeypatch)
    world.act = lambda *_: Act(returncode=3, stderr=b"no such luck")
    assert measured(world, solo(world)).message == "exit code 3: no such luck"
    assert world.ran == []


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
    assert record.message == f"{told}: make ended with code 1: no space left"


def test_files_are_there_before_anything_is_prepared(world: World, monkeypatch: pytest.MonkeyPatch):
    there: list[int] = []

    class Watching(FakeSite):
        def run(self, command: Command):  # type: ignore[no-untyped-def]
            there.append(len(self.world.files))
            return super().run(command)

    monkeypatch.setattr(FakeWorkload, "files", lambda *_: {"/tmp/prog": b"#!/bin/sh\n"})
    monkeypatch.setattr(FakeWorkload, "file_mode", lambda *_: 0o755)
    monkeypatch.setattr(FakeWorkload, "prepare", lambda *_: Command(("/tmp/prog",)))
    stage = Stage({"solo": Watching(world, "solo", "one", "solo")}, {"solo": AT}, {}, {"solo": "a"})
    assert measured(world, stage).outcome is Outcome.OK
    assert (there, world.modes) == ([1], {("solo", "/tmp/prog"): 0o755})
