"""Data that a workload has made once are brought back before each start of its server."""

import pytest

from weighbridge.model.command import Command
from weighbridge.model.measurement import Outcome
from weighbridge.model.workload import Endpoint
from weighbridge.runner.stage import Stage
from weighbridge.runner.trial import run_trial

from .test_trial import TRIAL
from .world import ROLES, FakeSite, FakeWorkload, Load, World


@pytest.fixture
def stage(world: World, monkeypatch: pytest.MonkeyPatch) -> Stage:
    monkeypatch.setattr(FakeWorkload, "prepare", lambda *_: Command(("prepare",)))
    monkeypatch.setattr(FakeWorkload, "restore", lambda *_: Command(("restore",)))
    sites = {role: FakeSite(world, role, "one", role) for role in ROLES}
    return Stage(
        sites, dict.fromkeys(sites, Endpoint("0.0.0.0", "198.51.100.1", 5201)), {}, {"server": "a", "client": "a"}
    )


def test_once_made_and_each_time_restored(world: World, stage: Stage):
    for _ in range(2):
        assert run_trial(TRIAL, FakeWorkload(), Load(), stage).outcome is Outcome.OK
    assert world.ran == [("server", (name,)) for name in ("prepare", "restore", "restore")]


def test_what_cannot_be_restored_starts_nothing(world: World, stage: Stage, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(FakeWorkload, "needs_data", lambda *_: True)
    world.fails = ("restore",)
    record = run_trial(TRIAL, FakeWorkload(), Load(), stage)
    assert (record.outcome, world.started) == (Outcome.SERVER_NOT_READY, [])
    assert record.message == "the data at /srv cannot be restored: no space left"
