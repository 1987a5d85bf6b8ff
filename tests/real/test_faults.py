"""Things go wrong in the middle: one sentence, the documented exit code, finished trials kept, nothing left."""

import contextlib
import os
import re
import signal
import subprocess
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from weighbridge import registry
from weighbridge.errors import EnvironmentLost, TrialsFailed
from weighbridge.hosts.local import LocalHost
from weighbridge.launcher.build import NAME
from weighbridge.model.command import Command
from weighbridge.model.measurement import Measurement, Metric
from weighbridge.model.options import Options
from weighbridge.model.trial import TrialResult
from weighbridge.model.userland import Userland, UserlandSpec
from weighbridge.model.workload import Workload
from weighbridge.runner.run import run_study
from weighbridge.store.run import RunStore
from weighbridge.study.loader import load

from .machine import Machine, processes
from .users_engine import own_engine, socket_of
from .weighing import DOCKER, NATIVE, REDIS, going, run_id, trials, weighbridge, write_study

FAILURES_ARE_TOLD = pytest.mark.promise(
    "whatever fails in a run is told in one sentence, and every finished trial is kept"
)


class Quiet:
    """Progress for a run in this process: remembers what was said."""

    def __init__(self) -> None:
        self.said: list[str] = []

    def say(self, text: str) -> None:
        self.said.append(text)

    def __getattr__(self, _: str) -> Callable[..., None]:
        return lambda *_, **__: None


class Waits(Workload):
    """A server that listens and a client that connects and then does what the options say."""

    kind = "waits"
    summary = "for tests"
    packages = ()

    class options(Options):
        seconds: float = 0.1
        deadline: float = 30.0

    def transports(self, options):
        return ("tcp",)

    def metrics(self, options):
        return (Metric("answer", "1", "higher"),)

    def command(self, role, options, at):
        if role == "client":
            return Command(("sh", "-c", f"sleep {options.seconds}; echo 42"), options.deadline)
        script = (
            "use Socket; socket(S, PF_INET, SOCK_STREAM, 0); setsockopt(S, SOL_SOCKET, SO_REUSEADDR, 1);"
            "bind(S, sockaddr_in($ARGV[1], inet_aton($ARGV[0]))) or die 'bind'; listen(S, 5); sleep 1000"
        )
        return Command(("perl", "-e", script, at.listen, str(at.port)), 60, listens=(("tcp", at.port),))

    def expected_s(self, options):
        return 0.1

    def parse(self, options, completed):
        return TrialResult((Measurement(self.metrics(options)[0], float(completed["client"].text)),))


@pytest.fixture
def waits(monkeypatch: pytest.MonkeyPatch) -> None:
    """The workload of these tests, which needs no package of its own (any userland has perl)."""
    known = {**registry.workloads(), "waits": Waits()}
    monkeypatch.setattr(registry, "workloads", lambda: known)
    from weighbridge.runner import userlands

    monkeypatch.setattr(userlands, "userland_of", lambda _: UserlandSpec.of(["iperf3"]))


@contextlib.contextmanager
def meanwhile(action: Callable[[], bool]) -> Iterator[None]:
    """Calls the action in a thread until it says that it is done, or the context ends."""
    over = threading.Event()

    def act() -> None:
        while not over.wait(0.05) and not action():  # a look at every process takes 10 ms
            pass

    thread = threading.Thread(target=act)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def client_at_work(run: Path, seconds: str) -> bool:
    """Whether the client of a ``waits`` trial sleeps."""
    for pid, owner, name in processes():
        if owner == run_id(run) and name == "sleep":
            with contextlib.suppress(OSError):
                if Path(f"/proc/{pid}/cmdline").read_text() == f"sleep\0{seconds}\0":
                    return True
    return False


def kill_once(run: Path, names: tuple[str, ...], number: int, words: str = "") -> Callable[[], bool]:
    """Signals the first process of the run with one of these names, once a trial's client is at work."""

    def act() -> bool:
        own = run_id(run)
        for pid, owner, name in processes():
            if owner == own and name in names:
                with contextlib.suppress(OSError):
                    if re.search(words, Path(f"/proc/{pid}/cmdline").read_text()):
                        os.kill(pid, number)
                        return True
        return False

    return act


@FAILURES_ARE_TOLD
@pytest.mark.parametrize("place", [DOCKER, pytest.param(NATIVE, marks=pytest.mark.long)])
def test_server_dies_during_a_trial(machine: Machine, tmp_path: Path, waits: None, place: str):
    """The trial is a recorded failure, its block is repeated, and the run ends well."""
    study = load(str(write_study(
        tmp_path, environments=(NATIVE, place) if place != NATIVE else (NATIVE,),
        workloads=("w: {kind: waits, seconds: 1.25}",), blocks=1,
    )))  # fmt: skip
    run = tmp_path / "run"
    kill = kill_once(run, ("perl",), signal.SIGKILL)

    def when_the_client_works() -> bool:
        return len(trials(run)) == len(study.arms) - 1 and client_at_work(run, "1.25") and kill()

    with meanwhile(when_the_client_works):
        run_study(study, run, Quiet(), lambda _: None)
    rows = trials(run)
    assert [row["outcome"] for row in rows].count("server died") == 1
    failed = next(row for row in rows if row["outcome"] != "ok")
    assert failed["outcome"] == "server died" and "\n" not in failed["message"]
    again = [row for row in rows if row["attempt"] == 1]
    assert {row["outcome"] for row in again} == {"ok"} and len(again) == len(study.arms)


def test_client_that_hangs(machine: Machine, tmp_path: Path, waits: None):
    """A stopped client does not hear SIGTERM: it is killed; in the store it is a deadline that was not met."""
    environments = (NATIVE, DOCKER)
    workload = ("w: {kind: waits, seconds: 300, deadline: 0.5}",)
    study = load(str(write_study(tmp_path, environments=environments, workloads=workload, blocks=1)))
    run = tmp_path / "run"

    def stop_clients() -> bool:
        for pid, owner, name in processes():
            if owner == run_id(run) and name == "sleep":
                with contextlib.suppress(OSError):
                    if "300" in Path(f"/proc/{pid}/cmdline").read_text():
                        os.kill(pid, signal.SIGSTOP)
        return False

    with meanwhile(stop_clients), pytest.raises(TrialsFailed):
        run_study(study, run, Quiet(), lambda _: None)
    rows = trials(run)
    assert len(rows) == 3, "what fails alike everywhere is not tried nine times"
    assert {row["outcome"] for row in rows} == {"deadline"}
    assert all(row["duration_s"] < 10 for row in rows)


def test_published_port_in_use(machine: Machine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, waits: None):
    import socket

    from weighbridge.errors import Unavailable

    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        monkeypatch.setattr(LocalHost, "free_ports", lambda *_: taken.getsockname()[1])
        published = "loopback: {kind: docker, network: bridge, publish: true, publish_on: loopback}"
        study = load(
            str(write_study(tmp_path, environments=(NATIVE, published), workloads=("w: {kind: waits}",), blocks=1))
        )
        with pytest.raises(Unavailable, match=r"address already in use|already allocated") as caught:
            run_study(study, tmp_path / "run", Quiet(), lambda _: None)
    assert "\n" not in str(caught.value)


@FAILURES_ARE_TOLD
@pytest.mark.parametrize(
    ("victim", "words", "lost_in"),
    [
        pytest.param("dockerd", "", "bridge", id="the engine"),
        pytest.param(
            NAME[:15], rf"\A/{NAME}\0\Z", "bridge", marks=pytest.mark.long, id="the launcher of a container"
        ),
        pytest.param(
            NAME[:15], "--root", "native|bridge", marks=pytest.mark.long, id="the launcher of a native site"
        ),
    ],
)
def test_environment_is_lost_during_a_trial(
    machine: Machine, tmp_path: Path, waits: None, victim: str, words: str, lost_in: str
):
    workload = ("w: {kind: waits, seconds: 1.5}",)
    study = load(str(write_study(tmp_path, environments=(NATIVE, DOCKER), workloads=workload, blocks=2)))
    run = tmp_path / "run"
    kill = kill_once(run, (victim,), signal.SIGKILL, words)

    def in_a_docker_trial() -> bool:
        return len(trials(run)) >= 1 and client_at_work(run, "1.5") and _server_in_container(run) and kill()

    with meanwhile(in_a_docker_trial), pytest.raises(EnvironmentLost) as caught:
        run_study(study, run, Quiet(), lambda _: None)
    assert re.match(rf"({lost_in}) was lost during w: [^\n]+ Finished trials are kept$", str(caught.value))
    machine.must_be_unchanged()
    before = trials(run)
    assert before[-1]["outcome"] == "environment lost"
    assert {row["outcome"] for row in before[:-1]} <= {"ok"}
    if victim != "dockerd":
        return  # to continue is the same after each
    run_study(study, run, Quiet(), lambda _: None)
    after = trials(run)
    assert after[: len(before)] == before
    assert len({(row["block"], row["attempt"], row["environment"]) for row in after}) == len(after)


def _server_in_container(run: Path) -> bool:
    """Whether the server that runs now is in a container: a native one is in the group of its site."""
    for pid, owner, name in processes():
        if owner == run_id(run) and name == "perl":
            with contextlib.suppress(OSError):
                return "native-server" not in Path(f"/proc/{pid}/cgroup").read_text()
    return False


@pytest.mark.long  # `test_environment_is_lost_during_a_trial` kills it in make test
@FAILURES_ARE_TOLD
def test_dockerd_killed_exits_with_8(machine: Machine, tmp_path: Path):
    run = tmp_path / "run"
    study = write_study(tmp_path, environments=(NATIVE, DOCKER), workloads=(REDIS,), blocks=20)
    with going("run", study, "--out", run, "--yes", files=tmp_path) as going_on:
        going_on.await_that(lambda: len(trials(run)) >= 3)
        going_on.await_that(kill_once(run, ("dockerd",), signal.SIGKILL))
        done = going_on.end()
    done.must_fail(8, "Docker engine no longer answers")
    assert len(trials(run)) >= 3


@FAILURES_ARE_TOLD
def test_containerd_killed_while_sites_open_exits_with_8(machine: Machine, tmp_path: Path):
    """And what it did, which the engine has it write to the folder for temporary files, goes with the engine."""
    run = tmp_path / "run"
    study = write_study(tmp_path, environments=(NATIVE, DOCKER), workloads=(REDIS,), blocks=1)
    with going("run", study, "--out", run, "--yes", files=tmp_path) as going_on:
        going_on.await_text("importing the root filesystem")
        going_on.await_that(kill_once(run, ("containerd",), signal.SIGKILL))
        done = going_on.end()
    done.must_fail(8, "containerd no longer answers")


def test_two_runs_on_one_directory(machine: Machine, tmp_path: Path):
    run = tmp_path / "run"
    study = write_study(tmp_path, workloads=("nap: {kind: command, run: sleep 1}",), blocks=10)
    with going("run", study, "--out", run, "--yes", files=tmp_path) as going_on:
        going_on.await_that(lambda: len(trials(run)) >= 1)
        weighbridge("run", study, "--out", run, "--yes").must_fail(6, "another 'weighbridge run' is writing")
        done = going_on.end()
    assert done.code == 0, done
    assert [row["outcome"] for row in trials(run)] == ["ok"] * 10


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 4 MiB."""
    image, folder = tmp_path / "disk.img", tmp_path / "disk"
    with image.open("wb") as file:
        file.truncate(4 * 2**20)
    folder.mkdir()
    subprocess.run(["mkfs.ext4", "-q", "-m", "0", "-O", "^has_journal", image], check=True)
    subprocess.run(["mount", "-o", "loop", image, folder], check=True)
    try:
        yield folder
    finally:
        subprocess.run(["umount", "--detach-loop", folder], check=True)


@FAILURES_ARE_TOLD
def test_disk_full_in_the_run_directory(small_disk: Path, machine: Machine, tmp_path: Path):
    run = small_disk / "run"
    study = write_study(tmp_path, workloads=("nap: {kind: command, run: sleep 1}",), blocks=6)
    with going("run", study, "--out", run, "--yes", files=tmp_path) as going_on:
        going_on.await_that(lambda: len(trials(run)) >= 2)
        with contextlib.suppress(OSError), (small_disk / "ballast").open("wb", buffering=0) as ballast:
            while ballast.write(b"x" * 4096):
                pass
        done = going_on.end()
    done.must_fail(7, "no space left", "Finished trials are kept")
    machine.must_be_unchanged()
    kept = trials(run)
    assert len(kept) >= 2 and {row["outcome"] for row in kept} == {"ok"}
    with RunStore(run) as store:
        assert len(store.trials()) == len(kept)
    (small_disk / "ballast").unlink()
    done = weighbridge("run", study, "--out", run, "--yes")
    assert done.code == 0, done
    assert trials(run)[: len(kept)] == kept and len(trials(run)) == 6


def test_no_docker_and_docker_host_that_is_nothing(machine: Machine, tmp_path: Path):
    """No dockerd on the path; and an engine that was named but does not answer is not replaced by a private one."""
    study = write_study(tmp_path, environments=(NATIVE, DOCKER), workloads=(REDIS,), blocks=1)
    without = tmp_path / "bin"
    without.mkdir()
    for folder in os.environ["PATH"].split(":"):
        for program in Path(folder).glob("*"):
            if program.name != "dockerd" and not (without / program.name).is_symlink():
                (without / program.name).symlink_to(program)
    run = tmp_path / "run"
    done = weighbridge("run", study, "--out", run, "--yes", env={"PATH": str(without)})
    done.must_fail(4, "bridge", "no Docker engine is installed", "apt-get install docker.io")
    nothing = f"unix://{tmp_path}/nothing.sock"
    done = weighbridge("run", study, "--out", run, "--yes", env={"DOCKER_HOST": nothing})
    done.must_fail(4, "bridge", f"no engine answers at DOCKER_HOST={nothing}")
    assert not run.exists()


def test_engine_of_another_machine_is_refused(machine: Machine, small_userland: Userland, tmp_path: Path):
    """Its process numbers mean others here. A process namespace stands for the other machine."""
    elsewhere = ("unshare", "--pid", "--fork", "--kill-child", "--mount-proc")
    study = write_study(tmp_path, environments=(NATIVE, DOCKER), workloads=(REDIS,), blocks=1)
    with own_engine(small_userland, tmp_path, *elsewhere) as engine:
        address = {"DOCKER_HOST": f"unix://{socket_of(engine)}"}
        done = weighbridge("run", study, "--out", tmp_path / "out", "--yes", env=address)
        done.must_fail(4, "the Docker engine is on another machine")
        assert [container.name for container in engine.containers.list(all=True)] == ["foreign"]
