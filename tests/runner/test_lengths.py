"""Trials that are made short: by a pilot block, which is not counted, and by times alone."""

import math
from collections import Counter
from dataclasses import replace
from itertools import count
from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sentences import raises_sentence
from weighbridge.analysis.analyse import analyse
from weighbridge.errors import Interrupted, RunDirectoryError
from weighbridge.model.decisions import TrialLength, chosen_length, length_text, lengths_of
from weighbridge.model.level import Level
from weighbridge.model.workload import Length, by_seconds
from weighbridge.report.export.json import report_json
from weighbridge.runner.lengths import ALIKE, Lengths, alike_rates
from weighbridge.runner.precision import PrecisionStatus
from weighbridge.store.reader import LENGTHS
from weighbridge.store.rows import PilotTrial
from weighbridge.store.run import RunStore
from weighbridge.workloads.nginx_wrk import NginxWrkOptions

from .world import SPEED, Act, FakeSite, FakeSolo, Load, Told, World, go, study, usual

SPEEDS = {"native": b"40", "native-again": b"40", "one": b"240", "two": b"4"}
ASKED, SHORT = "cpu: {kind: fake-solo, n: 400}", "target: 2%, within: 1h, min: 2, max: 3"


class Adjustable(FakeSolo):
    """``n`` is the amount of its work, its speed how much of it is done in a second."""

    def length(self, options: Load) -> Length:
        return Length(1.0, "n", lambda found: found[SPEED.name])


@pytest.fixture(autouse=True)
def _adjustable(world: World) -> None:
    world.workloads["fake-solo"] = Adjustable()
    world.act = speeds


def speeds(site, command) -> Act:
    return Act(stdout=SPEEDS[site.place]) if command.argv[0] == "solo" else usual(site, command)


def amounts(world: World) -> Counter[tuple[str, str]]:
    return Counter((place, argv[1]) for place, argv, _ in world.started if argv[0] == "solo")


def test_of_a_run_that_may_end_before_its_time_is_said_how_much_is_left_at_most(world: World, tmp_path: Path):
    """ "3 s left" was the time up to the next look."""
    told = go(tmp_path, study(ASKED, repetitions="target: 0.1%, within: 1h, min: 2, max: 40"))
    assert all(left.at_most for left in told.left) and all(0 <= left.last_s <= 3600 for left in told.left)
    first = next(number for number, trial in enumerate(told.begun) if trial.block == 1)
    (tmp_path / "last").mkdir()
    last = go(tmp_path / "last", study(ASKED, repetitions="target: 0.1%, within: 1h, min: 2, max: 2"))
    assert not any(each.at_most for each, trial in zip(last.left, last.begun, strict=True) if trial.block)
    assert told.left[first].last_s > 10 * last.left[first].last_s, "of 40 blocks, and of 2"


def test_each_environment_works_for_about_as_long(world: World, tmp_path: Path):
    told = go(tmp_path, study(f"{ASKED}, net: {{kind: fake}}", repetitions=SHORT))
    pilot = [trial for trial in told.begun if trial.block == 0]
    assert Counter(trial.workload for trial in pilot) == {"cpu": 4}, "of what can be made short alone"
    later = {"native": "40", "native-again": "40", "one": "240", "two": "4"}
    found = amounts(world)
    assert {key for key in found if key[1] != "400"} == {*later.items()}
    assert all(found[place, "400"] == 1 for place in later)
    with RunStore(tmp_path / "run") as store:
        (length,) = store.lengths()
        assert (length.workload, length.chosen_s) == ("cpu", 1.0)
        assert length.asked_s == pytest.approx((10 + 10 + 400 / 240 + 100) / 4)
        blocks = {trial.block for trial in store.trials()}
        assert 0 not in blocks and {value.block for value in store.values()} == blocks
        counted = {trial.id for trial in store.trials()}
        assert {each.trial for each in store.processes()} == counted >= {each.trial for each in store.samples()}
        assert len(store.pilot()) == 4 and len(store.finished()) == len(counted) + 4
        assert {row.cost.blocks for row in analyse(store).compared if row.cost} == {max(blocks)}
        assert [each["chosen_s"] for each in report_json(store)["trial_lengths"]] == [1.0]


@pytest.mark.parametrize("at", [2, 7])
def test_it_goes_on_with_the_same(world: World, tmp_path: Path, at: int):
    """Interrupted in the pilot block and after it: no trial of it is made again."""
    told, made = Told(interrupt_at=at), study(ASKED, repetitions=SHORT)
    with pytest.raises(Interrupted):
        go(tmp_path, made, told)
    again = go(tmp_path, made)
    whole = [trial for trial in (*told.begun[:-1], *again.begun) if trial.block == 0]
    assert sorted(trial.environment for trial in whole) == sorted(SPEEDS)
    assert {argv for place, argv in amounts(world) if place == "one"} == {"400", "240"}


@pytest.mark.parametrize(("step", "asked", "given"), [(1, 3.0, 3), (1, 1.4, 1), (0.1, 0.34, 0.3), (0.1, 0.7, 0.7)])
def test_programs_that_are_told_the_seconds(step: float, asked: float, given: float):
    length = by_seconds(2, "rate", step)
    rate = length.per_second({"rate": 12345.6})
    assert rate == 1 and length.per_second({"rate": 0.0}) is length.per_second({}) is None
    options = NginxWrkOptions.model_validate({"duration": "10s"})
    assert length.lasted_s(options, rate) == 10
    assert length.lasting(options, asked, rate).duration == given


@given(st.floats(0.01, 1e3), st.floats(0.01, 1e3), st.sampled_from([1.0, 50.0, 1234.5]), st.sampled_from([1, 0.1]))
def test_whole_steps_are_near_what_was_chosen(seconds: float, shortest_s: float, rate: float, step: float):
    length = Length(0.01, "n", lambda found: found["rate"], step=step)
    rounded = length.rounded(seconds, shortest_s, rate)
    assert rounded >= shortest_s - 1e-6
    assert abs(rounded - max(seconds, shortest_s)) <= step / rate + 1e-6
    assert rounded * rate / step == pytest.approx(round(rounded * rate / step))


def test_without_a_rate_everywhere_nothing_is_changed(world: World, tmp_path: Path):
    def first_fails(site, command) -> Act:
        begun = sum(argv[0] == "solo" and place == "one" for place, argv, _ in world.started)
        failed = command.argv[0] == "solo" and site.place == "one" and begun == 1
        return Act(returncode=1, stderr=b"it broke") if failed else speeds(site, command)

    world.act = first_fails
    go(tmp_path, study(ASKED, repetitions=SHORT))
    assert {argv for _, argv in amounts(world)} == {"400"}
    with RunStore(tmp_path / "run") as store:
        assert store.lengths() == () and LENGTHS in store.info()
        assert {trial.outcome for trial in store.trials()} == {"ok"}, "what failed in the pilot is no failed trial"


def test_the_time_ends_it(world: World, tmp_path: Path):
    told = go(tmp_path, study(ASKED, repetitions="target: 2%, within: 1ms"))
    assert max(trial.block for trial in told.begun) == 1 and "the time is up" in told.lines


@pytest.mark.parametrize("sql", ["DELETE FROM measurement WHERE trial <= 4", "DELETE FROM trial WHERE block = 0"])
def test_a_damaged_pilot_is_told(world: World, tmp_path: Path, sql: str):
    go(tmp_path, study(ASKED, repetitions=SHORT))
    with RunStore(tmp_path / "run", writable=True) as store:
        store._db.execute("PRAGMA foreign_keys = OFF")
        store._db.execute("DELETE FROM trial WHERE block > 1")
        store._db.execute(sql)
    with raises_sentence(RunDirectoryError):
        go(tmp_path, study(ASKED, repetitions=SHORT))


TIMES = st.floats(1e-3, 1e3)


@given(between=TIMES, within=TIMES, beside_s=TIMES, other_s=TIMES, warm_up=st.floats(0, 10))
def test_no_other_length_is_more_than_twice_as_good(
    between: float, within: float, beside_s: float, other_s: float, warm_up: float
):
    """For any spread between starts and within trials; where neither bound is in the way."""

    def time_to_a_precision(length_s: float) -> float:
        return (between**2 + within**2 / length_s) * ((1 + warm_up) * length_s + beside_s)

    chosen_s = chosen_length(1e6, 1e-6, beside_s, warm_up)
    assert time_to_a_precision(chosen_s) <= 2.0000001 * time_to_a_precision(other_s)


@given(asked_s=TIMES, shortest_s=TIMES, beside_s=TIMES)
def test_bounds(asked_s: float, shortest_s: float, beside_s: float):
    chosen_s = chosen_length(asked_s, shortest_s, beside_s)
    assert chosen_s <= asked_s and (chosen_s >= shortest_s or chosen_s == asked_s)


def test_a_length_in_words():
    each = TrialLength(workload="redis", level='{"clients": "50"}', asked_s=0.374, chosen_s=0.131, beside_s=0.1309)
    assert length_text(each) == "redis (clients=50): 0.13 s instead of 0.37 s, plus 0.13 s of overhead"


def test_what_the_time_allows():
    """The width falls with the square root of the blocks; what may be within reach has no other expectation.

    ±4 % of ten blocks made ±2 % "out of reach" in 39 of them, as forty would do by the square root; so would ten of a
    few runs in a hundred.
    """
    far = PrecisionStatus("c", "e", 0.04, False, 40, blocks=10, target=0.02)
    least, most = far.after(11) or (0.0, 0.0)
    assert 0.02 < least < 1.04 ** (10 / 11) ** 0.5 - 1 < most
    assert far.after(39) is None
    assert PrecisionStatus("c", "e", 0.01, True, 10, blocks=10, target=0.02).after(10) is None
    assert PrecisionStatus("c", "e", float("inf"), False, None, target=0.02).after(11) is None


def test_when_a_target_is_reached_has_two_ends_and_both_are_looks():
    wide = PrecisionStatus("c", "e", 0.04, False, 39, blocks=10, target=0.02)
    assert wide.with_time(10, (13, 17, 22, 28, 35, 44, 60, 76), 2.0).needed_s == (2.0 * 12, 2.0 * 66)
    assert wide.with_time(10, (13, 17, 22, 28), 2.0).needed_s == (2.0 * 12, math.inf), "there may be too few looks"
    assert wide.with_time(20, (22, 28, 40, 90), 2.0).needed_s == (2.0 * 8, 2.0 * 70), "some blocks are without it"
    for other in (replace(wide, reached=True), replace(wide, target=None), replace(wide, width=math.inf)):
        assert other.with_time(10, (13, 17), 2.0).needed_s is None


@pytest.mark.parametrize(
    ("resources", "throttled_s", "chosen_s"),
    [
        ("{cpus: 0.5, cpu_period: 50ms}", 40.0, 5.0),
        ("{cpus: 0.5, cpu_period: 50ms}", None, 5.0),
        ("{cpus: 1}", 0.0, 1.0),
        ("{memory: 1GiB}", None, 1.0),
    ],
)
def test_a_trial_that_is_throttled_works_for_many_periods_of_the_limit(
    world: World,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    resources: str,
    throttled_s: float | None,
    chosen_s: float,
):
    """It finds the quota of one period unused, which is all the work of a trial as long as that."""
    metered = {} if throttled_s is None else {"throttled_s": throttled_s}
    seen = count()
    monkeypatch.setattr(FakeSite, "meters", lambda _: {k: v * next(seen) for k, v in metered.items()})
    go(tmp_path, study(ASKED, more=f"resources: {resources}", repetitions=SHORT))
    with RunStore(tmp_path / "run") as store:
        assert [each.chosen_s for each in store.lengths()] == [chosen_s]


@pytest.mark.parametrize(
    ("shortens", "chosen_s", "beside_s"), [(True, 67 / 40, 2 + 0.2 * 67 / 40), (False, 4.0, 4.0)]
)
def test_a_warm_up_that_shortens_with_its_trial_is_no_time_beside_it(
    world: World, monkeypatch: pytest.MonkeyPatch, shortens: bool, chosen_s: float, beside_s: float
):
    """Of 14 s it worked for 10, after a warm-up of 2."""
    length = Length(1.0, "n", lambda found: found["speed"], shortens_warm_up=shortens)
    monkeypatch.setattr(Adjustable, "length", lambda *_: length)
    made, kept = study(ASKED, repetitions=SHORT), dict[str, str]()
    pilot = [PilotTrial("cpu", Level(), arm.name, 14.0, 2.0, 0.0, {"speed": 40.0}) for arm in made.arms]
    store = SimpleNamespace(
        pilot=lambda: pilot, set_info=kept.__setitem__, lengths=lambda: lengths_of(kept.get(LENGTHS, "[]"))
    )
    (found,) = Lengths(made, store).choose()  # type: ignore[arg-type]
    assert (found.asked_s, found.chosen_s, found.beside_s) == pytest.approx((10.0, chosen_s, beside_s))


def test_a_run_whose_time_is_over_measures_no_more_when_it_is_called_again(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    made = study(ASKED, repetitions="target: 0.1%, within: 2s, min: 2")
    clock = count(0, 0.002)
    monkeypatch.setattr("weighbridge.runner.session.time.monotonic", lambda: next(clock))
    go(tmp_path, made)
    with RunStore(tmp_path / "run") as store:
        before = len(store.trials())
    assert before > 0
    told = go(tmp_path, made)
    with RunStore(tmp_path / "run") as store:
        assert len(store.trials()) == before
    assert not told.begun


def test_rates_of_a_pilot_that_are_nearly_alike_give_one_amount():
    same = {"native": "native", "again": "native", "bridge": "bridge", "gvisor": "gvisor"}
    found = alike_rates({"native": 100, "again": 130, "bridge": 40, "gvisor": 7}, same)
    assert found["native"] == found["again"] == found["bridge"] and 40 < found["native"] < 130
    assert found["gvisor"] == 7


@given(st.lists(st.floats(0.01, 1e6), min_size=1, max_size=8))
def test_no_amount_is_further_from_its_pilot_than_rates_that_count_as_alike(rates: list[float]):
    given_rates = {str(number): rate for number, rate in enumerate(rates)}
    found = alike_rates(given_rates, {name: name for name in given_rates})
    assert all(1 / (ALIKE + 1e-4) <= found[name] / rate <= ALIKE + 1e-4 for name, rate in given_rates.items())
    assert sorted(found, key=lambda each: given_rates[each]) == sorted(
        found, key=lambda each: (found[each], given_rates[each])
    )
