"""The end of a run: interim looks, the study's time, and the time for further rounds. No process is needed."""

import math
from collections.abc import Iterable
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from weighbridge.runner.stopper import NextStep, ShortTime, Stopper

SECONDS = st.integers(-2, 25).map(float)
LOOKS = st.sets(st.integers(1, 9), min_size=1, max_size=4).map(lambda looks: tuple(sorted(looks)))
DURATIONS = st.lists(st.integers(1, 4).map(float), min_size=9, max_size=9)
SHORT: st.SearchStrategy[ShortTime] = st.sampled_from(["keep", "refuse", "extend"])


@st.composite
def stoppers(draw: st.DrawFn) -> Stopper:
    ends = st.just(math.inf) | SECONDS
    return Stopper(draw(LOOKS), draw(SHORT), study_ends=draw(ends), session_ends=draw(ends))


def walked(stopper: Stopper, durations: Iterable[float]) -> tuple[list[NextStep], float]:
    """Return what followed each round of these durations, from 0 s on, and when the last one ended."""
    steps, now = [NextStep.CONTINUE], 0.0
    for blocks, duration in enumerate(durations, 1):
        if steps[-1] is NextStep.STOP or blocks > stopper.looks[-1]:
            break
        now += duration
        steps.append(stopper.after_round(blocks, now))
    return steps[1:], now


@given(LOOKS, SHORT)
def test_without_a_limit_a_run_looks_at_each_look_and_nothing_stops_it(looks: tuple[int, ...], short: ShortTime):
    steps, _ = walked(Stopper(looks, short), [1.0] * 50)
    assert [number for number, step in enumerate(steps, 1) if step is NextStep.LOOK] == [*looks]
    assert len(steps) == looks[-1] and NextStep.STOP not in steps


@pytest.mark.parametrize("short", ["keep", "refuse"])
@pytest.mark.parametrize("limit", ["study_ends", "session_ends"])
@given(looks=LOOKS, ends=SECONDS, durations=DURATIONS)
def test_a_run_stops_after_the_round_that_is_running_when_the_time_is_over(
    short: ShortTime, limit: str, looks: tuple[int, ...], ends: float, durations: list[float]
):
    steps, ended = walked(replace(Stopper(looks, short), **{limit: ends}), durations)
    late = (number for number in range(1, 10) if sum(durations[:number]) > ends)
    assert len(steps) == min(looks[-1], next(late, 9))
    assert (steps[-1] is NextStep.STOP) == (ended > ends)


@given(stoppers(), DURATIONS)
def test_extend_waits_for_the_first_look_unless_the_session_ends(stopper: Stopper, durations: list[float]):
    patient = replace(stopper, short_time="extend", session_ends=math.inf)
    steps, ended = walked(patient, durations)
    ends = (number for number in range(1, 10) if sum(durations[:number]) > patient.study_ends)
    assert len(steps) == min(patient.looks[-1], max(patient.looks[0], next(ends, 9)))
    assert (steps[-1] is NextStep.STOP) == (ended > patient.study_ends)
    steps, ended = walked(replace(patient, session_ends=0.0), durations)
    assert steps == [NextStep.STOP] and not replace(patient, session_ends=0.0).may_extend(ended)


@given(stoppers(), st.integers(1, 9), SECONDS, st.integers(0, 9), st.integers(0, 10))
def test_what_stops_a_run_stops_it_later_too(stopper: Stopper, blocks: int, now: float, later: int, more: int):
    if stopper.after_round(blocks, now) is NextStep.STOP:
        assert stopper.after_round(blocks + more, now + later) is NextStep.STOP


@given(stoppers(), st.integers(1, 9), SECONDS, st.integers(0, 9))
def test_opening_the_sites_takes_none_of_the_study_s_time(stopper: Stopper, blocks: int, now: float, took: int):
    alone = replace(stopper, session_ends=math.inf)
    before, left_s = alone.after_round(blocks, now), alone.left_s(now)
    alone.postpone(took)
    assert (alone.after_round(blocks, now + took), alone.left_s(now + took)) == (before, left_s)
    session = replace(stopper, study_ends=math.inf)
    left_s = session.left_s(now)
    session.postpone(took)
    assert session.left_s(now) == left_s, "the session's time goes on"


@given(stoppers(), LOOKS, st.integers(1, 9), SECONDS)
def test_an_extension_is_limited_by_the_session_s_time_alone(
    stopper: Stopper, looks: tuple[int, ...], blocks: int, now: float
):
    stopper.restart(looks)
    assert not stopper.is_late(blocks, now) and stopper.left_s(now) == stopper.session_ends - now
    expected = (
        NextStep.STOP if now > stopper.session_ends else NextStep.LOOK if blocks in looks else NextStep.CONTINUE
    )
    assert stopper.after_round(blocks, now) is expected
    assert stopper.may_extend(now) == (now < stopper.session_ends)
