"""The idle level in a session: looked at while nothing runs, kept with the run and with each trial."""

from pathlib import Path

import pytest

from weighbridge.meters import machines
from weighbridge.meters.machines import IdleLevels
from weighbridge.meters.opened import meters
from weighbridge.model.study import Meters, Study
from weighbridge.runner import trial_runner
from weighbridge.store.run import RunStore

from .world import World, go, study


def metered(made: Study) -> Study:
    """With meters, as far as the idle level is concerned."""
    return made.model_copy(update={"file": made.file.model_copy(update={"meters": Meters()})})


@pytest.fixture
def looks(world: World, monkeypatch: pytest.MonkeyPatch) -> list[set[str]]:
    """Who was awake at each look."""
    awake: list[set[str]] = []
    look = IdleLevels.look

    def noted(self: IdleLevels) -> None:
        awake.append(world.awake())
        look(self)

    monkeypatch.setattr(IdleLevels, "look", noted)
    monkeypatch.setattr(machines, "FIRST_S", 0.01)
    monkeypatch.setattr(machines, "AGAIN_S", 0.01)
    monkeypatch.setattr(trial_runner, "meters", lambda _, hz, **others: meters(Meters(source="off"), hz, **others))
    return awake


@pytest.mark.parametrize(("between_s", "expected"), [(0.0, 1 + 3), (1e9, 1)])
def test_it_is_looked_at_first_and_then_between_blocks(
    world: World, looks: list[set[str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, between_s, expected
):
    monkeypatch.setattr(machines, "BETWEEN_S", between_s)
    go(tmp_path, metered(study(blocks=3)))
    assert looks == [set()] * expected, "nobody was awake"
    with RunStore(tmp_path / "run") as store:
        assert sum(scope == "idle" for scope, *_ in store.facts()) == 2 * expected
        solo = {trial.id for trial in store.trials() if trial.workload == "cpu"}
        told = {sample.trial for sample in store.samples() if sample.name == "idle_cpus"}
        assert told == {trial.id for trial in store.trials()} - solo


def test_without_meters_nobody_looks(world: World, looks: list[set[str]], tmp_path: Path):
    go(tmp_path, study(blocks=1))
    assert looks == []
    with RunStore(tmp_path / "run") as store:
        assert not [sample for sample in store.samples() if sample.name in ("measured_busy_s", "idle_cpus")]


def test_nobody_looks_for_programs_without_a_counterpart(world: World, looks: list[set[str]], tmp_path: Path):
    go(tmp_path, metered(study("cpu: {kind: fake-solo}", blocks=1)))
    assert looks == []
