"""The expected length of trials, held to the length that trials of finished runs had.

``data/trial_lengths.json`` has the trials of runs on a quiet machine with two CPUs, in their order: the place of the
cell, the environment, the seconds of the trial, and the seconds of its preparations in addition. It was written by
``python benchmarks/run_times.py --capture FILE --runs RUN ...`` from runs in ``docs/runs`` and
``tests/report/finished_runs``.
"""

import json
import random
from collections import Counter, defaultdict
from pathlib import Path
from statistics import mean
from typing import Any

import pytest

from weighbridge import registry
from weighbridge.model.address import ArmId
from weighbridge.model.level import Level
from weighbridge.model.options import STORED
from weighbridge.model.study import Arm, Cell, Study
from weighbridge.model.trial import Trial
from weighbridge.runner.estimate import TimeLeft, preparations_s, trial_s
from weighbridge.study.loader import check
from weighbridge.study.source import parse

RUNS: list[dict[str, Any]] = json.loads((Path(__file__).parent / "data/trial_lengths.json").read_text())
NAMES = [run["study"] for run in RUNS]
STUDY = """\
study: any
question: How long?
baseline: native
environments: {native: {kind: native}, other: {kind: netns}}
workloads: {cpu: {kind: sysbench-cpu}}
repetitions: {rounds: 10}
"""


def study_of(run: dict[str, Any]) -> Study:
    """Return a study with the arms and cells of a run."""
    arms = tuple(Arm(name=name, kind=kind, options=None) for name, kind in run["environments"].items())
    kinds = registry.workloads()
    cells = tuple(
        Cell(
            workload=each["workload"], kind=each["kind"], level=Level(each["level"].items()), sites=each["sites"],
            disk_speed=each["disk_speed"],
            options=kinds[each["kind"]].options.model_validate(each["options"], context={STORED: True}),
        )
        for each in run["cells"]
    )  # fmt: skip
    return check(parse(STUDY, "any.yaml")).model_copy(update={"arms": arms, "cells": cells})


def trials_of(run: dict[str, Any], study: Study) -> list[tuple[ArmId, float, float]]:
    """Return the trials of a run: the arm, the seconds, and the seconds of preparations."""
    return [(ArmId(study.cells[cell].id, arm), lasted, prepared) for cell, arm, lasted, prepared in run["trials"]]


@pytest.mark.parametrize("run", RUNS, ids=NAMES)
def test_trials_take_about_as_long_as_expected(run: dict[str, Any]):
    study = study_of(run)
    arms, cells = {arm.name: arm for arm in study.arms}, {cell.id: cell for cell in study.cells}
    lasted_s: dict[ArmId, list[float]] = defaultdict(list)
    for arm, seconds, _ in trials_of(run, study):
        lasted_s[arm].append(seconds)
    expected_s = {arm: trial_s(study, arms[arm.environment], cells[arm.cell]) for arm in lasted_s}
    ratios = {arm: mean(seconds) / expected_s[arm] for arm, seconds in lasted_s.items()}
    assert {arm: ratio for arm, ratio in ratios.items() if not 0.7 <= ratio <= 1.6} == {}
    whole = sum(map(mean, lasted_s.values())) / sum(expected_s.values())
    assert 0.85 <= whole <= 1.2


def test_preparations_take_about_as_long_as_expected():
    run = RUNS[NAMES.index("volume-vs-nfs")]
    study = study_of(run)
    expected_s = sum(preparations_s(study).values())
    assert 0.5 <= sum(prepared for _, _, prepared in trials_of(run, study)) / expected_s <= 1.5


@pytest.mark.parametrize("run", RUNS, ids=NAMES)
@pytest.mark.parametrize("seed", [None, 1, 2])
def test_the_forecast_of_a_running_run_does_not_jump(run: dict[str, Any], seed: int | None):
    study = study_of(run)
    trials = trials_of(run, study)
    if seed is not None:  # the rounds in another order, with the long first trials in front
        first = [trial for place, trial in enumerate(trials) if trial[0] not in {each[0] for each in trials[:place]}]
        random.Random(seed).shuffle(first)
        trials = first + [each for each in trials if each not in first]
    time, remaining = TimeLeft(study), Counter(arm for arm, _, _ in trials)
    left_s = sum(lasted + prepared for _, lasted, prepared in trials)
    for number, (arm, lasted, prepared) in enumerate(trials):
        if left_s > 30:
            assert 0.7 <= left_s / time.left_s(remaining) <= 1.5, f"after {number} of {len(trials)} trials"
        time.note(
            Trial(1, 0, arm.cell.workload, arm.cell.level, arm.environment), lasted + prepared, preparation_s=prepared
        )
        remaining[arm] -= 1
        left_s -= lasted + prepared
