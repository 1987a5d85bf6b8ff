"""The phases of a run do not overlap, and the set-ups of environments are counted next to them."""

from itertools import count

import pytest

from weighbridge.cli.timing import timing_rows
from weighbridge.model.timing import Phase, Timing


def timing_of(before_s: float) -> Timing:
    """A timing whose clock is one second later at each reading."""
    seconds = count()
    return Timing(before_s, lambda: float(next(seconds)))


def test_a_phase_within_another_is_counted_once():
    timing = timing_of(10.0)  # at 0
    with timing.phase(Phase.TRIALS), timing.phase(Phase.SET_UP), timing.environment("netns"):  # at 1, 2, 3
        pass  # 4, 5 and 6
    timing.begin(Phase.CLEANUP)  # at 7
    assert timing.phases == {
        Phase.START: 10.0, Phase.PREPARATION: 2.0, Phase.SET_UP: 3.0, Phase.TRIALS: 2.0, Phase.CLEANUP: 1.0,
    }  # fmt: skip
    assert timing.environments == {"netns": 1.0}


def test_the_first_estimate_is_noted_once():
    timing = timing_of(2.0)
    assert timing.first_estimate_s is None
    timing.note_estimate()
    timing.note_estimate()
    assert timing.first_estimate_s == 3.0


def test_the_table_has_each_environment_below_the_set_up_and_ends_with_the_total():
    timing = timing_of(1.0)
    with timing.phase(Phase.SET_UP), timing.environment("native"), timing.environment("netns"):
        pass
    timing.note_estimate()
    names = [name for name, _ in timing_rows(timing)]
    assert names == [
        "start of the program", "checks and facts", "set-up", "  of netns (overlaps)", "  of native (overlaps)",
        "total", "first estimate after",
    ]  # fmt: skip


def test_a_failed_phase_ends():
    timing = Timing()
    with pytest.raises(ValueError), timing.phase(Phase.PILOT):
        raise ValueError
    timing.begin(Phase.REPORT)
    assert {*timing.phases} == {Phase.START, Phase.PREPARATION, Phase.PILOT, Phase.REPORT}
