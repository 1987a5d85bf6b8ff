"""Idle CPUs that poll: they give way at once, what they polled is idle time, they end with whoever started them."""

import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from weighbridge.errors import EnvironmentLost
from weighbridge.linux.cgroups import IDLE, Cgroup, remove_top
from weighbridge.linux.cpus import cpus_online
from weighbridge.linux.kernel_files import read_here
from weighbridge.linux.process import Process
from weighbridge.meters import machines
from weighbridge.model.command import Command
from weighbridge.model.facts import POLL
from weighbridge.model.names import GroupName, RunId
from weighbridge.runner.pollers import Pollers, lacking

from .machine import Machine
from .test_prometheus import saved
from .weighing import trials, weighbridge, write_study

BUSY = "import time; begun = time.process_time()\nwhile time.process_time() - begun < 1: pass"
RUN = "0a1b2c3d4e5f"
BUSY_CPUS = 0.3


@pytest.fixture(autouse=True)
def cannot() -> None:
    if why := lacking():
        pytest.skip(f"idle CPUs cannot poll: {why}")
    before = machines.counters_of(read_here)
    time.sleep(0.5)
    found = machines.use(before, machines.counters_of(read_here))
    if found is None or found.busy_s > BUSY_CPUS * found.seconds:
        pytest.skip("other programs are at work: no CPU is idle")


@pytest.fixture
def pollers(machine: Machine, tmp_path: Path) -> Iterator[Pollers]:
    with closing(Pollers(tmp_path, RUN, cpus_online())) as made:
        made.wait_until_polling()
        time.sleep(0.3)
        yield made
    machine.must_be_unchanged()


def used(read: machines.Read, doing: Callable[[], object]) -> machines.Use:
    """What the machine did meanwhile."""
    before = machines.counters_of(read)
    doing()
    found = machines.use(before, machines.counters_of(read))
    assert found is not None
    return found


def one_busy_second(pollers: Pollers) -> machines.Use:
    """What the machine did while one program was busy for a second by its own clock."""
    busy = Process(Command((sys.executable, "-I", "-S", "-c", BUSY)))
    worked = used(pollers.read, lambda: busy.wait(20))
    assert busy.stop().returncode == 0
    return worked


def at_rest(read: machines.Read) -> float:
    """The fewest CPUs that the machine kept busy in half a second: others work in between."""
    looks = [used(read, lambda: time.sleep(0.5)) for _ in range(6)]
    return min((each.busy_s / each.seconds for each in looks), key=abs)


@pytest.fixture
def others() -> float:
    """The CPUs that others keep busy, before anything polls."""
    return at_rest(read_here)


@pytest.mark.measures
def test_polling_is_idle_time_and_work_is_not(others: float, pollers: Pollers):
    idle = at_rest(pollers.read)
    assert abs(idle - others) < 0.03 * len(cpus_online())

    worked = min((one_busy_second(pollers) for _ in range(3)), key=lambda each: each.stolen)
    stolen_s = worked.stolen * worked.seconds * len(cpus_online())  # the program's clock counts it
    busy_s = worked.busy_s - idle * worked.seconds
    assert 0.75 - stolen_s <= busy_s <= 1.25
    assert worked.seconds - stolen_s < 1.5, "a poller gives way"


def test_a_poller_that_was_ended_is_missed(pollers: Pollers):
    pollers.require()
    victim = next(iter(pollers._programs.values()))
    os.kill(victim.pid, signal.SIGKILL)
    assert victim.wait(10)
    with pytest.raises(EnvironmentLost, match=r"CPU 0\b"):
        pollers.require()


def test_pollers_end_with_whoever_started_them(machine: Machine, tmp_path: Path):
    source = (
        "import time; from pathlib import Path; from weighbridge.runner.pollers import Pollers\n"
        f"pollers = Pollers(Path({str(tmp_path)!r}), {RUN!r}, [0]); pollers.wait_until_polling()\n"
        f"Path({str(tmp_path / 'up')!r}).touch(); time.sleep(60)"
    )
    starter, path = Process(Command((sys.executable, "-c", source)), hold=True), tmp_path / "polled-0"
    try:
        _await((tmp_path / "up").exists)
        assert _polls(path)
    finally:
        os.kill(starter.pid, signal.SIGKILL)
        starter.stop()
    _await(lambda: not _polls(path))
    assert Cgroup(GroupName(RunId(RUN)), top=IDLE).remove()
    remove_top()
    machine.must_be_unchanged()


@pytest.mark.measures
def test_a_run_says_that_it_polled_and_counts_it_as_idle(machine: Machine, tmp_path: Path):
    study = write_study(tmp_path, workloads=("tcp: {kind: iperf3, duration: 1s}",), further=("cpu_idle: poll",))
    run = tmp_path / "run"
    done = weighbridge("run", study, "--out", run, "--yes")
    assert done.code == 0, done
    assert {row["outcome"] for row in trials(run)} == {"ok"}
    assert saved(run, "SELECT value FROM fact WHERE scope = 'host' AND key = 'idle CPUs'") == [(POLL,)]
    levels = [float(value) for (value,) in saved(run, "SELECT value FROM fact WHERE key = 'host: CPUs busy'")]
    assert max(levels) < 0.5 * len(cpus_online()), "what polls is not busy"
    assert not any("other-work" in row["flags"] for row in trials(run))
    told = {name for (name,) in saved(run, "SELECT DISTINCT name FROM sample")}
    assert "busy_s" in told and not told & {"load1", "psi_cpu_s", "psi_io_s"}, "who counts the pollers tells nothing"
    usage = [value for (value,) in saved(run, "SELECT value FROM measurement WHERE metric = 'cpu_usage'")]
    assert usage and max(usage) <= 100
    assert "idle CPUs were kept awake" in " ".join(weighbridge("report", run, "--all").stdout.split())
    machine.must_be_unchanged()


def _await(that: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 20
    while not that():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def _polls(path: Path) -> bool:
    before = path.read_bytes()
    time.sleep(0.3)
    return path.read_bytes() != before
