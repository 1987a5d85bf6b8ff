"""Page caches are emptied before a trial of a workload that asks for cold ones, the inner kernels' first."""

from dataclasses import replace

import pytest

from weighbridge.errors import EnvironmentLost
from weighbridge.model.command import Command, Completed
from weighbridge.model.measurement import Outcome
from weighbridge.model.workload import Endpoint
from weighbridge.runner.page_caches import settle_page_caches
from weighbridge.runner.stage import Stage
from weighbridge.runner.trial import run_trial

from .test_trial import TRIAL
from .world import ROLES, FakeSite, FakeWorkload, Load, World


@pytest.fixture
def stage(world: World) -> Stage:
    sites = {role: FakeSite(world, role, "one", role) for role in ROLES}
    return Stage(
        sites, dict.fromkeys(sites, Endpoint("0.0.0.0", "198.51.100.1", 5201)), {}, {"server": "a", "client": "a"}
    )


@pytest.fixture
def settled(monkeypatch: pytest.MonkeyPatch) -> list[tuple[object, ...]]:
    """Whether caches were emptied, and the names of the sites, by call."""
    found: list[tuple[object, ...]] = []
    name = "weighbridge.runner.trial_programs.settle_page_caches"
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


def test_also_where_the_trials_before_wrote(stage: Stage, settled: list[tuple[object, ...]]):
    others = replace(stage, written=(stage.sites["server"].host,))
    assert run_trial(TRIAL, FakeWorkload(), Load(), others).outcome is Outcome.OK
    assert [empty for empty, *_ in settled] == [False]


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
            self.hypervisor = "a group" if machine == guest else None

        def run(self, command: Command) -> Completed:
            return noted(self.machine, command)

    class Container:
        name, layers = "one", ()
        host = Machine("host")

    monkeypatch.setattr("weighbridge.runner.page_caches.run_here", lambda command: noted("this machine", command))
    settle_page_caches([Container(), Container()], [Machine("host b")], empty=empty)  # type: ignore[list-item]
    assert asked == ["host", "host b", *(["this machine"] if guest else [])]


def test_other_hosts_are_written_and_stay_full(stage: Stage):
    """One that is gone is not this trial's loss."""
    asked: list[tuple[str, bool]] = []
    completed = stage.sites["server"].run(Command(("true",)))

    class Machine:
        layers, hypervisor = (), None

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
