"""The forecast of a continued run."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from weighbridge.model.address import ArmId
from weighbridge.model.measurement import Outcome
from weighbridge.model.trial import RoleRecord, Trial, TrialRecord
from weighbridge.runner.estimate import preparations_s
from weighbridge.runner.forecaster import Forecaster
from weighbridge.store.run import RunStore
from weighbridge.study.loader import check
from weighbridge.study.source import parse

STUDY = """\
study: any
question: How long?
baseline: native
environments: {native: {kind: native}, netns: {kind: netns}}
workloads: {pg: {kind: pgbench}}
repetitions: {rounds: 10}
"""


@pytest.mark.parametrize(("in_trials", "expected_s"), [(True, 30.0), (False, None)])
def test_a_continued_run_prepares_its_new_sites_again(tmp_path: Path, in_trials: bool, expected_s: float | None):
    """A preparation in the pilot round is in no trial that counts. Then the plan is the only estimate."""
    study = check(parse(STUDY, "any.yaml"))
    cell, arms = study.cells[0], [arm.name for arm in study.arms]
    with RunStore(tmp_path, writable=True) as store:
        store.begin(study, {})
        at_s = 1000.0
        for block in (1, 2, 3):
            for arm in arms:
                first = in_trials and block == 1
                roles = tuple(
                    RoleRecord(role, (), 0, seconds, b"", b"")
                    for role, seconds in [("preparation", 30.0)] * first + [("client", 8.0)]
                )
                trial = Trial(block, 0, cell.workload, cell.level, arm)
                taken_s = 40.0 if first else 10.0
                store.save(TrialRecord(trial, Outcome.OK, at_s, taken_s, 8.0, roles=roles))
                at_s += taken_s
        walk, lengths = SimpleNamespace(study=study), SimpleNamespace(trial_s=lambda _: None)
        unused: Any = None
        forecaster = Forecaster(walk, unused, lengths, timed=True)  # type: ignore[arg-type]
        forecaster.note_earlier(store)
    planned_s = {key.environment: value for key, value in preparations_s(study).items()}
    left = {arm: forecaster.time.left_s({ArmId(cell.id, arm): 7}) - 70.0 for arm in arms}
    assert left == pytest.approx({arm: expected_s or planned_s[arm] for arm in arms})
    assert forecaster.trial_s == pytest.approx(10.0)

    forecaster.time.note(Trial(4, 0, cell.workload, cell.level, arms[0]), 40.0, preparation_s=30.0)
    assert forecaster.time.left_s({ArmId(cell.id, arms[0]): 6}) == pytest.approx(60.0), "prepared in this session"
