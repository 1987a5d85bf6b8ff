"""What the terminal says while a run goes on."""

import pytest

from sentences import assert_sentence
from weighbridge.cli.progress import Shown
from weighbridge.model.disturbance import disturbance_of
from weighbridge.model.flag import Flag, FlagCode
from weighbridge.runner.precision import OutOfReach

OTHERS = Flag(FlagCode.OTHER_WORK, figures={"cpus": 1.4})
STEAL = Flag(FlagCode.STEAL, figures={"share": 0.2})


@pytest.mark.parametrize(("flags", "more"), [((OTHERS,), {"beside": True}), ((OTHERS, STEAL), {"beside": False})])
def test_that_others_put_the_target_out_of_reach_is_a_sentence(flags, more, capsys):
    found = OutOfReach(disturbance_of([flags] * 10), "native", 5, 0.02, (0.041, 0.12), 3, **more)
    Shown(None).others_noticed(found)
    assert_sentence(capsys.readouterr().err)
