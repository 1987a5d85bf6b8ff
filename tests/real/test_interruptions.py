"""Runs that are interrupted or killed: what is finished is kept, what is left is removed, and the run goes on."""

import contextlib
import os
import signal
import subprocess
import time
from pathlib import Path

import pytest

from weighbridge.runner import run_lock as state

from .machine import Machine, processes
from .weighing import DOCKER, NATIVE, REDIS, Going, Row, going, run_id, trials, weighbridge, write_study

BLOCKS = 3
TOTAL = 2 * BLOCKS
LONGER = REDIS.replace("2000", "20000")


@pytest.fixture
def study(tmp_path: Path) -> Path:
    return write_study(tmp_path, environments=(NATIVE, DOCKER), workloads=(LONGER,), blocks=BLOCKS)


@pytest.fixture
def run(tmp_path: Path) -> Path:
    return tmp_path / "run"


def start_of(rows: list[Row]) -> list[tuple[object, ...]]:
    return [(row["id"], row["started_at"], row["duration_s"], row["outcome"]) for row in rows]


def must_be_complete(run: Path, before: list[Row]) -> None:
    """Every planned trial is there once, and those that were there before are untouched."""
    after = trials(run)
    assert start_of(after)[: len(before)] == start_of(before)
    planned = {(block, name) for block in range(1, BLOCKS + 1) for name in ("native", "bridge")}
    assert sorted((row["block"], row["environment"]) for row in after) == sorted(planned)
    assert {row["outcome"] for row in after} == {"ok"}


def continue_run(study: Path, run: Path, before: list[Row]) -> None:
    done = weighbridge("run", study, "--out", run, "--yes")
    assert done.code == 0, done
    must_be_complete(run, before)


@pytest.mark.parametrize("number", [signal.SIGINT, pytest.param(signal.SIGTERM, marks=pytest.mark.long)])
def test_interrupted_in_the_middle(machine: Machine, study: Path, run: Path, tmp_path: Path, number: int):
    with going("run", study, "--out", run, "--yes", files=tmp_path) as going_on:
        going_on.await_that(lambda: len(trials(run)) >= 2)
        done = going_on.end(number)
    done.must_fail(128 + number, "interrupted", f"to continue: weighbridge run --out {run}")
    assert "report: " in done.stdout
    machine.must_be_unchanged()
    before = trials(run)
    assert 2 <= len(before) < TOTAL
    if number == signal.SIGINT:
        continue_run(study, run, before)


def test_interrupted_while_the_engine_starts(machine: Machine, study: Path, run: Path, tmp_path: Path):
    with going("run", study, "--out", run, "--yes", files=tmp_path) as going_on:
        going_on.await_text("starting a private Docker engine")
        done = going_on.end(signal.SIGINT)
    done.must_fail(130, "interrupted")
    assert trials(run) == []


def test_further_signals_do_not_break_the_tidying_up(machine: Machine, study: Path, run: Path, tmp_path: Path):
    with going("run", study, "--out", run, "--yes", files=tmp_path) as going_on:
        going_on.await_that(lambda: len(trials(run)) >= 2)
        going_on.process.send_signal(signal.SIGINT)
        while going_on.process.poll() is None:  # an impatient user
            going_on.process.send_signal(signal.SIGINT)
            time.sleep(0.1)
        done = going_on.end()
    done.must_fail(130, "interrupted")
    assert "cleaning up, please wait" in done.stderr
    assert len(trials(run)) >= 2


def programs_of(run: Path) -> set[str]:
    """The programs that this run has started and that are still there."""
    return {name for _, owner, name in processes() if owner == run_id(run)}


def _at_engine_start(going_on: Going, run: Path) -> None:
    going_on.await_text("starting a private Docker engine")


def _at_dockerd(going_on: Going, run: Path) -> None:
    going_on.await_that(lambda: "dockerd" in programs_of(run))


def _at_import(going_on: Going, run: Path) -> None:
    going_on.await_text("importing the root filesystem")


def _in_a_trial(going_on: Going, run: Path) -> None:
    going_on.await_that(lambda: len(trials(run)) >= 1)
    going_on.await_that(lambda: "redis-server" in programs_of(run))


def _while_closing(going_on: Going, run: Path) -> None:
    going_on.await_that(lambda: len(trials(run)) >= 2)
    going_on.process.send_signal(signal.SIGINT)
    going_on.await_text("cleaning up")


RARER = [pytest.param(moment, marks=pytest.mark.long) for moment in (_at_engine_start, _at_import, _while_closing)]
MOMENTS = [_at_dockerd, _in_a_trial, *RARER]
NOTHING_IS_LOST = pytest.mark.promise(
    "a run that is killed loses no finished trial, clean removes what it left, and the run goes on"
)


def kill_at(moment, study: Path, run: Path, files: Path) -> list[Row]:
    with going("run", study, "--out", run, "--yes", files=files) as going_on:
        moment(going_on, run)
        going_on.end(signal.SIGKILL)
    return trials(run)


@NOTHING_IS_LOST
@pytest.mark.parametrize("moment", MOMENTS)
def test_killed_then_cleaned(machine: Machine, study: Path, run: Path, tmp_path: Path, moment):
    kill_at(moment, study, run, tmp_path)
    listed = weighbridge("clean", "--check")
    listed.must_fail(1, "leftovers: remove with 'weighbridge clean'")
    assert "state folder" in listed.stdout
    again = weighbridge("clean", "--check")
    assert again.code == 1, "--check only lists"
    cleaned = weighbridge("clean")
    assert (cleaned.code, cleaned.stdout.splitlines()[-1]) == (0, "no leftovers"), cleaned
    assert weighbridge("clean", "--check").code == 0


@NOTHING_IS_LOST
@pytest.mark.parametrize("moment", [_in_a_trial, pytest.param(_at_dockerd, marks=pytest.mark.long)])
def test_killed_then_continued(machine: Machine, study: Path, run: Path, tmp_path: Path, moment):
    before = kill_at(moment, study, run, tmp_path)
    continue_run(study, run, before)


def test_what_claims_to_be_of_a_run_but_is_not_is_left_alone(machine: Machine):
    """Anybody may set a variable: root's ``clean`` believes only what looks like an id of a run."""
    wrong = ("", "..", "../..", "/", "ABCDEF123456", "0123456789abc")
    with contextlib.ExitStack() as sleepers:
        living = []
        for run in wrong:
            environment = {"WEIGHBRIDGE_RUN": run, "PATH": os.environ["PATH"]}
            sleeper = sleepers.enter_context(subprocess.Popen(["sleep", "600"], env=environment))
            sleepers.callback(sleeper.kill)
            living.append(sleeper)
        assert weighbridge("clean").code == 0
        assert [run for run, sleeper in zip(wrong, living, strict=True) if sleeper.poll() is not None] == []


def test_clean_spares_a_living_run(machine: Machine, study: Path, run: Path, tmp_path: Path):
    with going("run", study, "--out", run, "--yes", files=tmp_path) as going_on:
        going_on.await_that(lambda: len(trials(run)) >= 1)
        checked = weighbridge("clean", "--check")
        assert checked.code == 0 and "is still active" in checked.stderr
        assert weighbridge("clean").code == 0
        done = going_on.end()
    assert done.code == 0, done
    must_be_complete(run, [])
    assert state.known_runs() == []


@pytest.mark.long
@pytest.mark.promise("two runs never change this machine's packet filter at a time")
def test_two_runs_with_private_engines_take_turns(machine: Machine, study: Path, tmp_path: Path):
    """Each engine changes the host's packet filter: had they overlapped, the second's note would be wrong."""
    folders = [tmp_path / "a", tmp_path / "b"]
    for folder in folders:
        folder.mkdir()
    with going("run", study, "--out", folders[0] / "run", "--yes", files=folders[0]) as first:
        first.await_text("importing the root filesystem")
        with going("run", study, "--out", folders[1] / "run", "--yes", files=folders[1]) as second:
            second.await_text("for another run's engine to end")
            assert first.process.poll() is None
            done = [first.end(), second.end()]
    assert [one.code for one in done] == [0, 0], done
    for folder in folders:
        must_be_complete(folder / "run", [])
