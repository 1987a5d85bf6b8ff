"""OCI runtimes for real: runc, crun and youki under one engine, read back from the engine and the process tree."""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from weighbridge import registry
from weighbridge.engines.runtimes import STOCK, is_path
from weighbridge.errors import Unavailable
from weighbridge.hosts import testbed
from weighbridge.hosts.local import LocalHost
from weighbridge.linux.process import which
from weighbridge.model.command import Command
from weighbridge.model.environment import Needs
from weighbridge.model.facts import MEMORY_LIMIT, RUNTIME, RUNTIME_PROGRAM, RUNTIME_SUPERVISOR
from weighbridge.model.host import Limits, RunContext
from weighbridge.model.site import Site, SiteRequest
from weighbridge.model.userland import Userland

from .conftest import open_run
from .machine import Machine
from .programs import started
from .users_engine import bare_engine, socket_of

pytestmark = [
    pytest.mark.skipif(shutil.which("dockerd") is None, reason="needs dockerd"),
    pytest.mark.promise("the OCI runtime of a study makes its containers, and the facts name it"),
]
DOCKER, PODMAN = (registry.environments()[kind] for kind in ("docker", "podman"))
RUNTIMES = (STOCK, "crun", "youki")
PROGRAMS = {name: which(name) or "" for name in RUNTIMES}
LIMITS = Limits(cpus=0.5, memory=256 * 2**20, cpuset="0")


def needs(name: str, *more: str) -> Any:
    """A parameter for a runtime, which is skipped where a program of it is missing."""
    missing = [each for each in (name, *more) if which(each) is None]
    return pytest.param(name, marks=pytest.mark.skipif(bool(missing), reason=f"needs {' and '.join(missing)}"))


def request(run: RunContext, name: str, userland: Userland, host: Any = None) -> SiteRequest:
    return SiteRequest(run, host or LocalHost(run.id), name, "solo", userland, LIMITS, environment=name)


# Before the sites of this module are open: runs of one process share the packet filter.
@pytest.mark.parametrize("name", [needs("crun"), needs("youki")])
def test_the_engine_of_a_testbed_host_knows_it(name: str, machine: Machine, small_userland: Userland):
    options = registry.hosts()["testbed"].options(kind="testbed")
    with open_run("0c10c10c1001") as run:
        host = run.stack.enter_context(testbed.testbed_host("near", options, run))  # type: ignore[arg-type]
        opened = DOCKER.open(DOCKER.options(network="none", runtime=name), request(run, name, small_userland, host))
        assert run.stack.enter_context(opened).facts()[RUNTIME].split()[0] == name
    machine.must_be_unchanged()


@pytest.mark.parametrize("name", [needs("runc", "podman"), needs("crun", "podman")])
def test_podman_has_the_runtime_that_it_is_told(name: str, machine: Machine, small_userland: Userland):
    with open_run("0c10c10c1002") as run:
        opened = PODMAN.open(PODMAN.options(network="none", runtime=name), request(run, name, small_userland))
        site = run.stack.enter_context(opened)
        assert site.run(Command(("true",))).returncode == 0
        facts = site.facts()
        assert (facts[RUNTIME].split()[0], facts[RUNTIME_SUPERVISOR]) == (name, "conmon")
        assert Path(facts[RUNTIME_PROGRAM]).name == name
    machine.must_be_unchanged()


def test_a_program_with_another_s_name_is_an_error(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, small_userland: Userland
):
    """Here crun in PATH is a link to runc. On a testbed host, because other runs can have an engine here."""
    (tmp_path / "crun").symlink_to(PROGRAMS[STOCK])
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    options = registry.hosts()["testbed"].options(kind="testbed")
    with open_run("0c10c10c1003") as run, pytest.raises(Unavailable, match="is runc"):
        host = run.stack.enter_context(testbed.testbed_host("near", options, run))  # type: ignore[arg-type]
        opened = DOCKER.open(
            DOCKER.options(network="none", runtime="crun"), request(run, "liar", small_userland, host)
        )
        run.stack.enter_context(opened)


def test_the_users_engine_must_have_registered_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    with bare_engine(tmp_path) as client:
        monkeypatch.setenv("DOCKER_HOST", f"unix://{socket_of(client)}")
        asked = Needs(network=True)
        assert DOCKER.ready(DOCKER.options(runtime=STOCK), asked).ready
        lacks = DOCKER.ready(DOCKER.options(runtime="crun"), asked)
        assert not lacks.ready and "has not registered the runtime crun" in lacks.detail
        assert "runc " in DOCKER.ready().detail


@pytest.fixture(scope="module")
def sites(small_userland: Userland) -> Iterator[dict[str, Site]]:
    """A container of each runtime here, all of one engine that the run starts; crun also by its path."""
    wanted = {name: name for name in RUNTIMES if PROGRAMS[name]}
    by_path = next((PROGRAMS[name] for name in RUNTIMES[1:] if PROGRAMS[name]), "")
    with open_run("0c10c10c1000") as run:
        run.runtimes = (by_path,) if by_path else ()
        wanted |= {"by path": by_path} if by_path else {}
        yield {
            name: run.stack.enter_context(
                DOCKER.open(
                    DOCKER.options(network="none", runtime=runtime),
                    request(run, name.replace(" ", "-"), small_userland),
                )
            )
            for name, runtime in wanted.items()
        }


@pytest.mark.parametrize("name", [needs(name) for name in RUNTIMES])
def test_it_is_read_back_from_the_engine_and_the_process_tree(name: str, sites: dict[str, Site]):
    facts = sites[name].facts()
    assert facts[RUNTIME].split()[0] == name and facts[RUNTIME].split()[1][0].isdigit()
    assert Path(facts[RUNTIME_PROGRAM]).name == name
    assert facts[RUNTIME_SUPERVISOR] == "containerd-shim-runc-v2"


@pytest.mark.parametrize("name", [needs(name) for name in RUNTIMES])
def test_programs_files_limits_and_deadlines(name: str, sites: dict[str, Site]):
    site = sites[name]
    site.put("/tmp/a", b"x" * 300_000)
    assert site.read("/tmp/a") == b"x" * 300_000
    assert site.run(Command(("sh", "-c", "exit 7"))).returncode == 7
    assert site.run(Command(("sleep", "60"), deadline_s=0.3)).timed_out
    assert not [fact for fact in site.facts() if fact.startswith("not honoured")]
    assert site.facts()[MEMORY_LIMIT] == "256 MiB"


@pytest.mark.parametrize("name", [needs(name) for name in RUNTIMES])
def test_it_can_be_frozen(name: str, sites: dict[str, Site]):
    site = sites[name]
    with started(site, "sh", "-c", "while :; do :; done"):
        site.freeze()
        used = site.meters()["cpu_s"]
        assert site.meters()["cpu_s"] == pytest.approx(used, abs=0.01)
        site.thaw()


@pytest.mark.skipif(not any(PROGRAMS[name] for name in RUNTIMES[1:]), reason="needs crun or youki")
def test_a_path_of_the_study_is_registered(sites: dict[str, Site]):
    program = sites["by path"].facts()[RUNTIME_PROGRAM]
    assert is_path(program) and program in PROGRAMS.values()
