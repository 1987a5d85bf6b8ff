"""What is lost in the midst of a trial ends the run, and never the trial's record."""

from collections import Counter
from contextlib import ExitStack
from pathlib import Path

import pytest

from weighbridge.errors import EnvironmentLost
from weighbridge.model.measurement import Outcome
from weighbridge.model.site import Neighbourhood
from weighbridge.runner.sites import Sites

from .world import FakeSite, World, finished, go, study

pytestmark = pytest.mark.measures  # its programs last by the clock
SOLO = "cpu: {kind: fake-solo}"


def test_a_companion_that_ends_in_a_trial_leaves_its_record(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    def require() -> None:
        if len(world.started) == 3:
            raise EnvironmentLost(
                "supporting service counter exited with code 137 while it was measured: it printed nothing"
            )

    really_open = Sites.open_all

    def open_all(sites: Sites, stack: ExitStack) -> None:
        really_open(sites, stack)
        sites.neighbourhood = Neighbourhood("n", "192.0.2.0/24", "wb-c", {}, {}, require)

    monkeypatch.setattr(Sites, "open_all", open_all)
    with pytest.raises(EnvironmentLost) as lost:
        go(tmp_path, study(SOLO))
    assert "supporting service counter exited with code 137" in str(lost.value)
    assert Counter(finished(tmp_path).values()) == {Outcome.OK: 2, Outcome.ENVIRONMENT_LOST: 1}
    assert world.left() == []


@pytest.mark.parametrize("read", [1, 2, 3, 4], ids=str)
def test_a_host_whose_counters_are_lost_at_any_time_leaves_the_trials_record(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, read: int
):
    """A trial that had ended is good; one whose host goes before that is recorded as lost."""
    reads = 0

    def meters(_: FakeSite) -> dict[str, float]:
        nonlocal reads
        reads += 1
        if reads >= read:
            raise EnvironmentLost("lost the connection to host b: its sshd was killed")
        return {"cpu_s": 1.0}

    monkeypatch.setattr(FakeSite, "meters", meters)
    with pytest.raises(EnvironmentLost):
        go(tmp_path, study(SOLO))
    outcomes = [*finished(tmp_path).values()]
    assert outcomes[-1] is Outcome.ENVIRONMENT_LOST and len(outcomes) <= 2
