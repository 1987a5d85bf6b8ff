"""Optional environments that cannot be opened: left out before the first trial, with why; never in silence."""

from pathlib import Path

import pytest

from weighbridge.errors import EnvironmentLost, Interrupted, Unavailable
from weighbridge.linux import cpus
from weighbridge.model.decisions import LeftOut
from weighbridge.model.plugin import Readiness
from weighbridge.model.study import Study
from weighbridge.runner import left_out as left_out_module
from weighbridge.runner import routes
from weighbridge.runner.session import Session
from weighbridge.store.run import RunStore

from .world import USERLAND, Told, World, context, study

INSTALL = Readiness(False, "podman is not installed", "apt-get install podman")


@pytest.fixture(autouse=True)
def _two_cpus(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cpus, "cpus_online", lambda: [0, 1])
    monkeypatch.setattr("weighbridge.runner.stage.cpus_online", lambda: [0, 1])


def readiness(world: World):
    """What `weighbridge.runner.run.readiness_of` gives, without launchers and storage."""
    return lambda made: {arm.name: world.environments[arm.kind].readiness(arm.options) for arm in made.arms}


def go(path: Path, made: Study, world: World, told: Told | None = None) -> tuple[Told, dict[str, int]]:
    """Run a study into a directory, as ``run_study`` does; how many trials each environment has."""
    told = told or Told()
    with RunStore(path / "run", writable=True) as store, context(path) as run:
        if "study" not in store.info():
            store.begin(made, {"run_id": run.id})
        rest = left_out_module.leave_out(made, store, readiness(world), told.say)
        try:
            Session(rest, store, run, USERLAND, told).go()
        finally:
            counts: dict[str, int] = {}
            for trial in store.finished():
                counts[trial.environment] = counts.get(trial.environment, 0) + 1
    return told, counts


def kept(path: Path) -> tuple[LeftOut, ...]:
    with RunStore(path / "run") as store:
        return store.left_out()


def test_what_is_not_ready_is_not_measured_and_the_run_keeps_why(world: World, tmp_path: Path):
    world.environments["fake"].readiness = lambda options=None: INSTALL  # type: ignore[method-assign]
    made = study(optional=["one", "two"])
    with pytest.raises(Unavailable, match=r"nothing is left.*one is left out: podman is not installed; apt-get"):
        go(tmp_path, made, world)
    assert not world.sites
    ready = iter([Readiness(True), INSTALL])
    world.environments["fake"].readiness = lambda options=None: next(ready)  # type: ignore[method-assign]
    told, counts = go(tmp_path, made, world)
    assert counts == {"native": 4, "one": 4, "native-again": 4}
    assert "two is left out: podman is not installed; apt-get install podman" in told.lines
    expected = LeftOut(environment="two", kind="fake", why=INSTALL.detail, remedy=INSTALL.remedy)
    assert kept(tmp_path) == (expected,)


@pytest.mark.parametrize("role", ["server", "client"])
def test_what_refuses_as_it_is_opened_is_closed_and_left_out(world: World, tmp_path: Path, role: str):
    world.unavailable = {f"one-{role}": "no guest came up under KVM"}
    made = study(optional=["one"], more="inside: [server, client]")
    told, counts = go(tmp_path, made, world)
    assert counts == {"native": 4, "two": 4, "native-again": 4}
    assert [(each.environment, each.why) for each in kept(tmp_path)] == [("one", "no guest came up under KVM")]
    assert "one is left out: no guest came up under KVM" in told.lines
    assert world.left() == []
    assert len({site.name for site in world.sites}) == len(world.sites)
    assert not [place for place, _, _ in world.started if place == "one"]


def test_what_no_client_reaches_is_left_out_and_its_client_rests_again(world: World, tmp_path: Path, monkeypatch):
    def connection(server, client, at, transport):
        return None if server.place == "one" else world.path

    monkeypatch.setattr(routes, "connection", connection)
    monkeypatch.setattr(routes, "REACHED_S", 0.0)
    _, counts = go(tmp_path, study(optional=["one"]), world)
    assert counts == {"native": 4, "two": 4, "native-again": 4}
    assert "no connection from its client reaches its server" in kept(tmp_path)[0].why
    awake = [sites for _, _, sites in world.started]
    assert all(len(each) <= 2 for each in awake)  # those of one trial


def test_what_is_not_optional_ends_the_run(world: World, tmp_path: Path):
    world.unavailable = {"two-server": "no guest came up"}
    with pytest.raises(Unavailable, match="no guest came up"):
        go(tmp_path, study(optional=["one"]), world)
    assert world.left() == []


def test_clients_outside_are_of_no_environment(world: World, tmp_path: Path):
    world.unavailable = {"outside-client": "no room"}
    with pytest.raises(Unavailable, match="no room"):
        go(tmp_path, study(optional=["one", "two"]), world)


def test_a_run_without_a_trial_looks_again(world: World, tmp_path: Path):
    made, told = study(optional=["one"]), Told()
    world.unavailable = {"one-server": "no guest"}

    def interrupt(_: object) -> None:
        raise Interrupted(2)

    told.at_begin = interrupt
    with pytest.raises(Interrupted):
        go(tmp_path, made, world, told)
    assert [each.environment for each in kept(tmp_path)] == ["one"]
    world.unavailable = {}
    _, counts = go(tmp_path, made, world)
    assert counts["one"] == 4 and kept(tmp_path) == ()


def test_a_run_with_trials_keeps_what_it_began_with(world: World, tmp_path: Path):
    made, told = study(optional=["one"]), Told()
    world.unavailable = {"one-server": "no guest"}

    def interrupt(_: object) -> None:
        if len(told.begun) == 3:
            raise Interrupted(2)

    told.at_begin = interrupt
    with pytest.raises(Interrupted):
        go(tmp_path, made, world, told)
    world.unavailable = {}  # it could be opened now
    _, counts = go(tmp_path, made, world)
    assert counts == {"native": 4, "two": 4, "native-again": 4}
    assert [each.environment for each in kept(tmp_path)] == ["one"]


@pytest.mark.parametrize("how", ["opening", "readiness"])
def test_what_a_run_began_with_it_does_not_leave_out_later(world: World, tmp_path: Path, how: str):
    made, told = study(optional=["one"]), Told()

    def interrupt(_: object) -> None:
        if len(told.begun) == 3:
            raise Interrupted(2)

    told.at_begin = interrupt
    with pytest.raises(Interrupted):
        go(tmp_path, made, world, told)
    world.cannot_open = {"one"}
    if how == "readiness":
        world.environments["fake"].readiness = lambda options=None: INSTALL  # type: ignore[method-assign]
    with pytest.raises(EnvironmentLost):  # of what is not ready `require_ready` tells before
        go(tmp_path, made, world)
    assert kept(tmp_path) == ()
