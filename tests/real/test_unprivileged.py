"""Without root: what works, what cannot be honoured, and that both are said."""

import functools
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import weighbridge as package
from documents import doctor_rows
from weighbridge import registry
from weighbridge.model.userland import Userland, UserlandSpec
from weighbridge.runner.preflight import ready
from weighbridge.userland.build import key_of

from .conftest import copy_parts_of_pages
from .machine import Machine
from .test_weigh import values
from .users_engine import own_engine, socket_of
from .weighing import DOCKER, NATIVE, REDIS, Ended, facts, run_id, trials, write_study

UML = ready(registry.environments()["uml"])
USER = 54321
PYTHON = "/usr/bin/python3"


@pytest.fixture
def home(users_userland: Path, cache: Path) -> Iterator[Path]:
    """A home that belongs to the user, with the userland in its cache. Pytest's own folders are root's alone."""
    folder = Path(tempfile.mkdtemp(prefix="weighbridge-test-home-", dir="/tmp"))
    kept = folder / ".cache/weighbridge"
    userlands, target = kept / "userlands", kept / "userlands/all"
    userlands.mkdir(parents=True)
    target.symlink_to(users_userland)
    shutil.copytree(cache / "programs", kept / "programs", ignore=shutil.ignore_patterns(".building-*"))
    copy_parts_of_pages(cache, kept)
    workloads = registry.workloads()
    for kinds in (("iperf3", "sysbench-cpu"), ("sysbench-cpu",), ("redis-benchmark",)):
        key = key_of(UserlandSpec.union(workloads[kind].userland() for kind in kinds))
        (userlands / key).symlink_to(target)
    subprocess.run(["chown", "-hR", f"{USER}:{USER}", folder], check=True)
    try:
        yield folder
    finally:
        shutil.rmtree(folder)


def as_user(
    home: Path,
    *arguments: object,
    env: Mapping[str, str] | None = None,
    cwd: Path | None = None,
    prefix: tuple[str, ...] = (),
) -> Ended:
    """Run a command of Weighbridge as the user, with an interpreter that the user can read."""
    with started_as_user(home, *arguments, env=env, cwd=cwd, prefix=prefix) as process:
        try:
            out, errors = process.communicate(timeout=200)
        except BaseException:
            process.kill()
            raise
    return Ended(process.returncode, out, errors)


def started_as_user(
    home: Path,
    *arguments: object,
    env: Mapping[str, str] | None = None,
    cwd: Path | None = None,
    prefix: tuple[str, ...] = (),
) -> "subprocess.Popen[str]":
    """Start it, behind a ``prefix`` that still is root."""
    code = Path(package.__file__).parent.parent
    libraries = next(path for path in sys.path if path.endswith("site-packages"))
    environment = {
        "HOME": str(home), "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
        "PYTHONPATH": f"{code}:{libraries}", "LANG": "C.UTF-8", "PYTHONDONTWRITEBYTECODE": "1",
        "WEIGHBRIDGE_REHEARSAL": "yes",
        "WEIGHBRIDGE_BESIDE_OTHERS": "yes",
        **(env or {}),
    }  # fmt: skip
    drop = ["setpriv", "--reuid", str(USER), "--regid", str(USER), "--clear-groups"]
    return subprocess.Popen(
        [*prefix, *drop, PYTHON, "-m", "weighbridge", *(str(argument) for argument in arguments)],
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment,
        cwd=cwd or home,
    )  # fmt: skip


@pytest.fixture
def user(home: Path) -> Path:
    """The home, where the user can run Weighbridge at all."""
    if refused := cannot_run():
        pytest.skip(f"no interpreter that another user can read: {refused}")
    return home


@functools.cache
def cannot_run() -> str:
    """Return why no user but root can run Weighbridge; "" if one can."""
    tried = as_user(Path("/"), "--help")
    return tried.stderr.strip().rpartition("\n")[2] if tried.code else ""


def test_doctor_says_what_needs_root(machine: Machine, user: Path):
    before = {path.name for path in Path("/tmp").iterdir()}
    done = as_user(user, "doctor", "--json")
    assert done.code == 0, done
    told = json.loads(done.stdout)
    rows = {row["name"]: row for row in doctor_rows(told)}
    assert rows["native"]["ready"]
    assert not rows["root"]["ready"]
    limits = rows["control groups"]
    assert limits["ready"] or "have no effect (reported as a confounder)" in limits["detail"]
    assert not rows["docker"]["ready"] and "root" in rows["docker"]["remedy"]
    assert as_user(user, "doctor").code == 0
    left = {path.name for path in Path("/tmp").iterdir()} - before
    assert not left & {f"containers-user-{USER}", f"podman-run-{USER}"}, "podman was asked"


def test_native_through_a_user_namespace(machine: Machine, user: Path, tmp_path: Path):
    workloads = ("tcp: {kind: iperf3, amount: 16MiB}", "cpu: {kind: sysbench-cpu, count: 100}")
    study = user / "study.yaml"
    shutil.copy(write_study(tmp_path, workloads=workloads, blocks=2, aa=True), study)
    run = user / "run"
    done = as_user(user, "run", study, "--out", run, "--yes")
    assert done.code == 0, done
    assert "Traceback" not in done.stderr
    assert {row["outcome"] for row in trials(run)} == {"ok"} and len(trials(run)) == 8
    known = facts(run)
    for scope in ("native/server", "native-again/server", "outside/client"):
        assert known[scope, "user"] == "unprivileged"
        assert {key for place, key in known if place == scope and key.startswith("not honoured")} == {
            "not honoured: cpus", "not honoured: memory",
        }  # fmt: skip
    assert len({value for (_, key), value in known.items() if key == "packages"}) == 1
    told = as_user(user, "report", run, "--all")
    assert "limit not applied" in told.stdout, told
    remarks = json.loads(as_user(user, "report", run, "--json").stdout)["remarks"]
    assert {each["limit"] for each in remarks if each["code"] == "confounder" and "limit" in each} == {
        "cpus",
        "memory",
    }
    checked = as_user(user, "clean", "--check")
    assert (checked.code, checked.stdout) == (0, "no leftovers\n"), checked
    assert not Path(f"/tmp/weighbridge-{USER}").exists()


def test_docker_needs_root_or_an_engine(machine: Machine, user: Path, tmp_path: Path):
    environments = ("native: {kind: native}", "none: {kind: docker, network: none}")
    study = user / "study.yaml"
    shutil.copy(write_study(tmp_path, environments=environments, workloads=("cpu: {kind: sysbench-cpu}",)), study)
    done = as_user(user, "run", study, "--out", user / "run", "--yes")
    done.must_fail(4, "none", "only root can start a private one")
    assert not (user / "run").exists()


def test_docker_through_an_engine_that_lets_the_user_in(user: Path, small_userland: Userland, tmp_path: Path):
    """As one in the group `docker`: signals to what runs as root in a container go through the engine."""
    study, run = user / "study.yaml", user / "run"
    shutil.copy(write_study(tmp_path, environments=(NATIVE, DOCKER), workloads=(REDIS,), blocks=1), study)
    with users_engine(user, small_userland) as (engine, address):
        before = {container.name for container in engine.containers.list(all=True)}
        done = as_user(user, "run", study, "--out", run, "--yes", env=address)
        assert done.code == 0, done
        assert {row["outcome"] for row in trials(run)} == {"ok"} and len(trials(run)) == 2
        assert {container.name for container in engine.containers.list(all=True)} == before


@pytest.mark.promise("without root, a program is weighed in a folder of whatever owner and group")
@pytest.mark.parametrize(
    ("owner", "group", "mode"),
    [(USER, 0, 0o2775), (0, USER, 0o2770), (0, 0, 0o700)],
)
def test_weigh_in_a_folder_of_others(machine: Machine, user: Path, owner: int, group: int, mode: int):
    """A shared checkout, /usr/share, and one that the user may not even read: natively and in the sandbox alike."""
    work = user / "work"
    work.mkdir()
    (work / "program").write_text("#!/bin/sh\ncat /dev/null && echo new > new && cat new\n")
    (work / "program").chmod(0o755)
    for path in (work / "program", work):
        os.chown(path, owner, group)
    work.chmod(mode)
    program = ("./program",) if mode != 0o700 else ("echo", "new")
    words = ("--in", "netns,bubblewrap", "--blocks", "1", "--out", user / "run", "--", *program)
    done = as_user(user, "weigh", *words, cwd=work)
    assert done.code == 0, done
    assert {(row["environment"], row["outcome"]) for row in trials(user / "run")} == {
        (name, "ok") for name in ("native", "netns", "bubblewrap", "native-again")
    }, done
    assert [path.name for path in work.iterdir()] == ["program"]


def test_weigh_in_tmp(machine: Machine, user: Path):
    """In /tmp itself, where many a user first tries it."""
    program = Path("/tmp") / f"weighbridge-test-program-{os.getpid()}"
    program.write_text(f"#!/bin/sh\ncp {program} {program}-new && cat {program}-new\n")
    program.chmod(0o755)
    words = ("--in", "netns,bubblewrap", "--blocks", "1", "--out", user / "run", "--", f"./{program.name}")
    try:
        done = as_user(user, "weigh", *words, cwd=program.parent)
        assert done.code == 0, done
        assert not program.with_name(f"{program.name}-new").exists()
    finally:
        program.unlink()
    assert {*values(user, "time")} == {"native", "netns", "bubblewrap", "native-again"}


@pytest.mark.skipif(not UML.ready, reason=UML.detail)
def test_weigh_in_a_second_kernel(machine: Machine, user: Path):
    words = ("dd", "if=/dev/zero", "of=/dev/null", "bs=1", "count=1000")
    done = as_user(user, "weigh", "--in", "uml", "--blocks", "1", "--out", user / "run", "--", *words)
    assert done.code == 0, done
    assert {*values(user, "time")} == {"native", "uml", "native-again"}
    told = facts(user / "run")
    assert told["uml/server", "root filesystem"] == "folder of the host (hostfs)"
    assert told["uml/server", "version: kernel"] != told["native/server", "version: kernel"]
    machine.must_be_unchanged()


PROGRAM_OF_THE_USERS = """
import json, os
open("out", "w").write("x" * 5000)
if os.path.exists("mine"):  # in the site's first run
    os.chmod("mine", 0o600)
    os.rename("mine", "folder/mine")
n = sum(number * number for number in range(150_000))
print(json.dumps({"user": os.getuid(), "group": os.getgid(), "roots": int(os.access("/etc/shadow", os.R_OK))}))
"""


def everything(engine: Any) -> set[tuple[str, str]]:
    found = {("container", each.name) for each in engine.containers.list(all=True)}
    found |= {("volume", each.name) for each in engine.volumes.list()}
    found |= {("network", each.name) for each in engine.networks.list()}
    return found | {("image", each.id) for each in engine.images.list(all=True)}


@pytest.fixture
def work(user: Path) -> Path:
    """A folder of the user's with a program, and a file and a folder that it changes."""
    folder = user / "work"
    (folder / "folder").mkdir(parents=True)
    (folder / "program.py").write_text(PROGRAM_OF_THE_USERS)
    (folder / "mine").write_text("as it was")
    for path in (folder, *folder.rglob("*")):
        os.chown(path, USER, USER)
    folder.chmod(0o700)
    return folder


WEIGHED = (
    "--metric", "user=json:$.user,lower,count", "--metric", "group=json:$.group,lower,count",
    "--metric", "roots=json:$.roots,lower,count", "--out", "../run", "--", PYTHON, "program.py",
)  # fmt: skip


@contextmanager
def users_engine(user: Path, userland: Userland) -> Iterator[tuple[Any, dict[str, str]]]:
    """An engine that lets the user in, as one in the group `docker`, with the variable by which it is found."""
    (user / "engine").mkdir()
    with own_engine(userland, user / "engine") as engine:
        os.chown(socket_of(engine), USER, USER)
        yield engine, {"DOCKER_HOST": f"unix://{socket_of(engine)}"}


def test_weigh_by_a_user_of_an_engine(user: Path, work: Path, small_userland: Userland):
    """As one in the group `docker`: the same rights on both sides, all in memory, nothing left in any place."""
    with users_engine(user, small_userland) as (engine, address):
        before, memory = everything(engine), {*Path("/dev/shm").iterdir()}
        done = as_user(user, "weigh", "--blocks", "3", *WEIGHED, env=address, cwd=work)
        assert done.code == 0, done
        for metric, value in (("user", USER), ("group", USER), ("roots", 0)):
            printed = values(user, metric)
            assert {*printed} == {"native", "native-again", "docker"}
            assert {each for found in printed.values() for each in found} == {float(value)}, metric
        of_sites = {
            place.partition("/")[0]: value for (place, key), value in facts(user / "run").items() if key == "user"
        }
        namespace = "unprivileged in a user namespace"
        assert of_sites.items() >= {"native": namespace, "native-again": namespace, "docker": "unprivileged"}.items()
        report = as_user(user, "report", user / "run", "--json").stdout
        assert namespace in report, "it is a confounder"
        assert sorted(path.name for path in work.iterdir()) == ["folder", "mine", "program.py"]
        assert (work / "mine").read_text() == "as it was"
        checked = as_user(user, "clean", "--check", env=address)
        assert (checked.code, checked.stdout) == (0, "no leftovers\n"), checked
        assert (everything(engine), {*Path("/dev/shm").iterdir()}) == (before, memory)


def test_clean_by_a_user_of_an_engine_after_kill_9(user: Path, work: Path, small_userland: Userland):
    with users_engine(user, small_userland) as (engine, address):
        before, memory = everything(engine), {*Path("/dev/shm").iterdir()}
        with started_as_user(user, "weigh", "--blocks", "900", *WEIGHED, env=address, cwd=work) as run:
            deadline = time.monotonic() + 60
            while len(trials(user / "run")) < 4:
                assert run.poll() is None and time.monotonic() < deadline
                time.sleep(0.02)
            run.kill()
        kinds = {kind for kind, _ in everything(engine) - before}
        assert kinds == {"container", "volume", "network", "image"}
        assert as_user(user, "clean", "--check", env=address).code == 1
        cleaned = as_user(user, "clean", env=address)
        assert (cleaned.code, cleaned.stdout.splitlines()[-1]) == (0, "no leftovers"), cleaned
        assert (everything(engine), {*Path("/dev/shm").iterdir()}) == (before, memory)
        assert (work / "mine").read_text() == "as it was"


def test_a_state_folder_that_somebody_else_made(machine: Machine, user: Path, tmp_path: Path):
    """Another user links what a run writes to a file of the user's: nothing begins, and the file stays."""
    study, mine = user / "study.yaml", user / "mine"
    shutil.copy(write_study(tmp_path, workloads=("cpu: {kind: sysbench-cpu, count: 100}",), blocks=1), study)
    mine.write_text("precious")
    os.chown(mine, USER, USER)
    foreign = Path(f"/tmp/weighbridge-{USER}")
    foreign.mkdir()
    try:
        os.chown(foreign, USER + 1, USER + 1)
        foreign.chmod(0o777)
        done = as_user(user, "run", study, "--out", user / "run", "--yes")
        done.must_fail(4, str(foreign), "XDG_RUNTIME_DIR")
        (foreign / run_id(user / "run")).mkdir()
        (foreign / run_id(user / "run") / "owner.json").symlink_to(mine)
        as_user(user, "run", study, "--out", user / "run", "--yes").must_fail(4, str(foreign))
        assert str(foreign) in as_user(user, "clean", "--check").stderr
    finally:
        shutil.rmtree(foreign)
    assert mine.read_text() == "precious"
