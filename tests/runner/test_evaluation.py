"""The time of a measured program by the clock of its site and by this machine's: both kept, and compared."""

import pytest

from weighbridge.model.command import Completed
from weighbridge.model.flag import Flag, FlagCode
from weighbridge.model.measurement import Outcome
from weighbridge.report.text.trial_flags import flag_text
from weighbridge.runner.evaluation import flag_clocks

from .test_trial import measure
from .world import Act, World, usual


@pytest.fixture
def world() -> World:
    return World(act=usual)


@pytest.mark.parametrize(
    ("outside_s", "flagged"), [(None, False), (0.2, False), (0.25, False), (0.27, True), (0.12, True), (2.0, True)]
)
def test_clocks_that_are_apart_are_flagged(world: World, outside_s: float | None, flagged: bool):
    record = measure(world, client=Act(clock_s=0.2, outside_s=outside_s))
    assert record.outcome is Outcome.OK
    found = [flag for flag in record.flags if flag.code == FlagCode.CLOCKS]
    assert bool(found) is flagged
    kept = [value for _, name, value in record.samples if name == "program_outside_s"]
    assert kept == ([] if outside_s is None else [outside_s])
    assert [role.duration_s for role in record.roles if role.role == "client"] == [0.2]
    for flag in found:
        assert flag.where == "client" and flag.figures["site_s"] == 0.2 and flag.figures["here_s"] == outside_s
        assert flag_text(flag).startswith("generator clocks disagree by ")


def test_the_way_to_a_far_site_is_no_clock_s():
    late = Completed(("x",), 0, b"", b"", 1.0, outside_s=1.2)
    assert flag_clocks("client", late, 0.0) and not flag_clocks("client", late, 0.0, round_trip_s=0.15)


def test_a_connection_that_broke_is_told_and_no_clock(world: World):
    record = measure(world, client=Act(clock_s=0.2, outside_s=4.2, disconnected_s=3.9))
    [told] = [flag for flag in record.flags if flag.code in (FlagCode.CLOCKS, FlagCode.CONNECTION_BROKE)]
    assert told == Flag(FlagCode.CONNECTION_BROKE, "client", {"seconds": 3.9})
    assert flag_text(told) == "generator connection lost for 3.9 s"
    assert not [value for _, name, value in record.samples if name == "program_outside_s"]
