"""An engine whose program a study names, beside the usual one: each is what its environment is measured in."""

import shutil
from pathlib import Path

import pytest

from weighbridge.linux.process import which

from .between import HOSTS
from .machine import Machine
from .weighing import facts, trials, weighbridge, write_study

PROGRAMS = ("dockerd", "containerd", "containerd-shim-runc-v2", "runc", "docker-proxy")
PLACED = (f"hosts: {{{HOSTS[0]}}}", "placement: {client: a, server: a}", "inside: [server, client]")
TCP = "tcp: {kind: iperf3, amount: 16MiB}"


@pytest.fixture
def own(tmp_path: Path) -> Path:
    """A copy of this machine's engine in another folder."""
    folder = tmp_path / "engine"
    folder.mkdir(mode=0o755)
    for name in PROGRAMS:
        if (found := which(name)) is not None:
            shutil.copy(found, folder / name)
    return folder / "dockerd"


def environments(own: Path) -> tuple[str, ...]:
    return (
        "native: {kind: native}",
        "old: {kind: docker, network: bridge}",
        f"new: {{kind: docker, network: bridge, dockerd: {own}}}",
    )


def test_two_engines_are_measured_in_one_run_and_nothing_is_left(machine: Machine, tmp_path: Path, own: Path):
    study = write_study(tmp_path, environments=environments(own), workloads=(TCP,), further=PLACED)
    planned = weighbridge("plan", study)
    assert planned.code == 0 and f"{own} (environments.new.dockerd)" in planned.stdout, planned
    done = weighbridge("run", study, "--out", tmp_path / "run", "--yes")
    assert done.code == 0, done
    assert {(row["environment"], row["outcome"]) for row in trials(tmp_path / "run")} == {
        (name, "ok") for name in ("native", "old", "new")
    }
    found = facts(tmp_path / "run")
    assert ("old/server", "dockerd") not in found and found["new/server", "dockerd"] == str(own)
    for name in ("docker", "containerd", "runc", "storage driver"):
        assert found["old/server", name] == found["new/server", name] != "?"
    assert ("programs", str(own)) in found
    assert found["old/server", "host"] != found["new/server", "host"]
    machine.must_be_unchanged()


def test_on_this_machine_itself_it_is_the_only_engine(machine: Machine, tmp_path: Path, own: Path):
    """Not beside another one, which is told; where all environments have it, it is measured."""
    study = write_study(tmp_path, environments=environments(own), workloads=(TCP,), blocks=1)
    weighbridge("run", study, "--out", tmp_path / "both", "--yes").must_fail(4, "use hosts of kind testbed")
    (new,) = environments(own)[2:]
    study = write_study(tmp_path, environments=("native: {kind: native}", new), workloads=(TCP,), blocks=1)
    done = weighbridge("run", study, "--out", tmp_path / "run", "--yes")
    assert done.code == 0, done
    assert facts(tmp_path / "run")["new/server", "dockerd"] == str(own)
    machine.must_be_unchanged()


def test_a_program_that_is_no_engine_is_told(machine: Machine, tmp_path: Path, own: Path):
    own.write_text("#!/bin/sh\necho I am no engine >&2; exit 1\n")
    study = write_study(tmp_path, environments=environments(own), workloads=(TCP,), further=PLACED)
    weighbridge("run", study, "--out", tmp_path / "run", "--yes").must_fail(
        4, "dockerd did not start: I am no engine"
    )
    machine.must_be_unchanged()
