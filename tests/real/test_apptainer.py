"""Apptainer: what is claimed of its containers holds, for root and for a user, and nothing of them is left."""

import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from weighbridge import registry
from weighbridge.errors import Unavailable
from weighbridge.facts.site import about_site
from weighbridge.hosts.local import LocalHost
from weighbridge.linux.memory_folders import MEMORY
from weighbridge.model.command import Command
from weighbridge.model.host import Limits, RunContext
from weighbridge.model.site import DATA, SiteRequest, SiteStorage
from weighbridge.model.userland import Userland
from weighbridge.runner import clean
from weighbridge.runner import run_lock as state
from weighbridge.runner.run import run_study
from weighbridge.study.loader import load
from weighbridge.userland.products import sif

from .apptainer import copy
from .conftest import open_run
from .inside import must_kill_what_takes_too_much, sh
from .machine import Machine
from .test_unprivileged import USER, as_user, home, user  # noqa: F401 - fixtures
from .weighing import Silent, facts, trials, write_study

RUN, OTHER = "a99a99a99a99", "a88a88a88a88"
MIB = 2**20
KINDS: dict[str, dict[str, Any]] = {
    "squashfs": {},
    "folder": {"image": "folder"},
    "contained": {"contain": True},
    "contained-folder": {"contain": True, "image": "folder"},
    "user-namespace": {"user_namespace": True},
}


@pytest.fixture(autouse=True)
def _there(apptainer: str) -> None:
    if apptainer:
        pytest.skip(apptainer)


def open_site(run: RunContext, userland: Userland, options: dict[str, Any], name: str = "") -> Any:
    environment, directory = registry.environments()["apptainer"], registry.storage()["directory"]
    chosen = directory.options.model_validate({"kind": "directory"})
    storage = SiteStorage("directory", lambda mount: directory.open(chosen, mount))
    limits = Limits(cpus=0.5, memory=128 * MIB, cpuset="0")
    host = LocalHost(run.id)
    request = SiteRequest(run, host, name or "1-server", "server", userland, limits, storage=storage)
    return run.stack.enter_context(environment.open(environment.options(**options), request))


@pytest.fixture(scope="module")
def sites(small_userland: Userland, apptainer: str) -> Iterator[dict[str, Any]]:
    """One of each; the machine is compared before and after."""
    if apptainer:
        pytest.skip(apptainer)
    before = Machine.as_it_is()
    with open_run(RUN) as run:
        native = registry.environments()["native"]
        client = SiteRequest(run, LocalHost(run.id), "client", "client", small_userland, Limits())
        yield {
            **{name: open_site(run, small_userland, options, f"{name}-server") for name, options in KINDS.items()},
            "client": run.stack.enter_context(native.open(native.options(), client)),
        }
    before.must_be_unchanged()


@pytest.fixture(params=KINDS)
def site(request: pytest.FixtureRequest, sites: dict[str, Any]) -> Any:
    return sites[request.param]


def test_only_what_is_in_memory_and_data_can_be_written_to(site: Any):
    for path in ("/x", "/usr/x", "/etc/x", "/var/x", "/var/tmp/x"):
        assert sh(site, f"echo x > {path}").returncode != 0, path
    for path in ("/tmp/x", "/run/x", "/dev/shm/x", f"{DATA}/x"):
        assert sh(site, f"echo x > {path} && cat {path} && rm {path}").stdout == b"x\n", path
    for path in ("/tmp", "/run", "/dev/shm"):
        assert sh(site, f"stat -f -c %T {path}").text.strip() == "tmpfs"
        assert sh(site, f"stat -c %a {path}").text.strip() == "1777"
    assert sh(site, f"stat -f -c %T {DATA}").text.strip() != "tmpfs"


def test_nothing_of_the_users_is_there(site: Any, sites: dict[str, Any]):
    listed = sh(site, "ls -A /root /home").text
    assert listed == sh(sites["client"], "ls -A /root /home").text
    assert sh(site, "ls -A /tmp /dev/shm").text.split() == ["/dev/shm:", "/tmp:"]
    told = site.facts()
    assert told["mounted from outside"].split() == ["/etc/group", "/etc/passwd", "/etc/resolv.conf"]


def test_it_says_what_it_is(site: Any, sites: dict[str, Any]):
    told = {**site.facts(), **about_site(site)}
    contained = site in (sites["contained"], sites["contained-folder"])
    own = {*told["namespaces"].split()}
    assert {"mnt"} <= own and (own >= {"pid", "ipc"}) is contained, told
    assert told["seccomp"] == "off" and told["apptainer"][0].isdigit()
    assert told["rights"] == ("user namespace" if "user" in own else "root")
    assert not [key for key in told if key.startswith("not honoured")], told
    assert Path(f"/proc/{site.pid}/root/run/weighbridge-launcher").exists()
    seen = len(sh(site, "ls -d /proc/[0-9]*").text.split())
    assert (seen <= 5) is contained


def test_the_memory_limit_kills_what_takes_too_much(site: Any):
    must_kill_what_takes_too_much(site)


def cpu_s_at_rest(site: Any) -> float:
    """The site's CPU time once squashfuse, which is not frozen, has answered what it was asked until then."""
    now = site.meters()["cpu_s"]
    for _ in range(20):
        before = now
        time.sleep(0.05)
        if (now := site.meters()["cpu_s"]) == before:
            break
    return float(now)


@pytest.mark.long
def test_frozen_makes_no_progress(site: Any):
    running = site.start(Command(("sh", "-c", "while :; do ls -lR /usr/share > /dev/null; done")))
    try:
        for _ in range(5):
            assert not running.wait(0.2)
            site.freeze()
            before = cpu_s_at_rest(site)
            assert not running.wait(0.2) and site.meters()["cpu_s"] == before
            site.thaw()
        assert not running.wait(0.2) and site.meters()["cpu_s"] > before
    finally:
        running.stop()


def test_a_damaged_image_is_one_sentence(
    small_userland: Userland, machine: Machine, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    damaged = tmp_path / "userland.sif"
    damaged.write_bytes(b"#!/usr/bin/env run-singularity\n" + b"x" * 2 * MIB)
    monkeypatch.setattr(sif, "ensure", lambda *_: damaged)
    with open_run(OTHER) as run:
        with pytest.raises(Unavailable, match=r"userland\.sif") as caught:
            open_site(run, small_userland, {})
        assert "\n" not in str(caught.value)


@pytest.mark.parametrize("frozen", [False, True], ids=["running", "frozen"])
@pytest.mark.parametrize("name", ["squashfs", "contained"])
def test_what_a_killed_run_leaves_is_found_and_removed(
    small_userland: Userland, machine: Machine, name: str, frozen: bool
):
    ready, go = os.pipe()
    child = os.fork()
    if child == 0:  # a run that is killed: nothing of it is closed
        with open_run(OTHER) as run:
            site = open_site(run, small_userland, KINDS[name])
            site.start(Command(("sleep", "600"), 900))
            if frozen:
                site.freeze()
            os.write(go, b"1")
            os.kill(os.getpid(), 9)
    assert os.read(ready, 1) == b"1"
    os.waitpid(child, 0)
    left = {leftover.kind for leftover in clean.find().left if leftover.run == OTHER}
    assert {"control group", "state folder", "folder in memory"} <= left and ("process" in left) >= frozen
    clean.sweep(OTHER)
    state.forget(OTHER)
    assert not [leftover for leftover in clean.find().left if leftover.run == OTHER]
    assert not [*MEMORY.glob(f"weighbridge_{OTHER}*")]


STUDY = """
study: containers
question: What does Apptainer cost?
resources: {cpus: 1, memory: 512MiB}
baseline: native
aa: false
environments:
  native: {kind: native}
  image: {kind: apptainer}
  contained: {kind: apptainer, contain: true, image: folder, user_namespace: true}
workloads:
  tcp: {kind: iperf3, amount: 16MiB}
  redis: {kind: redis-benchmark, requests: 2000, clients: 5, tests: set}
repetitions: {blocks: 1}
"""


@pytest.mark.promise("a container of Apptainer is measured, of a mounted image and of a folder")
def test_a_study(tmp_path: Path, machine: Machine):
    path = tmp_path / "study.yaml"
    path.write_text(STUDY)
    run_study(load(str(path)), tmp_path / "run", Silent(), lambda _: None)
    rows = trials(tmp_path / "run")
    assert {row["outcome"] for row in rows} == {"ok"} and len(rows) == 6, [row["message"] for row in rows]
    told = facts(tmp_path / "run")
    assert told["contained/server", "rights"] == "user namespace"


@pytest.fixture
def users_path(user: Path, apptainer: str) -> dict[str, str]:  # noqa: F811 - the fixture
    """PATH of a user, who cannot read root's cache, with Apptainer."""
    programs = Path(shutil.which("apptainer") or "").parent
    if (programs.parent / "usr/lib").is_dir() and programs.name == "bin" and (programs.parent / "usr/var").exists():
        programs = copy(programs, user / "apptainer")
    return {"PATH": f"{programs}:/usr/sbin:/usr/bin:/sbin:/bin"}


AS_ON_MOST_MACHINES = """set -e
cp /etc/passwd /etc/group "$0"
echo "weigher:x:54321:54321::$0:/bin/sh" >> "$0/passwd"
echo "weigher:x:54321:" >> "$0/group"
mount --bind "$0/passwd" /etc/passwd
mount --bind "$0/group" /etc/group
mknod -m 666 "$0/fuse" c 10 229
mount --bind "$0/fuse" /dev/fuse
exec "$@"
"""
"""In a mount namespace the user has a name, and may open /dev/fuse."""


def own_files(place: Path, made: Path) -> None:
    """A userland as a user has unpacked it, in place of a link to root's files."""
    place.unlink()
    subprocess.run(["cp", "-a", made, place], check=True)
    shutil.rmtree(place / "root/dev")
    (place / "root/dev").mkdir()
    subprocess.run(["chown", "-hR", f"{USER}:{USER}", place], check=True)


@pytest.mark.promise("a user without root measures a container of Apptainer")
@pytest.mark.long
@pytest.mark.parametrize("squashfuse", [True, False], ids=["squashfuse", "without"])
def test_a_users_run(
    machine: Machine,
    user: Path,  # noqa: F811 - the fixture
    users_path: dict[str, str],
    small_userland: Userland,
    tmp_path: Path,
    squashfuse: bool,
):
    environments = (
        "native: {kind: native}",
        "image: {kind: apptainer, contain: true}",
        "folder: {kind: apptainer, image: folder}",
    )
    study = user / "study.yaml"
    workloads = ("cpu: {kind: sysbench-cpu, count: 100}",)
    shutil.copy(write_study(tmp_path, environments=environments, workloads=workloads, blocks=1), study)
    own_files(user / ".cache/weighbridge/userlands/all", small_userland.root.parent)
    if not squashfuse:
        for program in Path(users_path["PATH"].partition(":")[0]).glob("squashfuse*"):
            program.unlink()
    prefix = ("unshare", "--mount", "sh", "-c", AS_ON_MOST_MACHINES, str(user))
    done = as_user(user, "run", study, "--out", user / "run", "--yes", env=users_path, prefix=prefix)
    assert done.code == 0, done
    assert {row["outcome"] for row in trials(user / "run")} == {"ok"} and len(trials(user / "run")) == 3
    told = facts(user / "run")
    for name in ("image", "folder"):
        assert told[f"{name}/server", "rights"] == "user namespace", told
        assert told[f"{name}/server", "user"] == told["native/server", "user"]
    unpacked = [place for place, key in told if key == "not honoured: image"]
    assert unpacked == ([] if squashfuse else ["image/server"])
    checked = as_user(user, "clean", "--check", env=users_path)
    assert (checked.code, checked.stdout) == (0, "no leftovers\n"), checked
