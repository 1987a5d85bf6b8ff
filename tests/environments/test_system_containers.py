"""What LXC and systemd-nspawn are told, and which networks they refuse."""

import os
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from sentences import assert_sentence, raises_sentence
from weighbridge import registry
from weighbridge.environments.lxc import below, configuration
from weighbridge.environments.nspawn import command
from weighbridge.errors import Unavailable
from weighbridge.hosts import system_container
from weighbridge.hosts.local import LocalHost
from weighbridge.hosts.system_container import Container, StartedContainer, SystemContainer
from weighbridge.model.command import Command, Completed
from weighbridge.model.environment import Needs
from weighbridge.model.host import Limits, RunContext
from weighbridge.model.names import RunId, SafeName
from weighbridge.model.site import SiteRequest
from weighbridge.model.study import Resources
from weighbridge.model.userland import Userland

from .kinds import traits

RUN = RunId("0123456789ab")
KINDS = ("lxc", "nspawn")


def container(data: str = "", *, own_network: bool = True, launcher: str = "/cache/launcher") -> Container:
    nowhere = Path("/nonexistent")
    run = RunContext(RUN, nowhere, nowhere, ExitStack())
    userland = Userland("0" * 64, Path("/root"), None, {})
    request = SiteRequest(run, LocalHost(RUN), SafeName("1-lxc-server"), "server", userland, Limits(cpus=1))
    return Container(
        request, "wb-6789ab-1", "1-lxc-server", launcher, "/userlands/a/root", data, own_network=own_network
    )


# -- LXC ---------------------------------------------------------------------------------------------------------


def settings(made: Container, group: str = "/sys/fs/cgroup/cpu/weighbridge/0123456789ab/1-lxc-server-monitor"):
    found: dict[str, list[str]] = {}
    for key, value in configuration(made, Path(group)):
        assert "\n" not in value
        found.setdefault(key, []).append(value)
    return found


def test_lxc_is_told_to_isolate_by_debians_defaults():
    found = settings(container())
    assert found["lxc.include"] == ["/usr/share/lxc/config/common.conf"]
    assert found["lxc.rootfs.path"] == ["dir:/userlands/a/root"] and found["lxc.rootfs.options"] == ["ro"]
    assert not [key for key in found if "cap" in key or "seccomp" in key or "share" in key]


@pytest.mark.parametrize(("shm_size", "told"), [(None, 64 * 2**20), (2**30, 2**30)])
def test_lxc_mounts_shared_memory_of_dockers_size_or_the_studys(shm_size: int | None, told: int):
    made = container()
    made = replace(made, request=replace(made.request, shm_size=shm_size))
    (entry,) = (each for each in settings(made)["lxc.mount.entry"] if " dev/shm " in each)
    assert f"size={told}," in entry


def test_lxc_groups_are_the_runs_own_beside_that_of_its_process():
    found = settings(container())
    assert found["lxc.cgroup.dir.container"] == ["weighbridge/0123456789ab/1-lxc-server"]
    assert found["lxc.cgroup.dir.monitor"] == ["weighbridge/0123456789ab/1-lxc-server-monitor/lxc"]
    assert found["lxc.cgroup.dir.monitor.pivot"] == ["weighbridge/0123456789ab/1-lxc-server-monitor/end"]
    far = settings(container(), "/sys/fs/cgroup/weighbridge/0123456789ab/ssh-b/1-lxc-server-monitor")
    assert far["lxc.cgroup.dir.container"] == ["weighbridge/0123456789ab/ssh-b/1-lxc-server"]


def test_lxc_has_its_own_network_or_the_hosts():
    assert settings(container())["lxc.net.0.type"] == ["empty"]
    assert settings(container(own_network=False))["lxc.net.0.type"] == ["none"]


def test_lxc_mounts():
    entries = settings(container("/data here", launcher="/my cache/launcher"))["lxc.mount.entry"]
    assert [entry.split()[1] for entry in entries] == ["tmp", "run", "dev/shm", "run/weighbridge-launcher", "srv"]
    assert entries[3].startswith("/my\\040cache/launcher ") and entries[4].startswith("/data\\040here srv none bind")
    assert all(entry.startswith("weighbridge-0123456789ab ") for entry in entries[:3]), "clean finds it by its mounts"
    assert len(settings(container())["lxc.mount.entry"]) == 4


@pytest.mark.parametrize(
    ("first", "wanted"),
    [
        ("1:cpu:/\n0::/\n", ""),
        ("0::/init.scope\n", ""),
        ("", ""),
        (f"4:memory:/x\n1:cpu,cpuacct:/weighbridge/{RUN}/host-b\n", f"host-b/weighbridge/{RUN}/"),
    ],
)
def test_lxc_groups_are_below_the_first_process(first: str, wanted: str):
    assert below(first, RUN) == wanted


@pytest.mark.parametrize("first", ["0::/docker/abc\n", "1:cpu:/weighbridge/ba9876543210/host-b\n"])
def test_lxc_is_refused_where_its_groups_would_be_elsewhere(first: str):
    with raises_sentence(Unavailable):
        below(first, RUN)


# -- systemd-nspawn ----------------------------------------------------------------------------------------------


def test_nspawn_registers_nowhere_and_writes_nothing_to_the_root():
    words = command(container())
    for word in (
        "--register=no",
        "--keep-unit",
        "--read-only",
        "--console=pipe",
        "--link-journal=no",
        "--settings=no",
    ):
        assert word in words
    assert "--private-network" in words and words[-1] == "/run/weighbridge-launcher"
    assert f"--setenv=WEIGHBRIDGE_RUN={RUN}" in words
    assert not [word for word in words if word.startswith("--bind=")]
    assert "--private-network" not in command(container(own_network=False))


def test_nspawn_binds_are_escaped():
    words = command(container("/data:1", launcher="/a:b/launcher"))
    assert "--bind-ro=/a\\:b/launcher:/run/weighbridge-launcher" in words
    assert "--bind=/data\\:1:/srv" in words


# -- both --------------------------------------------------------------------------------------------------------


def problems(kind: str, needs: Needs, **options: object) -> list[str]:
    environment = registry.environments()[kind]
    return environment.check(environment.options.model_validate(options), needs=needs)


class Recording(LocalHost):
    """This machine as root has it, and every command that was run on it."""

    root = True

    def __init__(self) -> None:
        super().__init__(RUN)
        self.ran: list[str] = []

    def run(self, command: Command) -> Completed:
        self.ran.append(command.argv[0])
        return Completed(command.argv, 0, b"1.0\n" if command.argv[0] == "echo" else b"", b"", 0.0)


class Plain(SystemContainer):
    kind, summary, version = "plain", "one that is this process", ("echo", "1.0")

    def started(self, container: Container, stack: ExitStack) -> StartedContainer:
        nothing = dict.fromkeys(("run", "start", "read", "put", "listening"))
        launcher: Any = SimpleNamespace(name="lxc", open_files=1, **nothing)
        return StartedContainer(launcher, SimpleNamespace(), {})  # type: ignore[arg-type]


def test_facts_are_gathered_once_they_are_asked_for(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    monkeypatch.setattr(system_container, "first_process", lambda *_: os.getpid())
    monkeypatch.setattr(system_container.build, "ensure", lambda *_: tmp_path)
    host, run = Recording(), RunContext(RUN, tmp_path, tmp_path, ExitStack())
    request = SiteRequest(run, host, SafeName("1-plain"), "server", Userland("0" * 64, tmp_path, None, {}), Limits())
    with Plain().open(Plain.options(network="host"), request) as site:
        assert host.ran == [], "the time to boot has none of it"
        told = site.facts()
    assert (told["plain"], told["network"]) == ("1.0", "host")
    assert "echo" in host.ran


@pytest.mark.parametrize("kind", KINDS)
def test_networks_that_cannot_carry_what_is_asked(kind: str):
    network, apart = Needs(network=True), Needs(network=True, separate_hosts=True, hosts=traits("testbed"))
    assert problems(kind, network) == problems(kind, network, network="host") == []
    assert problems(kind, Needs(), network="none") == []
    assert problems(kind, network, network="none") == [
        "network: none cannot carry this workload: choose another network"
    ]
    (problem,) = problems(kind, apart)
    assert_sentence(problem)
    assert problems(kind, apart, attach="interface") == problems(kind, apart, network="host") == []
    (problem,) = problems(
        kind, Needs(network=True, separate_hosts=True, hosts=traits("local", "testbed")), attach="interface"
    )
    assert_sentence(problem)
    (problem,) = problems(kind, Needs(), network="host", attach="interface")
    assert_sentence(problem)


def test_a_share_of_no_limit_is_refused():
    limited = Needs(resources=Resources(cpus=1))
    assert problems("native", Needs()) == problems("native", limited, cpu_share="50%") == []
    (problem,) = problems("native", Needs(), cpu_share="50%")
    assert_sentence(problem)
