"""The user's own Docker engine: only what is ours is touched in it."""

import os
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import docker
import pytest

from weighbridge.model.facts import OUTERMOST_GROUP
from weighbridge.model.userland import Userland

from .machine import Machine
from .users_engine import own_engine, socket_of
from .weighing import DOCKER, NATIVE, PROGRAM, REDIS, facts, trials, weighbridge, write_study


@pytest.fixture(scope="module")
def own(small_userland: Userland, tmp_path_factory: pytest.TempPathFactory) -> Iterator[docker.DockerClient]:
    with own_engine(small_userland, tmp_path_factory.mktemp("own")) as engine:
        yield engine


def everything(client: docker.DockerClient) -> set[tuple[str, str]]:
    found = {("container", container.name) for container in client.containers.list(all=True)}
    found |= {("network", network.name) for network in client.networks.list()}
    found |= {("volume", volume.name) for volume in client.volumes.list()}
    return found | {("image", str(image.tags)) for image in client.images.list()}


def test_only_what_is_ours_is_removed(own: docker.DockerClient, machine: Machine, tmp_path: Path):
    own.volumes.create("users-data")
    before = everything(own)
    address = {"DOCKER_HOST": f"unix://{socket_of(own)}"}
    on_volume = DOCKER.replace("{kind: docker,", "{kind: docker, storage: volume,")
    assert on_volume != DOCKER
    study = write_study(tmp_path, environments=(NATIVE, on_volume), workloads=(REDIS,), blocks=1)
    done = weighbridge("run", study, "--out", tmp_path / "run", "--yes", env=address)
    assert done.code == 0, done
    assert "private" not in done.stderr
    assert len(trials(tmp_path / "run")) == 2
    told = facts(tmp_path / "run")
    groups = {told[f"{name}/server", OUTERMOST_GROUP] for name in ("native", "bridge")}
    assert groups == {"weighbridge"}, "they compete for CPUs in the same place"
    assert everything(own) == before
    assert own.containers.get("foreign").status == "running"


def test_clean_removes_what_a_killed_run_left_in_it(own: docker.DockerClient, machine: Machine, tmp_path: Path):
    before = everything(own)
    address = {"DOCKER_HOST": f"unix://{socket_of(own)}"}
    study = write_study(tmp_path, environments=(NATIVE, DOCKER), workloads=(REDIS,), blocks=30)
    with subprocess.Popen(
        ["timeout", "--signal", "KILL", "60", *PROGRAM, "run", study, "--out", tmp_path / "run", "--yes"],
        env={**os.environ, **address}, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    ) as run:  # fmt: skip
        deadline = time.monotonic() + 60
        while len(trials(tmp_path / "run")) < 2:
            assert run.poll() is None and time.monotonic() < deadline
            time.sleep(0.02)
        subprocess.run(["pkill", "--signal", "KILL", "--parent", str(run.pid)], check=True)
    assert everything(own) > before
    listed = weighbridge("clean", "--check", env=address)
    listed.must_fail(1)
    assert {"container", "network", "image"} <= {line.split()[0] for line in listed.stdout.splitlines()}
    cleaned = weighbridge("clean", env=address)
    assert cleaned.code == 0, cleaned
    assert everything(own) == before
    assert own.containers.get("foreign").status == "running"
