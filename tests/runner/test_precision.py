"""Blocks until every comparison is precise enough: precision alone decides, at looks that are fixed beforehand."""

import contextlib
import math
import random
from collections import Counter
from dataclasses import replace
from itertools import cycle
from pathlib import Path

import pytest

from sentences import raises_sentence
from weighbridge.analysis.analyse import analyse
from weighbridge.analysis.plan import plan_of
from weighbridge.errors import DiskFull, EnvironmentLost, Interrupted, RunDirectoryError, TrialsFailed
from weighbridge.model.explained import DescribedMechanism, Explains
from weighbridge.model.flag import Flag, FlagCode
from weighbridge.model.measurement import Metric
from weighbridge.runner.precision import OutOfReach, Precision, comparisons_of
from weighbridge.statistics import Looks
from weighbridge.store.extensions import extend, extensions, unfinished
from weighbridge.store.run import RunStore

from . import world as world_module
from .world import Act, Told, World, study, usual
from .world import go as run_session

SOLO = "cpu: {kind: fake-solo}"


def noisy(world: World, **noise: float) -> None:
    """Each environment prints 100 with its own relative noise."""
    chance = random.Random(1)

    def act(site, command) -> Act:
        if command.argv[0] == "server":
            return usual(site, command)
        return Act(stdout=repr(100 * chance.lognormvariate(0, noise.get(site.place, 0.0001))).encode())

    world.act = act


def go(path: Path, made, told: Told | None = None) -> Counter[str]:
    """Run a session; gives how many good trials each environment has."""
    run_session(path, made, told)
    with RunStore(path / "run") as store:
        return Counter(str(trial.environment) for trial in store.trials())


def test_what_reached_the_target_leaves_and_the_rest_goes_on_with_its_baseline(world: World, tmp_path: Path):
    noisy(world, two=0.2)
    trials = go(tmp_path, study(SOLO, repetitions="target: 2%, max: 17"))
    assert trials == {"native": 17, "native-again": 17, "two": 17, "one": 10}


def test_what_is_precise_enough_and_undecided_goes_on_until_it_is_decided(world: World, tmp_path: Path):
    """A run of `weigh` ended undecided with time left: 1.6 % ± 1.9 % is neither a cost nor within ±3 %."""
    places = cycle([-1.5, 1.5, -1.2, 1.2, -0.9, 0.9, -0.6, 0.6, -0.3, 0.3])

    def act(site, command) -> Act:
        log = -0.016 + 0.025 * next(places) if site.place == "one" else 0.0
        return Act(stdout=repr(100 * math.exp(log)).encode())

    world.act = act
    trials = go(tmp_path, study(SOLO, repetitions="target: 2%"))
    assert trials["two"] == 10 < trials["one"] < 60, "what is decided leaves"
    with RunStore(tmp_path / "run") as store:
        (report,) = [each for each in analyse(store).metrics if each.headline]
    (row,) = [each for each in report.comparisons if each.environment == "one"]
    assert row.verdict in ("different", "equivalent") and row.cost is not None and row.cost.half_width < 0.016
    wide = go(tmp_path / "wide", study(SOLO, repetitions="target: 3%"))
    assert set(wide.values()) == {10}, "±3 % cannot prove that a cost is within ±3 %: nobody asked for that"


def test_a_look_is_on_the_scale_of_the_report(world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """What a host used is compared by difference, which has no relative width: no target is reached by it."""
    noisy(world)
    monkeypatch.setattr(world_module, "SPEED", HOST_WIDE)
    assert set(go(tmp_path, study(SOLO, repetitions="target: 2%, max: 13")).values()) == {13}
    with RunStore(tmp_path / "run") as store:
        scales = {row.cost.scale for report in analyse(store).metrics for row in report.comparisons if row.cost}
    assert scales == {"difference"}


HOST_WIDE = Metric("memory_usage", "MiB", "lower")


def test_a_large_effect_does_not_stop_a_run(world: World, tmp_path: Path):
    chance = random.Random(2)
    world.act = lambda site, command: Act(
        stdout=repr((10 if site.place == "one" else 100) * chance.lognormvariate(0, 0.2)).encode()
    )
    assert go(tmp_path, study(SOLO, repetitions="target: 1%, max: 13"))["one"] == 13


def test_a_continued_run_comes_to_the_same_schedule(world: World, tmp_path: Path):
    whole, part = tmp_path / "whole", tmp_path / "part"
    made = study(SOLO, repetitions="target: 2%, max: 17")

    def values(path: Path) -> list[tuple[object, ...]]:
        with RunStore(path / "run") as store:
            return [(trial.block, trial.environment) for trial in store.trials()]

    def interrupt(trial) -> None:
        if trial.block == 12:
            raise Interrupted(2)

    world.act = lambda site, command: Act(
        stdout=b"%d" % (100 + 40 * (site.place == "two") * (len(world.started) % 3))
    )
    go(whole, made)
    world.started.clear()
    with pytest.raises(Interrupted):
        go(part, made, Told(at_begin=interrupt))
    go(part, made)
    assert [block for block, _ in values(part)] == sorted(block for block, _ in values(part))
    assert Counter(values(part)) == Counter(values(whole)), "nothing is measured twice, and nothing is left out"


@pytest.mark.parametrize("why", [Interrupted(2), EnvironmentLost("one was lost"), DiskFull("no space left")])
def test_only_a_run_that_came_to_its_end_is_finished(world: World, tmp_path: Path, why: Exception):
    """An end that somebody may have chosen, by a signal or by stopping an engine, was taken for the planned one."""
    made = study(SOLO, blocks=7)

    def end(trial) -> None:
        if trial.block == 6:
            raise why

    with pytest.raises(type(why)):
        go(tmp_path, made, Told(at_begin=end))
    with RunStore(tmp_path / "run") as store:
        assert unfinished(store.info()) and plan_of(store).looks.interim
    go(tmp_path, made)
    with RunStore(tmp_path / "run") as store:
        assert not unfinished(store.info()) and plan_of(store).looks == Looks(1)


def test_a_signal_after_the_last_block_stops_nothing(world: World, tmp_path: Path):
    class Late(Told):
        def say(self, message: str) -> None:
            if message == "cleaning up":
                raise Interrupted(2)

    with pytest.raises(Interrupted):
        go(tmp_path, study(SOLO, blocks=6), Late())
    with RunStore(tmp_path / "run") as store:
        assert not unfinished(store.info())


# -- more blocks after looking ---------------------------------------------------------------------


def extended_to(path: Path, made, blocks: int) -> None:
    with RunStore(path / "run", writable=True) as store:
        extend(store, made.file.repetitions, blocks)


def test_a_run_is_extended_and_its_order_stays(world: World, tmp_path: Path):
    made = study(SOLO, blocks=10)
    first = Told()
    go(tmp_path, made, first)
    extended_to(tmp_path, made, 20)
    more = Told()
    assert set(go(tmp_path, made, more).values()) == {20}
    whole = Told()
    go(tmp_path / "whole", study(SOLO, blocks=20), whole)
    assert first.begun + more.begun == whole.begun
    with RunStore(tmp_path / "run") as store:
        (change,) = extensions(store.info())
        assert (change.planned, change.blocks, change.after) == (10, 20, 10)
        assert store.info()["study_text"] == made.text
        assert len(Precision(made, store).looks) == 2
        plan = plan_of(store)
        assert (plan.looks.total, plan.planned_blocks) == (2, 20)
    extended_to(tmp_path, made, 20)
    extended_to(tmp_path, made, 25)
    assert set(go(tmp_path, made).values()) == {25}
    with RunStore(tmp_path / "run") as store:
        assert [change.blocks for change in extensions(store.info())] == [20, 25]
        assert plan_of(store).looks.total == 3


def test_an_adaptive_run_that_reached_its_target_is_extended(world: World, tmp_path: Path):
    noisy(world, two=0.042)
    made = study(SOLO, repetitions="target: 2%, max: 60, budget: 1h")
    ended = max(go(tmp_path, made).values())
    assert 10 < ended < 60
    more = ended + 3
    extended_to(tmp_path, made, more)
    assert go(tmp_path, made) == {"native": more, "native-again": more, "two": more, "one": 13}
    with RunStore(tmp_path / "run") as store:
        (change,) = extensions(store.info())
        assert (change.planned, change.after) == (ended, ended)
        assert plan_of(store).looks.total > 1
    assert go(tmp_path, made)["native"] == more, "continued, it has nothing left to do"


def test_fewer_blocks_than_are_done_are_refused(world: World, tmp_path: Path):
    made = study(SOLO, blocks=4)
    go(tmp_path, made)
    with raises_sentence(RunDirectoryError):
        extended_to(tmp_path, made, 3)
    with RunStore(tmp_path / "run") as store:
        assert extensions(store.info()) == ()


def test_what_is_changed_before_the_first_trial_is_no_look(world: World, tmp_path: Path):
    made = study(SOLO, blocks=4)
    with RunStore(tmp_path / "run", writable=True) as store:
        store.begin(made, {"run_id": "0123456789ab"})
        extend(store, made.file.repetitions, 6)
        assert plan_of(store).looks.total == 1
    assert set(go(tmp_path, made).values()) == {6}


# -- others on the machine -------------------------------------------------------------------------

OTHERS = Flag(FlagCode.OTHER_WORK, figures={"cpus": 1.4})


def disturbed_session(path: Path, repetitions: str, *, flags: tuple[Flag, ...] = (OTHERS,)) -> Told:
    """A session whose every trial has these flags."""
    told = Told()
    with contextlib.suppress(TrialsFailed):
        run_session(
            path, study(SOLO, repetitions=repetitions), told, completed=lambda record: replace(record, flags=flags)
        )
    return told


def test_that_the_target_is_out_of_reach_beside_others_is_told_after_the_first_blocks(world: World, tmp_path: Path):
    noisy(world, native=0.2, two=0.2)
    told = disturbed_session(tmp_path, "target: 2%, max: 13")
    ((trials, found),) = told.noticed
    assert trials == 6 * 4 and isinstance(found, OutOfReach)
    assert (found.blocks, found.baseline, found.target, found.comparisons) == (6, "native", 0.02, 2)
    assert found.disturbance.trials == found.disturbance.disturbed == 12 and len(found.expected) == 2
    assert all(0.03 < least < most < 0.4 for least, most in found.expected) and not (found.other_run or found.polled)


def test_an_environment_without_a_result_is_not_told_of(world: World, tmp_path: Path):
    noisy(world, native=0.2)
    act = world.act
    world.act = lambda site, command: Act(returncode=1) if site.place == "two" else act(site, command)
    ((_, found),) = disturbed_session(tmp_path, "target: 2%, max: 10").noticed
    assert isinstance(found, OutOfReach) and (found.comparisons, len(found.expected)) == (1, 1)


def test_others_who_hinder_nothing_are_not_told_of(world: World, tmp_path: Path):
    noisy(world)
    assert disturbed_session(tmp_path, "target: 2%").noticed == []


def test_noise_without_others_is_no_fault_of_theirs(world: World, tmp_path: Path):
    noisy(world, native=0.2)
    assert disturbed_session(tmp_path, "target: 2%, max: 10", flags=()).noticed == []


# -- parts of a cost --------------------------------------------------------------------------------


def explaining(**costs: float):
    """A study whose environment ``one`` has the mechanisms a and b, of these costs in percent."""
    made = study(SOLO, repetitions="target: 2.9%, max: 60")
    (one,) = [arm for arm in made.arms if arm.name == "one"]
    off = {"one-without-a": ("a",), "one-without-b": ("b",), "one-bare": ("a", "b")}
    parts = [
        one.model_copy(update={"name": name, "explains": Explains(environment="one", off=each)})
        for name, each in off.items()
    ]
    kept = [arm for arm in made.arms if arm.name != "two"]
    mechanisms = tuple(
        DescribedMechanism(kind=kind, environment="one", title=kind, switched="", remedy="", source="")
        for kind in costs
    )
    return made.model_copy(update={"arms": (*kept, *parts), "mechanisms": mechanisms})


def test_large_mechanisms_are_settled_first_and_their_arms_rest(world: World, tmp_path: Path):
    """One of 20 % is decided as soon as it is precise; one near the margin goes on, with what it is compared with."""
    made, chance = explaining(a=20, b=3), random.Random(3)
    rates = {"one": 80 * 0.97, "one-without-a": 97, "one-without-b": 80, "one-bare": 100}

    def act(site, command) -> Act:
        return Act(stdout=repr(rates.get(site.place, 100) * chance.lognormvariate(0, 0.02)).encode())

    world.act = act
    trials = go(tmp_path, made)
    assert trials["one-without-a"] < trials["one-without-b"] == trials["one"]
    with RunStore(tmp_path / "run") as store:
        parts = [each.name for each in comparisons_of(made, made.cells[0]) if each.part]
        assert parts == ["one-without-a", "one-without-b", "one-bare"]
        precision = Precision(made, store)
        precision.look(10)
        assert precision.arms_of(made.cells[0]).count("one-without-a") == 0
