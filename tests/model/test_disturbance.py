"""What others took in the trials of a run, and when two runs are disturbed alike."""

import pytest

from weighbridge.model.disturbance import Disturbance, Taken, disturbance_of
from weighbridge.model.flag import Flag, FlagCode


def others(cpus, where=""):
    return Flag(FlagCode.OTHER_WORK, where, {"cpus": cpus})


def steal(share, where=""):
    return Flag(FlagCode.STEAL, where, {"share": share})


def test_what_others_took_is_told_with_its_range_and_its_mean_over_all_trials():
    found = disturbance_of([[others(0.8), steal(0.1)], [others(1.6)], [Flag(FlagCode.IO_PRESSURE)], []])
    assert found == Disturbance(
        4,
        2,
        (
            Taken(FlagCode.OTHER_WORK, "", 2, 0.8, 1.6, pytest.approx(0.6)),
            Taken(FlagCode.STEAL, "", 1, 0.1, 0.1, 0.025),
        ),
    )
    assert not found.heavy and disturbance_of([[others(0.8)]]).heavy
    assert disturbance_of([]) == Disturbance() and not Disturbance().heavy


def test_the_hypervisor_of_another_host_is_none_of_the_others():
    assert disturbance_of([[steal(0.3, "host b")]]) == Disturbance(1)
    assert disturbance_of([[others(1.0, "host b")]]).taken[0].host == "host b"


@pytest.mark.parametrize(
    ("one", "other", "alike"),
    [
        ([[others(1.4)]], [[others(1.0)]], True),
        ([[others(1.4)]], [[]], False),
        ([[others(0.8)]], [[], []], False),
        ([[others(1.8)]], [[others(1.8)], []], False),
        ([[steal(0.04)]], [[]], True),
        ([[steal(0.2)]], [[steal(0.02)]], False),
        ([[others(1.0)]], [[others(1.0, "host b")]], False),
    ],
)
def test_two_runs_are_disturbed_alike_where_others_took_about_as_much(one, other, alike):
    first, second = disturbance_of(one), disturbance_of(other)
    assert first.alike(second) is second.alike(first) is alike
