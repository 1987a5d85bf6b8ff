"""`kill -9` at random moments of a run: no trial is lost, `clean` makes the machine as it was, the run goes on.

A dozen by default; `pytest -m long tests/real/test_kill_anywhere.py --kills 100 --seed 7` makes more, the same each
time. `test_interruptions` kills at moments that are known.
"""

import random
import signal
import sqlite3
import time
from contextlib import closing
from pathlib import Path

import pytest

from .machine import Machine
from .test_interruptions import BLOCKS, LONGER, NOTHING_IS_LOST, TOTAL, must_be_complete, start_of
from .weighing import DOCKER, NATIVE, Row, going, trials, weighbridge, write_study

LENGTH_S = 14.0
"""About how long such a run takes: it is killed at any moment of it."""


@pytest.mark.long
@NOTHING_IS_LOST
def test_killed_anywhere(
    machine: Machine, tmp_path: Path, request: pytest.FixtureRequest, capsys: pytest.CaptureFixture[str]
):
    kills, seed = request.config.getoption("--kills"), request.config.getoption("--seed")
    with capsys.disabled():
        print(f"\n{kills} kills: --seed {seed}")
    moments = random.Random(seed)
    study = write_study(
        tmp_path, environments=(NATIVE, DOCKER), workloads=(LONGER,), blocks=BLOCKS, further=("cpu_idle: auto",)
    )
    run, known = tmp_path / "run-0", list[Row]()
    for number in range(1, kills + 1):
        if len(known) == TOTAL:
            finish(study, run, known)
            run, known = tmp_path / f"run-{number}", []
        after_s = moments.uniform(0, LENGTH_S)
        print(f"kill {number} of {run.name} after {after_s:.3f} s and {len(known)} trials")
        known = kill(study, run, known, after_s, tmp_path)
        outputs_must_be_there(run)
        cleaned = weighbridge("clean")
        assert (cleaned.code, cleaned.stdout.splitlines()[-1]) == (0, "no leftovers"), cleaned
        machine.must_be_unchanged()
    finish(study, run, known)


def kill(study: Path, run: Path, known: list[Row], after_s: float, files: Path) -> list[Row]:
    """Begin or continue the run and kill it after a time; gives its trials, which those before must be among."""
    end = time.monotonic() + after_s
    with going("run", study, "--out", run, "--yes", files=files) as going_on:
        while time.monotonic() < end and going_on.process.poll() is None:
            time.sleep(min(0.05, max(0.0, end - time.monotonic())))
        seen = trials(run)
        done = going_on.end(signal.SIGKILL)
    assert done.code in (-signal.SIGKILL, 0), done
    after = trials(run)
    for before in (known, seen):
        assert start_of(after)[: len(before)] == start_of(before)
    assert {row["outcome"] for row in after} <= {"ok"}
    return after


def outputs_must_be_there(run: Path) -> None:
    """Every saved trial has the raw outputs that its rows name."""
    if not trials(run):
        return
    with closing(sqlite3.connect(f"file:{run / 'run.sqlite'}?mode=ro", uri=True)) as database:
        names = [name for row in database.execute("SELECT stdout, stderr FROM process") for name in row]
    assert names and all((run / name).is_file() for name in names)


def finish(study: Path, run: Path, known: list[Row]) -> None:
    """Continue the run to its end: it has every planned trial once."""
    done = weighbridge("run", study, "--out", run, "--yes")
    assert done.code == 0, done
    must_be_complete(run, known)
