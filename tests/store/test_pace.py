"""How fast a run goes, with what comes between its trials."""

from types import SimpleNamespace

import pytest

from weighbridge.store.pace import BREAK_S, pause_s


def trials(*spans: tuple[float, float]):
    return [SimpleNamespace(started_at=at, duration_s=duration) for at, duration in spans]


def test_what_comes_between_trials_counts_and_a_later_session_does_not():
    assert pause_s(trials((0.0, 1.0), (1.5, 1.0), (2.6, 1.0))) == pytest.approx(0.3)
    assert pause_s(trials((2.6, 1.0), (0.0, 1.0), (1.5, 1.0))) == pytest.approx(0.3), "whatever their order"
    later = 3.0 + BREAK_S
    assert pause_s(trials((0.0, 1.0), (1.5, 1.0), (later, 1.0), (later + 1.5, 1.0))) == pytest.approx(0.5)


@pytest.mark.parametrize("rows", [trials(), trials((5.0, 1.0)), trials((0.0, 1.0), (0.5, 1.0))])
def test_there_may_be_no_pause(rows):
    assert pause_s(rows) == 0
