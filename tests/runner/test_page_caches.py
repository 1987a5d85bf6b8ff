"""Page caches are emptied before a trial of a workload that asks for cold ones, the inner kernels' first."""

import pytest

from weighbridge.model.command import Command, Completed
from weighbridge.model.measurement import Outcome
from weighbridge.model.plugin import Endpoint
from weighbridge.runner.page_caches import drop_page_caches
from weighbridge.runner.stage import Stage
from weighbridge.runner.trial import run_trial

from .test_trial import TRIAL
from .world import ROLES, FakeSite, FakeWorkload, Load, World


@pytest.fixture
def stage(world: World) -> Stage:
    sites = {role: FakeSite(world, role, "one", role) for role in ROLES}
    return Stage(sites, Endpoint("0.0.0.0", "198.51.100.1", 5201), {}, {"server": "a", "client": "a"})


@pytest.fixture
def dropped(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, ...]]:
    """The names of the sites whose caches were dropped, by call."""
    found: list[tuple[str, ...]] = []
    name = "weighbridge.runner.trial_programs.drop_page_caches"
    monkeypatch.setattr(name, lambda sites, _: found.append(tuple(site.name for site in sites)))
    return found


def test_only_where_the_workload_asks_for_it(stage: Stage, dropped: list[tuple[str, ...]], monkeypatch):
    assert run_trial(TRIAL, FakeWorkload(), Load(), stage).outcome is Outcome.OK
    assert not dropped
    monkeypatch.setattr(FakeWorkload, "cold", lambda *_: True)
    assert run_trial(TRIAL, FakeWorkload(), Load(), stage).outcome is Outcome.OK
    assert dropped == [tuple(site.name for site in stage.sites.values())]


def test_each_machine_once(stage: Stage):
    asked: list[str] = []
    completed = stage.sites["server"].run(Command(("true",)))

    class Machine:
        layers = ()

        def __init__(self, machine: str) -> None:
            self.name = self.machine = machine

        def run(self, command: Command) -> Completed:
            asked.append(self.machine)
            return completed

    class Container:
        name, layers = "one", ()
        host = Machine("host")

    drop_page_caches([Container(), Container()], [Machine("host b")])  # type: ignore[list-item]
    assert asked == ["host", "host b"]
