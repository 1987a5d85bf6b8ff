"""What is expected of a study before it runs: how often its meters read."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from weighbridge.analysis.plan import meters_hz
from weighbridge.meters.kernel import KernelMeter
from weighbridge.model.study import Repetitions, Study
from weighbridge.runner.estimate import blocks_in_time, forecast, meter_hz, seconds, too_little_time
from weighbridge.runner.preflight import warnings
from weighbridge.store.run import RunStore

from .world import FakeWorkload, World, go, study


@pytest.mark.parametrize(("trial_s", "hz"), [(0.0, 10), (1.0, 10), (4.0, 5), (15.0, 2), (20.0, 1), (300.0, 1)])
def test_meters_follow_the_length_of_the_trials(world: World, monkeypatch: pytest.MonkeyPatch, trial_s, hz):
    monkeypatch.setattr(FakeWorkload, "expected_s", lambda *_: trial_s)
    made = study()
    read = made.file.meters.model_copy(update={"source": "kernel"})
    assert meter_hz(made.model_copy(update={"file": made.file.model_copy(update={"meters": read})})) == hz


def test_what_a_study_asks_of_its_meters_holds(world: World):
    made = study()
    for source, asked, hz in (("kernel", 0.5, 0.5), ("kernel", 3, 3), ("sysstat", "auto", 1)):
        meters = made.file.meters.model_copy(update={"source": source, "hz": asked})
        assert meter_hz(made.model_copy(update={"file": made.file.model_copy(update={"meters": meters})})) == hz


def test_the_shortest_trial_counts_and_the_run_keeps_the_rate(
    world: World, tmp_path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(FakeWorkload, "expected_s", lambda _, options: float(options.n))
    monkeypatch.setattr(KernelMeter, "begin", lambda *_: pytest.fail("source: off"))
    made = study("cpu: {kind: fake-solo, n: [8, 30]}", blocks=1)
    go(tmp_path, made)
    with RunStore(tmp_path / "run") as store:
        assert meters_hz(store) == meter_hz(made) == 3


def test_a_time_that_is_too_short_for_the_fewest_blocks_is_told(world: World, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(FakeWorkload, "expected_s", lambda *_: 10.0)
    whole = study(blocks=12)
    short, long = (_within(whole, limit_s) for limit_s in (30.0, 7200.0))
    assert too_little_time(whole) is None and too_little_time(long) is None and not warnings(long)
    given_s, needed_s = too_little_time(short) or (0.0, 0.0)
    assert given_s == 30 and needed_s == seconds(long)[0] > 240
    assert seconds(short) == (30, 30)
    assert [each for each in warnings(short) if "12 rounds" in each]


def test_the_blocks_that_a_time_holds_are_counted_by_trials_as_long_as_they_are_written(
    world: World, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(FakeWorkload, "expected_s", lambda *_: 10.0)
    whole = study(blocks=12)
    assert blocks_in_time(whole) == 12
    few, many = (blocks_in_time(_within(whole, limit_s)) for limit_s in (600.0, 1200.0))
    assert 2 < few < many <= 2 * few + 1
    assert blocks_in_time(_within(whole, 1.0)) == 1


def _within(made: Study, limit_s: float) -> Study:
    repetitions = Repetitions.model_validate({"target": "2%", "min": 12, "budget": f"{limit_s}s"})
    return made.model_copy(update={"file": made.file.model_copy(update={"repetitions": repetitions})})


@given(
    done=st.integers(0, 2), further=st.integers(1, 2), more=st.integers(1, 2), limit_s=st.integers(-1, 12),
    block_s=st.integers(1, 3), rest_s=st.integers(0, 2),
)  # fmt: skip
def test_no_more_time_is_promised_than_the_limit_leaves_but_for_the_block_that_runs(
    done: int, further: int, more: int, limit_s: int, block_s: int, rest_s: int
):
    looks = [(done + blocks, float(rest_s + blocks * block_s)) for blocks in (further, further + more)]
    found = forecast(done, looks, limit_s, block_s, rest_s)
    assert 0 <= found.first_s <= found.last_s and done <= found.last_blocks <= looks[-1][0]
    assert (found.ends_by == "blocks") == (looks[-1][1] <= limit_s)
    assert (found.ends_by == "block") == (limit_s < rest_s)
    assert found.last_s == {"blocks": looks[-1][1], "limit": limit_s, "block": rest_s}[found.ends_by]
    assert (found.last_blocks - done) * block_s < max(limit_s - rest_s, 0) + block_s
    assert found.first_s == (looks[0][1] if looks[0][1] <= limit_s else found.last_s)
