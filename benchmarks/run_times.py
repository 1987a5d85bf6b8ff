"""How long runs take, compared with their forecasts.

    python benchmarks/run_times.py [STUDY[:PROFILE] ...]
    python benchmarks/run_times.py --runs RUN ...
    python benchmarks/run_times.py --capture FILE --runs RUN ...

Without runs, it prints the forecast of each bundled study and profile: set-up, trials of the fewest and most rounds.
A root filesystem or guest that is not in the cache belongs to the set-up. ``WEIGHBRIDGE_CACHE`` names another cache.

With runs, it prints for each run the forecast, the real time and their ratio, as a whole and by workload and
environment. The set-up is the time until the sites are open, and the time to close them. Preparations of data belong
to the trials.
``--capture`` writes the lengths of the trials to the file that `tests/runner/test_trial_lengths.py` reads.
"""

import argparse
import json
import re
import tempfile
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import mean
from typing import Any, NamedTuple

from weighbridge.errors import WeighbridgeError
from weighbridge.model.address import ArmId
from weighbridge.model.trial import PREPARATION
from weighbridge.runner import estimate, planned
from weighbridge.runner.estimate import clock
from weighbridge.runner.run import study_of
from weighbridge.runner.set_up_time import set_up_s
from weighbridge.store.run import DATABASE, RunStore
from weighbridge.study import profiles, source


class Lasted(NamedTuple):
    """One trial of the length that its study says."""

    arm: ArmId
    seconds: float
    """Without its preparation."""
    preparation_s: float


class Reality(NamedTuple):
    """How long a run took: its set-up with its end, and all its trials with the pauses between them."""

    set_up_s: float
    trials_s: float


@contextmanager
def opened(run: Path) -> Iterator[RunStore]:
    """Open a run directory, or the database of a run alone."""
    with tempfile.TemporaryDirectory() as folder:
        directory = run
        if run.is_file():
            directory = Path(folder)
            (directory / DATABASE).write_bytes(run.read_bytes())
        with RunStore(directory) as store:
            yield store


def reality(store: RunStore) -> Reality:
    """Return the duration of a run that was not interrupted."""
    begun, ended = float(store.info()["created"]), max(each.started_at + each.duration_s for each in store.trials())
    opened_at, closed_at = (
        min((at for scope, _, _, at in store.facts() if scope == name), default=ended) for name in ("during", "after")
    )
    return Reality(opened_at - begun + closed_at - ended, ended - opened_at)


def lasted(store: RunStore) -> Iterator[Lasted]:
    """Yield the trials in their order. If a pilot chose a workload's length, yield the pilot's."""
    spent_s: dict[int, float] = defaultdict(float)
    for process in store.processes():
        if process.role.partition(" ")[0] == PREPARATION:
            spent_s[process.trial] += process.duration_s
    chosen = {each.cell for each in store.lengths()}
    for pilot in store.pilot():
        yield Lasted(pilot.arm, pilot.duration_s, 0.0)
    for trial in store.trials():
        if trial.cell not in chosen:
            prepared_s = min(spent_s[trial.id], max(0.0, trial.duration_s - (trial.measured_s or 0.0)))
            yield Lasted(ArmId(trial.cell, trial.environment), trial.duration_s - prepared_s, prepared_s)


def by_arm(trials: list[Lasted]) -> dict[ArmId, float]:
    """Return the mean seconds of the trials of each arm."""
    seconds: dict[ArmId, list[float]] = defaultdict(list)
    for each in trials:
        seconds[each.arm].append(each.seconds)
    return {arm: mean(each) for arm, each in seconds.items()}


def captured(run: Path) -> dict[str, Any]:
    """Return the lengths of a run's trials as JSON."""
    with opened(run) as store:
        study, trials = study_of(store), list(lasted(store))
        machine = {key: value for scope, key, value, _ in store.facts() if scope == "host" and key in ("CPU", "CPUs")}
        places = {cell.id: place for place, cell in enumerate(study.cells)}
        return {
            "study": study.file.study,
            "machine": machine,
            "environments": {arm.name: arm.kind for arm in study.arms},
            "cells": [
                {"workload": cell.workload, "level": cell.level.factors, "kind": cell.kind, "sites": cell.sites,
                 "disk_speed": cell.disk_speed, "options": cell.options.model_dump(mode="json")}
                for cell in study.cells
            ],
            "trials": [
                [places[each.arm.cell], each.arm.environment, round(each.seconds, 3), round(each.preparation_s, 3)]
                for each in trials
            ],
        }  # fmt: skip


def print_run(run: Path) -> None:
    """Print the forecast and the reality of a run."""
    with opened(run) as store:
        study = planned.without_left_out(study_of(store), store.left_out())
        trials, real = list(lasted(store)), reality(store)
    least_s, most_s = estimate.seconds(study)
    ready_s = set_up_s(study)
    print(f"{study.file.study} ({run}): seconds by forecast, in reality, ratio")
    _row("set-up, with the present cache", ready_s, ready_s, real.set_up_s)
    _row("trials", least_s, most_s, real.trials_s)
    _row("all", ready_s + least_s, ready_s + most_s, real.set_up_s + real.trials_s)
    arms, cells = {arm.name: arm for arm in study.arms}, {cell.id: cell for cell in study.cells}
    for arm, seconds in by_arm(trials).items():
        expected = estimate.trial_s(study, arms[arm.environment], cells[arm.cell])
        _row(f"  a trial of {cells[arm.cell].label} in {arm.environment}", expected, expected, seconds)


def _row(what: str, least_s: float, most_s: float, real_s: float) -> None:
    """Print a row. The ratio of a duration within the forecast is 1."""
    ratio = real_s / min(max(real_s, least_s), most_s) if most_s else 0.0
    expected = f"{least_s:.2f}" if least_s == most_s else f"{least_s:.2f} to {most_s:.2f}"
    print(f"{what:70} {expected:>18} {real_s:9.2f} {ratio:5.2f}")


def print_forecasts(names: list[str]) -> None:
    """Print the forecast of studies and profiles."""
    print(f"{'study and profile':44} {'set-up':>9} {'trials':>19} {'all, at most':>13}")
    for name in names:
        study_name, _, profile = name.partition(":")
        try:
            study = planned.plan(profiles.load(source.bundled_study(study_name), profile or None)).study
            ready_s, (least_s, most_s) = set_up_s(study), estimate.seconds(study)
        except WeighbridgeError as why:
            print(f"{name:44} {str(why)[:60]}")
            continue
        trials = " to ".join(dict.fromkeys((clock(least_s), clock(most_s))))
        print(f"{name:44} {clock(ready_s):>9} {trials:>19} {clock(ready_s + most_s):>13}")


def main() -> None:
    """Print the forecasts, or compare them with runs."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("studies", nargs="*", help="bundled studies, each with a profile after a colon")
    parser.add_argument("--runs", type=Path, nargs="*", default=[], help="run directories, or databases of runs")
    parser.add_argument("--capture", type=Path, help="the file for the lengths of their trials")
    asked = parser.parse_args()
    for run in asked.runs:
        print_run(run)
    if asked.capture is not None:
        asked.capture.write_text(_json([captured(run) for run in asked.runs]))
    if not asked.runs:
        print_forecasts(asked.studies or [*every_study()])


def _json(runs: list[dict[str, Any]]) -> str:
    """Return runs as JSON with a line for each trial and each cell."""
    text = json.dumps(runs, indent=1)
    return re.sub(r"\n {4,}|\n {3}(?=[\]}])", " ", text) + "\n"


def every_study() -> Iterator[str]:
    """Yield each profile of each bundled study."""
    for name in source.bundled():
        yield from (f"{name}:{profile}" for profile in profiles.profiles_of(source.bundled_study(name)))


if __name__ == "__main__":
    main()
