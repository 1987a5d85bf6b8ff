"""A fleet of an ordinary user on a real Slurm: Apptainer without root on the nodes, and what is told of limits."""

import os
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import weighbridge as package
from weighbridge import registry
from weighbridge.model.userland import Userland, UserlandSpec
from weighbridge.userland.build import key_of

from . import slurm as real_slurm
from .apptainer import copy
from .slurm import Slurm, three_nodes
from .test_apptainer import own_files
from .test_slurm import job_of, nothing_left, states
from .test_unprivileged import PYTHON, USER
from .weighing import Ended, facts, trials

pytestmark = [pytest.mark.long, pytest.mark.skipif(bool(real_slurm.missing()), reason=real_slurm.missing())]
RUN_OF_USER = "514a514a514b"
STUDY = """
study: nodes
question: What does Apptainer cost whoever has no root?
baseline: native
aa: false
environments:
  native: {kind: native}
  image: {kind: apptainer}
  folder: {kind: apptainer, image: folder, contain: true}
workloads: {cpu: {kind: sysbench-cpu, duration: 1s}}
resources: {cpus: 0.5, memory: 200MiB}
repetitions: {blocks: 1}
"""
_FURNISH = """set -e
echo "weigher:x:$1:$1::$2:/bin/sh" >> /etc/passwd
echo "weigher:x:$1:" >> /etc/group
mknod -m 666 /run/fuse c 10 229
mount --bind /run/fuse /dev/fuse
"""


@pytest.fixture
def slurm() -> Iterator[Slurm]:
    """Three nodes, on which the user has a name and may open /dev/fuse."""
    folder = Path("/tmp") / f"weighbridge-test-slurm-{os.getpid()}"
    folder.mkdir()
    try:
        with three_nodes(folder, run_id=RUN_OF_USER) as started:
            for machine in (started.login, *started.nodes.values()):
                machine.must("sh", "-c", _FURNISH, "furnish", USER, folder / "home")
            yield started
    finally:
        shutil.rmtree(folder)


@pytest.fixture
def home(slurm: Slurm, small_userland: Userland, apptainer: str) -> Path:
    """A home that all nodes see, with a userland and Apptainer of the user's own."""
    if apptainer:
        pytest.skip(apptainer)
    home = slurm.folder / "home"
    userlands = home / ".cache/weighbridge/userlands"
    (userlands / "all").mkdir(parents=True)
    own_files(userlands / "all", small_userland.root.parent)
    spec = UserlandSpec.union([registry.workloads()["sysbench-cpu"].userland()])
    (userlands / key_of(spec)).symlink_to(userlands / "all")
    programs = Path(shutil.which("apptainer") or "").parent
    if (programs.parent / "usr/var").exists():
        copy(programs, home / "apptainer")
    for path in (home, home / ".cache", home / ".cache/weighbridge", userlands):
        os.chown(path, USER, USER)
    return home


def as_user(slurm: Slurm, home: Path, *words: object) -> Ended:
    """Run our program on the login node as the user, with an interpreter that the user can read."""
    libraries = next(path for path in sys.path if path.endswith("site-packages"))
    environment = {
        **slurm.variables, "HOME": str(home), "PATH": f"{home}/apptainer/bin:/usr/sbin:/usr/bin:/sbin:/bin",
        "PYTHONPATH": f"{Path(package.__file__).parent.parent}:{libraries}", "PYTHONDONTWRITEBYTECODE": "1",
        "WEIGHBRIDGE_BESIDE_OTHERS": "yes", "WEIGHBRIDGE_REHEARSAL": "yes", "LANG": "C.UTF-8",
    }  # fmt: skip
    drop = ("env", "-u", "WEIGHBRIDGE_CACHE", "setpriv", "--reuid", USER, "--regid", USER, "--clear-groups")
    argv = map(str, (*drop, PYTHON, "-m", "weighbridge", *words))
    done = slurm.login.run(*argv, deadline_s=120, env=environment)
    return Ended(done.returncode, done.text, done.stderr.decode(errors="replace"))


@pytest.mark.promise("a user without root measures Apptainer on the nodes of a Slurm job")
def test_a_users_fleet(slurm: Slurm, home: Path):
    if as_user(slurm, home, "--help").code != 0:
        pytest.skip("no interpreter that another user can read")
    (home / "study.yaml").write_text(STUDY)
    folder = home / "fleet"
    words = ("fleet", "submit", home / "study.yaml", "--on", "slurm", "--nodes", 2, "--out", folder, "--yes")
    done = as_user(slurm, home, *words)
    assert done.code == 0, done
    job = job_of(folder)
    slurm.eventually("the job ends", lambda: slurm.state_of(job) not in ("PENDING", "RUNNING", "COMPLETING"), 400)
    told = (folder / "drive.log").read_text()
    assert "the limit of cpus, memory has no effect in native, image, folder" in told.partition("round 1")[0], told
    assert states(slurm, folder) == dict.fromkeys(("n1", "n2"), "finished")
    for name in ("n1", "n2"):
        run = folder / "runs" / name
        assert [row["outcome"] for row in trials(run)] == ["ok"] * 3 and run.stat().st_uid == USER
        known = facts(run)
        assert known["image/server", "rights"] == known["folder/server", "rights"] == "user namespace"
        assert known["image/server", "image"] == "squashfs, mounted by squashfuse"
    nothing_left(slurm, folder / "runs/n1", folder / "runs/n2")
