"""`cleanup` of a command of one's own: once in each site, after its last trial, however the run ends.

What it finds in its site it tells in its last words, which the run keeps where it ends with another code than 0.
"""

import re
import signal
import sqlite3
import time
from pathlib import Path

import pytest

from .machine import Machine, processes
from .test_weigh import weigh
from .weighing import DOCKER, NATIVE, facts, going, run_id, trials, weighbridge, write_study

ENVIRONMENTS = (NATIVE, DOCKER)
HOST = "userland: {kind: host, folder: /usr/share}"
TELL = "cat /tmp/seen >&2; exit 9"


def study_of(folder: Path, blocks: int = 2, **commands: str) -> Path:
    """A command in a shell, natively and in Docker."""
    words = ", ".join(f"{key}: '{text}'" for key, text in commands.items())
    workload = f"own: {{kind: command, shell: true, {words}}}"
    return write_study(folder, environments=ENVIRONMENTS, workloads=(workload,), blocks=blocks, further=(HOST,))


def told(run: Path) -> dict[str, str]:
    return {key: value for (scope, key), value in facts(run).items() if scope == "cleanup"}


def test_it_sees_what_the_setup_and_every_trial_have_left(machine: Machine, tmp_path: Path):
    study = study_of(
        tmp_path,
        setup="printf s >>/tmp/seen",
        prepare="printf p >>/tmp/seen",
        run="printf r >>/tmp/seen",
        cleanup=TELL,
    )
    run = tmp_path / "run"
    done = weighbridge("run", study, "--out", run, "--yes")
    assert done.code == 0, done
    saw = {f"{name}/solo": "/bin/sh exited with code 9: sprpr" for name in ("native", "bridge")}
    assert told(run) == saw
    assert all(f"{place}: " in done.stderr and why in done.stderr for place, why in saw.items())
    assert [(row["outcome"], row["attempt"]) for row in trials(run)] == [("ok", 0)] * 4
    machine.must_be_unchanged()


def test_it_is_in_no_trial_s_time_and_after_all_of_them(machine: Machine, tmp_path: Path):
    study = study_of(tmp_path, run="true", cleanup="sleep 2", blocks=1)
    run = tmp_path / "run"
    began = time.monotonic()
    done = weighbridge("run", study, "--out", run, "--yes")
    lasted = time.monotonic() - began
    assert done.code == 0 and "cleanup failed" not in done.stderr, done
    assert told(run) == {}
    with sqlite3.connect(run / "run.sqlite") as store:
        (longest,) = store.execute("SELECT max(duration_s) FROM trial").fetchone()
        (measured,) = store.execute("SELECT max(value) FROM measurement WHERE metric = 'time'").fetchone()
    assert lasted > 4, "in both sites, one after the other"
    assert longest < 2 and measured < 1
    machine.must_be_unchanged()


@pytest.mark.parametrize("during", ["setup", "run"])
def test_ctrl_c_leaves_nothing_running_and_then_it_runs(machine: Machine, tmp_path: Path, during: str):
    commands = {"setup": "printf s >>/tmp/seen", "run": "printf r >>/tmp/seen"}
    commands[during] += "; echo $$ >/tmp/pid; sleep 99"
    ask = "kill -0 $(cat /tmp/pid) && echo alive >>/tmp/seen; echo . >>/tmp/seen; "
    study = study_of(tmp_path, **commands, cleanup=ask + 'tr -d "\\n" </tmp/seen >&2; exit 9')
    run = tmp_path / "run"
    with going("run", study, "--out", run, "--yes", files=tmp_path) as going_on:
        going_on.await_that(lambda: _sleeps(run), "the program sleeps")
        done = going_on.end(signal.SIGINT)
    done.must_fail(130, "interrupted")
    assert not run.exists(), "nothing was measured"
    seen = "s." if during == "setup" else "sr."
    assert re.search(rf"(?<![a-z]){re.escape(seen)}", done.stderr), done
    machine.must_be_unchanged()


def test_weigh_has_it_as_hyperfine_has_it(machine: Machine, tmp_path: Path):
    words = ("--setup", "touch /tmp/made", "-c", "rm /tmp/made", "--blocks", "2", "--in", "docker,netns")
    done = weigh(tmp_path, *words, "--", "test", "-e", "/tmp/made")
    assert done.returncode == 0, done.stderr
    assert told(tmp_path / "run") == {}
    again = weigh(tmp_path, "--out", str(tmp_path / "other"), *words, "--", "rm", "-f", "/tmp/made")
    assert again.returncode == 0, again.stderr
    found = told(tmp_path / "other")
    assert {*found} == {f"{name}/solo" for name in ("native", "native-again", "docker", "netns")}
    assert all("/tmp/made" in why for why in found.values()), found
    machine.must_be_unchanged()


def _sleeps(run: Path) -> bool:
    """Whether a program of the run sleeps."""
    return any(owner == run_id(run) and name == "sleep" for _, owner, name in processes())
