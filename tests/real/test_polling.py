"""Idle CPUs that poll: they give way at once, what they polled is idle time, they end with whoever started them."""

import os
import signal
import sys
import time
from contextlib import closing
from pathlib import Path

import pytest

from weighbridge.hosts.kernel import cpus_online
from weighbridge.meters import machines
from weighbridge.model.command import Command
from weighbridge.process import Process
from weighbridge.runner.pollers import Pollers

from .machine import Machine
from .test_prometheus import saved
from .weighing import trials, weighbridge, write_study

BUSY = "import time; begun = time.process_time()\nwhile time.process_time() - begun < 1: pass"
RUN = "0a1b2c3d4e5f"


def test_polling_is_idle_time_and_work_is_not(machine: Machine, tmp_path: Path):
    cpus = cpus_online()
    with closing(Pollers(tmp_path, RUN, cpus)) as pollers:
        time.sleep(0.3)
        before = machines.snapshot(pollers.read)
        time.sleep(1)
        between = machines.snapshot(pollers.read)
        begun = time.monotonic()
        busy = Process(Command((sys.executable, "-I", "-S", "-c", BUSY)))
        assert busy.wait(20)
        lasted_s = time.monotonic() - begun
        after = machines.snapshot(pollers.read)
        assert busy.stop().returncode == 0
    idle, worked = machines.use(before, between), machines.use(between, after)
    assert idle is not None and worked is not None
    assert -0.1 < idle.busy_s < 0.2 * len(cpus), "the real idle time of the machine and what polled are one"
    assert worked.busy_s - idle.busy_s * worked.seconds == pytest.approx(1, abs=0.25)
    assert lasted_s * (1 - worked.stolen) < 1.5, "a poller gives way"
    machine.must_be_unchanged()


def test_pollers_end_with_whoever_started_them(machine: Machine, tmp_path: Path):
    source = (
        "import time, sys; from pathlib import Path; from weighbridge.runner.pollers import Pollers\n"
        f"pollers = Pollers(Path({str(tmp_path)!r}), {RUN!r}, [0]); print(pollers.read('/proc/stat')[:3]); "
        "time.sleep(60)"
    )
    starter = Process(Command((sys.executable, "-c", source)), hold=True)
    path = tmp_path / "polled-0"
    deadline = time.monotonic() + 20
    while not (path.exists() and int.from_bytes(path.read_bytes(), sys.byteorder)) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert int.from_bytes(path.read_bytes(), sys.byteorder) > 0, "it polls"
    os.kill(starter.pid, signal.SIGKILL)
    starter.stop()
    deadline = time.monotonic() + 10
    while _polls(path) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not _polls(path)
    machine.must_be_unchanged()


def _polls(path: Path) -> bool:
    before = path.read_bytes()
    time.sleep(0.3)
    return path.read_bytes() != before


def test_a_run_says_that_it_polled_and_counts_it_as_idle(machine: Machine, tmp_path: Path):
    study = write_study(tmp_path, workloads=("tcp: {kind: iperf3, duration: 1s}",))
    study.write_text(study.read_text() + "cpu_idle: poll\n")
    run = tmp_path / "run"
    done = weighbridge("run", study, "--out", run, "--yes")
    assert done.code == 0, done
    assert {row["outcome"] for row in trials(run)} == {"ok"}
    assert saved(run, "SELECT value FROM fact WHERE scope = 'host' AND key = 'idle CPUs'")[0][0].startswith("poll")
    levels = [float(value) for (value,) in saved(run, "SELECT value FROM fact WHERE key = 'host: CPUs busy'")]
    assert max(levels) < 0.5 * len(cpus_online()), "what polls is not busy"
    flags = " ".join(row["flags"] for row in trials(run))
    assert "other-work" not in flags
    told = {name for (name,) in saved(run, "SELECT DISTINCT name FROM sample")}
    assert "busy_s" in told and not told & {"load1", "psi_cpu_s"}, "who counts the pollers tells nothing"
    usage = [value for (value,) in saved(run, "SELECT value FROM measurement WHERE metric = 'cpu_usage'")]
    assert usage and max(usage) <= 100
    assert "idle CPUs polled" in weighbridge("report", run).stdout.replace("\n", " ").replace("  ", " ")
    machine.must_be_unchanged()
