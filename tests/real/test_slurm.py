"""Nodes of a job of a real Slurm as hosts, and as the machines of a fleet: how they are lost, and what stays."""

import contextlib
import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest

import weighbridge as package
from weighbridge.errors import Unavailable
from weighbridge.model.command import Command

from . import slurm as real_slurm
from .slurm import NODES, Machine, Slurm, three_nodes
from .weighing import PROGRAM, Ended, Row, facts, run_id, trials

PATIENCE_S = 60.0
pytestmark = pytest.mark.skipif(bool(real_slurm.missing()), reason=real_slurm.missing())


@pytest.fixture(scope="module")
def slurm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Slurm]:
    """Three nodes."""
    with three_nodes(tmp_path_factory.mktemp("slurm")) as started:
        yield started


@pytest.fixture(autouse=True)
def _as_it_was(slurm: Slurm) -> Iterator[None]:
    """Every test begins with idle nodes."""
    slurm.await_nodes()
    yield
    slurm.end_jobs()


def variables(slurm: Slurm) -> dict[str, str]:
    """The environment of our program on the machines."""
    return {**slurm.variables, "PYTHONPATH": str(Path(package.__file__).parents[1]), "COLUMNS": "80"}


def on_login(slurm: Slurm, *words: object, before: tuple[str, ...] = ()) -> Ended:
    """Run our program on the login node."""
    argv = (*before, *PROGRAM, *map(str, words))
    done = slurm.login.run(*argv, deadline_s=2 * PATIENCE_S, env=variables(slurm))
    return Ended(done.returncode, done.text, done.stderr.decode(errors="replace"))


def in_job(nodes: int, *further: str) -> tuple[str, ...]:
    """The words that begin a command in a job with so many nodes."""
    return ("salloc", "--quiet", f"--nodes={nodes}", "--exclusive", *further)


@contextmanager
def going(slurm: Slurm, *words: object, further: tuple[str, ...] = ()) -> Iterator[Callable[[], Ended]]:
    """Our program in a job with two nodes, while the test looks at it; gives what waits for its end."""
    argv = (*in_job(2, *further), *PROGRAM, *map(str, words))
    process = slurm.login.host.start(Command(argv, env=variables(slurm)))

    def end() -> Ended:
        assert process.wait(2 * PATIENCE_S), "it goes on"
        done = process.stop()
        return Ended(done.returncode, done.text, done.stderr.decode(errors="replace"))

    try:
        yield end
    finally:
        process.stop()


def left_on(machine: Machine, run: str) -> str:
    """What a run left on a machine: processes, control groups, half a userland, folders of data."""
    processes = []
    for environ in (machine.host.folder / "proc").glob("[0-9]*/environ"):
        with contextlib.suppress(OSError):
            command = environ.with_name("cmdline").read_bytes()
            if run.encode() in environ.read_bytes() + command:
                processes.append(command.replace(b"\0", b" ")[:80].decode(errors="replace"))
    cache = "/var/cache/weighbridge"
    look = f"ls -d /sys/fs/cgroup/*/weighbridge/{run}/ {cache}/userlands/.rec* {cache}/data/{run}*"
    return f"{processes}" * bool(processes) + machine.must("sh", "-c", f"({look}) 2>/dev/null; true")


def nothing_left(slurm: Slurm, *runs: Path) -> None:
    for run in runs:
        number = run_id(run)
        slurm.eventually(
            f"nothing is left of {number}: { {name: left_on(node, number) for name, node in slurm.nodes.items()} }",
            lambda: not any(left_on(node, number) for node in slurm.nodes.values()),  # noqa: B023
            PATIENCE_S,
        )


def write(folder: Path, *, blocks: int = 1, hosts: tuple[str, ...] = (), seconds: float = 0.2) -> Path:
    """A study of one host, or between two."""
    places = ["hosts:", *(f"  {host}" for host in hosts), "placement: {client: a, server: b}"] if hosts else []
    workload = "tcp: {kind: iperf3, duration: 1s}" if hosts else f"nap: {{kind: command, run: 'sleep {seconds}'}}"
    lines = [
        "study: nodes", "question: Does it run?", *places, "baseline: native", "aa: false", "meters: {source: 'off'}",
        "environments: {native: {kind: native}, other: {kind: native}}", f"repetitions: {{blocks: {blocks}}}",
        "workloads:", f"  {workload}",
    ]  # fmt: skip
    path = folder / "study.yaml"
    path.write_text("\n".join(lines) + "\n")
    return path


PAIR = ("a: {kind: slurm}", "b: {kind: slurm}")


def test_a_study_on_two_nodes(slurm: Slurm, tmp_path: Path):
    run = tmp_path / "run"
    done = on_login(slurm, "run", write(tmp_path, hosts=PAIR), "--out", run, "--yes", before=in_job(2))
    assert done.code == 0, done
    assert {row["outcome"] for row in trials(run)} == {"ok"}
    known = facts(run)
    for host, node in (("host a", "n2"), ("host b", "n1")):
        placed = known[host, "placed by"]
        assert placed.startswith("Slurm job ") and placed.endswith(f" on {node}") and known[host, "node"] == node
        assert known[host, "address"] == slurm.nodes[node].host.address
    assert known["host a", "machine id"] != known["host b", "machine id"]
    nothing_left(slurm, run)


WRONG: dict[str, tuple[int, tuple[str, ...], str]] = {
    "a node of another job": (1, ("a: {kind: slurm, node: n3}", PAIR[1]), "node n3 is not one of the nodes of job"),
    "more hosts than nodes": (1, PAIR, "and other hosts use them"),
    "no job": (0, PAIR, "salloc --nodes=2"),
}


@pytest.mark.parametrize("what", WRONG)
def test_a_job_that_does_not_fit(slurm: Slurm, tmp_path: Path, what: str):
    nodes, hosts, told = WRONG[what]
    before = in_job(nodes) if nodes else ()
    done = on_login(slurm, "run", write(tmp_path, hosts=hosts), "--out", tmp_path / "run", "--yes", before=before)
    done.must_fail(Unavailable.exit_code, told)


def kill_on_login(slurm: Slurm, *words: str) -> None:
    slurm.login.must("pkill", "-KILL", *words)


def cancel(slurm: Slurm) -> None:
    slurm.must("scancel", "--user=root")


LOSSES: dict[str, tuple[Callable[[Slurm], None], str]] = {
    "weighbridge killed": (lambda slurm: kill_on_login(slurm, "--full", "weighbridge run"), ""),
    "srun killed": (lambda slurm: kill_on_login(slurm, "--exact", "srun"), "its step ended"),
    "job cancelled": (cancel, "cancelled"),
    "node set down": (lambda slurm: slurm.set_node("n2", "down"), "node failed"),
}


@pytest.mark.promise("a node of a Slurm job is left clean, however the job ends")
@pytest.mark.parametrize(
    "loss",
    ["job cancelled", *(pytest.param(loss, marks=pytest.mark.long) for loss in LOSSES if loss != "job cancelled")],
)
def test_lost_in_the_middle_of_a_run(slurm: Slurm, tmp_path: Path, loss: str):
    happen, told = LOSSES[loss]
    run = tmp_path / "run"
    with going(slurm, "run", write(tmp_path, hosts=PAIR, blocks=20), "--out", run, "--yes") as end:
        slurm.eventually("two trials", lambda: len(trials(run)) >= 2, PATIENCE_S)
        finished = trials(run)
        happen(slurm)
        done = end()
    try:
        assert "Traceback" not in done.stderr, done
        assert done.code != 0 and (not told or told in done.stderr), done
        nothing_left(slurm, run)
        assert trials(run)[: len(finished)] == finished
    finally:
        if loss == "node set down":
            slurm.set_node("n2", "resume")


def submit(slurm: Slurm, study: Path, folder: Path, *more: object) -> Ended:
    words = ("fleet", "submit", study, "--on", "slurm", "--out", folder, "--rehearsal", "--yes")
    return on_login(slurm, *words, *more)


def status(slurm: Slurm, folder: Path) -> Any:
    done = on_login(slurm, "fleet", "status", folder, "--json")
    assert done.code == 0, done
    return json.loads(done.stdout)


def states(slurm: Slurm, folder: Path) -> dict[str, str]:
    return {run["name"]: run["state"] for run in status(slurm, folder)["runs"]}


def job_of(folder: Path) -> str:
    return str(json.loads((folder / "fleet.json").read_text())["jobs"][-1])


def ends(slurm: Slurm, folder: Path) -> None:
    job = job_of(folder)
    slurm.eventually("the job ends", lambda: slurm.state_of(job) not in ("PENDING", "RUNNING", "COMPLETING"), 90)
    log = folder / "drive.log"
    print(
        log.read_text() if log.exists() else "no log",
        *(each.read_text()[-800:] for each in folder.glob("runs/*.log")),
    )


def kept(folder: Path, names: tuple[str, ...] = NODES) -> dict[str, list[Row]]:
    return {name: trials(folder / "runs" / name) for name in names}


def nothing_lost(before: dict[str, list[Row]], folder: Path) -> None:
    for name, rows in before.items():
        assert trials(folder / "runs" / name)[: len(rows)] == rows


@pytest.mark.long
def test_a_fleet_of_single_nodes_that_is_cancelled_goes_on(slurm: Slurm, tmp_path: Path):
    folder = tmp_path / "fleet"
    done = submit(slurm, write(tmp_path, blocks=12, seconds=0.3), folder, "--nodes", 3)
    assert done.code == 0, done
    slurm.eventually("a trial of each", lambda: all(kept(folder).values()), PATIENCE_S)
    assert {*states(slurm, folder).values()} == {"running"} and status(slurm, folder)["driver"] == "running"
    slurm.must("scancel", job_of(folder))
    ends(slurm, folder)
    before = kept(folder)
    nothing_left(slurm, *(folder / "runs" / name for name in NODES))
    assert on_login(slurm, "fleet", "continue", folder, "--yes").code == 0
    ends(slurm, folder)
    assert states(slurm, folder) == dict.fromkeys(NODES, "finished")
    nothing_lost(before, folder)
    placed = {facts(folder / "runs" / name)["host local", "placed by"] for name in NODES}
    assert {each.split(" on ")[1] for each in placed} == {*NODES}
    nothing_left(slurm, *(folder / "runs" / name for name in NODES))


@pytest.mark.long
def test_pairs(slurm: Slurm, tmp_path: Path):
    folder = tmp_path / "fleet"
    done = submit(slurm, write(tmp_path, hosts=PAIR), folder, "--nodes", 3, "--partners", 1, "--alone", 0)
    assert done.code == 0, done
    ends(slurm, folder)
    found = states(slurm, folder)
    assert len(found) == 1 and {*found.values()} == {"finished"}
    nothing_left(slurm, *(folder / "runs" / name for name in found))


@pytest.mark.long
def test_a_node_set_down_in_the_middle_loses_the_others_nothing(slurm: Slurm, tmp_path: Path):
    folder = tmp_path / "fleet"
    assert submit(slurm, write(tmp_path, blocks=12, seconds=0.3), folder, "--nodes", 3).code == 0
    slurm.eventually("a trial of each", lambda: all(kept(folder).values()), PATIENCE_S)
    slurm.set_node("n3", "down")
    try:
        ends(slurm, folder)
        before, found = kept(folder), states(slurm, folder)
        assert found["n1"] == found["n2"] == "finished" and found["n3"] != "finished"
    finally:
        slurm.set_node("n3", "resume")
    slurm.await_nodes()
    assert on_login(slurm, "fleet", "continue", folder, "--yes").code == 0
    ends(slurm, folder)
    assert states(slurm, folder) == dict.fromkeys(NODES, "finished")
    nothing_lost(before, folder)


@pytest.mark.long
def test_a_job_that_is_requeued_goes_on(slurm: Slurm, tmp_path: Path):
    folder = tmp_path / "fleet"
    assert submit(slurm, write(tmp_path, blocks=12, seconds=0.3), folder, "--nodes", 3).code == 0
    slurm.eventually("a trial of each", lambda: all(kept(folder).values()), PATIENCE_S)
    slurm.must("scontrol", "requeue", job_of(folder))
    before = kept(folder)
    ends(slurm, folder)
    assert states(slurm, folder) == dict.fromkeys(NODES, "finished")
    nothing_lost(before, folder)


def test_a_folder_that_the_nodes_do_not_see(slurm: Slurm, tmp_path: Path):
    folder = Path("/run/fleet")  # of the login node alone
    assert submit(slurm, write(tmp_path), folder, "--nodes", 1).code == 0
    slurm.eventually("the job ends", lambda: status(slurm, folder)["driver"] == "ended")
    assert "storage that all nodes share" in status(slurm, folder)["detail"]


@pytest.mark.long
def test_an_array_measures_each_node_once_and_waits_for_a_busy_one(slurm: Slurm, tmp_path: Path):
    folder = tmp_path / "fleet"
    hold = slurm.must(
        "sbatch", "--parsable", "--nodelist=n2", "--exclusive", "--output=/dev/null", "--wrap=sleep 600"
    )
    slurm.eventually("n2 is busy", lambda: slurm.state_of(hold.strip()) == "RUNNING")
    assert submit(slurm, write(tmp_path), folder, "--nodes", 3, "--array", 1).code == 0
    free = {"n1": "finished", "n3": "finished"}
    slurm.eventually("the others are measured", lambda: states(slurm, folder) == free, 4 * PATIENCE_S)
    slurm.eventually("one waits", lambda: status(slurm, folder)["driver"] == "waiting", PATIENCE_S)
    slurm.must("scancel", hold.strip())
    slurm.eventually("the jobs end", lambda: status(slurm, folder)["driver"] == "ended", 4 * PATIENCE_S)
    assert states(slurm, folder) == {**free, "n2": "finished"}


@pytest.mark.long
def test_a_controller_that_restarts_in_the_middle_loses_nothing(slurm: Slurm, tmp_path: Path):
    folder = tmp_path / "fleet"
    assert submit(slurm, write(tmp_path, blocks=12, seconds=0.3), folder, "--nodes", 3).code == 0
    slurm.eventually("a trial of each", lambda: all(kept(folder).values()), 2 * PATIENCE_S)
    slurm.login.kill("slurmctld")
    try:
        told = status(slurm, folder)
        assert told["driver"] == "unknown" and "controller does not answer" in told["detail"]
    finally:
        slurm.start_controller()
    slurm.eventually("it answers", lambda: slurm.state_of(job_of(folder)) != "")
    ends(slurm, folder)
    assert states(slurm, folder) == dict.fromkeys(NODES, "finished")
    nothing_left(slurm, *(folder / "runs" / name for name in NODES))


@pytest.mark.long
def test_a_queue_that_takes_no_more_jobs(slurm: Slurm, tmp_path: Path):
    configuration = slurm.folder / "slurm.conf"
    usual = configuration.read_text()
    for _ in range(2):
        slurm.must("sbatch", "--partition=closed", "--output=/dev/null", "--wrap=true")

    def restart(text: str) -> None:
        configuration.write_text(text)
        slurm.login.kill("slurmctld")
        slurm.start_controller()
        slurm.eventually("it answers", lambda: slurm.run("sinfo").returncode == 0)

    try:
        restart(f"{usual}MaxJobCount=2\n")
        done = submit(slurm, write(tmp_path), tmp_path / "fleet", "--nodes", 1)
    finally:
        restart(usual)
    done.must_fail(Unavailable.exit_code, "queue is full")
    assert not (tmp_path / "fleet").exists()


@pytest.mark.long
def test_a_node_with_another_weighbridge_is_told_before_anything_runs(slurm: Slurm, tmp_path: Path):
    folder, other = tmp_path / "fleet", tmp_path / "METADATA"
    distribution = next(metadata.distributions(name="weighbridge"))
    here = distribution.locate_file(f"weighbridge-{distribution.version}.dist-info/METADATA")
    other.write_text("Metadata-Version: 2.4\nName: weighbridge\nVersion: 9.9.9\n")
    slurm.nodes["n2"].must("mount", "--bind", other, str(here))
    try:
        assert submit(slurm, write(tmp_path), folder, "--nodes", 3).code == 0
        ends(slurm, folder)
    finally:
        slurm.nodes["n2"].must("umount", str(here))
    assert "n2: its Weighbridge has version 9.9.9, but this one has" in (folder / "drive.log").read_text()
    assert not any(kept(folder).values())


@pytest.mark.long
def test_a_fleet_that_is_cancelled_in_order_has_reports(slurm: Slurm, tmp_path: Path):
    folder = tmp_path / "fleet"
    assert submit(slurm, write(tmp_path, blocks=60, seconds=0.3), folder, "--nodes", 3).code == 0
    slurm.eventually("a trial of each", lambda: all(kept(folder).values()), PATIENCE_S)
    assert on_login(slurm, "fleet", "cancel", folder).code == 0
    ends(slurm, folder)
    assert {run["exit_code"] for run in status(slurm, folder)["runs"]} == {143}
    assert all((folder / "runs" / name / "report.html").exists() for name in NODES)
    nothing_left(slurm, *(folder / "runs" / name for name in NODES))


def test_more_nodes_than_there_are(slurm: Slurm, tmp_path: Path):
    done = submit(slurm, write(tmp_path), tmp_path / "fleet", "--nodes", 4)
    done.must_fail(Unavailable.exit_code, "has 3 nodes, fewer than the 4 of --nodes")
    assert not (tmp_path / "fleet").exists()


def test_a_job_that_waits_is_told_and_cancelled(slurm: Slurm, tmp_path: Path):
    folder = tmp_path / "fleet"
    done = submit(slurm, write(tmp_path), folder, "--nodes", 1, "--partition", "closed")
    assert done.code == 0 and "PENDING (PartitionDown)" in done.stdout, done
    assert on_login(slurm, "fleet", "cancel", folder).code == 0
    assert slurm.state_of(job_of(folder)) == "CANCELLED"


@pytest.mark.long
def test_a_time_limit_in_the_middle_of_a_round(slurm: Slurm, tmp_path: Path):
    folder = tmp_path / "fleet"
    assert submit(slurm, write(tmp_path, blocks=60, seconds=1), folder, "--nodes", 3, "--time", 1).code == 0
    slurm.eventually("the time is over", lambda: slurm.state_of(job_of(folder)) == "TIMEOUT", 150)
    before = kept(folder)
    assert all(before.values())
    nothing_left(slurm, *(folder / "runs" / name for name in NODES))
    assert "TIMEOUT" in status(slurm, folder)["detail"]
    assert on_login(slurm, "fleet", "continue", folder, "--yes").code == 0
    time.sleep(5)
    slurm.must("scancel", job_of(folder))
    ends(slurm, folder)
    nothing_lost(before, folder)
