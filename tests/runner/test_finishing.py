"""What a workload wants done in its sites when a run ends is done there once, however it ends, and fails nothing."""

from pathlib import Path

import pytest

from weighbridge.errors import EnvironmentLost, Interrupted
from weighbridge.model.command import Command
from weighbridge.model.measurement import Outcome
from weighbridge.runner.sites import CLEANUP
from weighbridge.store.run import RunStore

from .world import Act, FakeSite, FakeWorkload, Told, World, study, usual
from .world import go as run_session

SOLO = "cpu: {kind: fake-solo}"
PLACES = ["native", "one", "two", "native-again"]


@pytest.fixture(autouse=True)
def _prepares_and_finishes(monkeypatch: pytest.MonkeyPatch, world: World) -> None:
    monkeypatch.setattr(FakeWorkload, "wants", Command(("prepare",)))
    monkeypatch.setattr(FakeWorkload, "finish", lambda *_: Command(("finish",)))


def go(path: Path, workloads: str = SOLO, blocks: int = 2) -> Told:
    return run_session(path, study(workloads, blocks=blocks))


def ran(world: World, what: str) -> list[str]:
    """The sites in which it ran."""
    return [name for name, argv in world.ran if argv[0] == what]


def kept(path: Path) -> dict[str, str]:
    with RunStore(path / "run") as store:
        return {key: value for scope, key, value, _ in store.facts() if scope == CLEANUP}


def test_its_files_are_there(world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    seen = []

    def run(site: FakeSite, command: Command):
        seen.append((command.argv[0], world.files.pop((site.name, "/tmp/of-solo"), b"")))
        return real(site, command)

    real = FakeSite.run
    monkeypatch.setattr(FakeSite, "run", run)
    go(tmp_path)
    assert [data for name, data in seen if name == "finish"] == [b"page"] * len(PLACES)


def test_levels_of_other_commands_are_each_finished_the_last_one_first(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    def step(name: str):
        return lambda self, options, at: Command((name, str(options.n)))

    monkeypatch.setattr(FakeWorkload, "prepare", step("prepare"))
    monkeypatch.setattr(FakeWorkload, "finish", step("finish"))
    go(tmp_path, "cpu: {kind: fake-solo, n: [1, 2, 3]}")
    for site in {*ran(world, "prepare")}:
        mine = [argv for name, argv in world.ran if name == site]
        begun = [number for what, number in mine if what == "prepare"]
        assert [number for what, number in mine if what == "finish"] == begun[::-1]
        assert sorted(begun) == ["1", "2", "3"]


def test_one_that_fails_is_told_and_kept_and_the_run_is_good(world: World, tmp_path: Path):
    world.fails = ("finish",)
    told = go(tmp_path)
    assert len(ran(world, "finish")) == len(PLACES)
    assert kept(tmp_path) == {f"{place}/solo": "finish exited with code 1: no space left" for place in PLACES}
    assert len([line for line in told.lines if "no space left" in line]) == len(PLACES)
    with RunStore(tmp_path / "run") as store:
        assert [*store.finished().values()] == [Outcome.OK] * 2 * len(PLACES)


@pytest.mark.parametrize("number", [1, 3])
def test_an_interrupted_run_finishes_what_it_prepared_and_so_does_what_goes_on(
    world: World, tmp_path: Path, number: int
):
    def act(site: FakeSite, command: Command) -> Act:
        stop = Interrupted(2) if len(world.started) == number else None
        return Act(raises=stop)

    world.act = act
    with pytest.raises(Interrupted):
        go(tmp_path)
    assert len(ran(world, "finish")) == number
    assert sorted(ran(world, "finish")) == sorted(ran(world, "prepare"))
    world.act = usual
    go(tmp_path)
    assert len(ran(world, "finish")) == number + len(PLACES)
    assert sorted(ran(world, "finish")) == sorted(ran(world, "prepare"))


def test_a_lost_site_leaves_the_others_finished(world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    def thaw(site: FakeSite) -> None:
        if site.place == "one" and len(world.started) == 2 * len(PLACES):
            raise EnvironmentLost("it has gone")
        site.frozen = False

    monkeypatch.setattr(FakeSite, "thaw", thaw)
    told = go(tmp_path)
    assert len(ran(world, "finish")) == len(PLACES) - 1
    assert kept(tmp_path) == {"one/solo": "it has gone"}
    assert len([line for line in told.lines if "it has gone" in line]) == 1


def test_a_run_in_which_nothing_is_left_to_do_finishes_nothing(world: World, tmp_path: Path):
    go(tmp_path)
    before = len(world.ran)
    go(tmp_path)
    assert len(world.ran) == before
