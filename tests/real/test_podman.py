"""Podman's containers, of root and rootless: the contract of sites; the machine as it was, also after a kill."""

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from weighbridge import registry
from weighbridge.facts.connection import connection
from weighbridge.hosts.local import LocalHost
from weighbridge.linux import cgroup_files
from weighbridge.linux.network import free_port
from weighbridge.linux.process import most_open_files
from weighbridge.model.command import Command, PublishedPort
from weighbridge.model.host import Limits
from weighbridge.model.site import Site, SiteRequest
from weighbridge.model.userland import Userland
from weighbridge.model.workload import Endpoint
from weighbridge.runner import clean

from .conftest import open_run
from .machine import Machine
from .programs import started

pytestmark = pytest.mark.skipif(shutil.which("podman") is None, reason="needs podman")
PODMAN = registry.environments()["podman"]
KINDS: dict[str, dict[str, Any]] = {
    "none": {"network": "none"},
    "host": {"network": "host"},
    "bridge": {},
    "gateway": {"publish": True},
    "loopback": {"publish": True, "publish_on": "loopback"},
    "slirp4netns": {"rootless": True, "publish": True},
    "pasta": {"rootless": True, "network": "pasta", "publish": True},
    "rootless host": {"rootless": True, "network": "host"},
}
REACHED = [name for name in KINDS if name != "none"]
LIMITS = Limits(cpus=0.5, memory=128 * 2**20, cpuset="0")


# Before the sites of this module are open: runs of one process share the packet filter, those of others wait for it.
@pytest.mark.parametrize("name", ["gateway", "slirp4netns"])
def test_the_machine_is_as_it_was(name: str, machine: Machine, small_userland: Userland):
    with open_run("90d3a90d3a91") as run:
        port = free_port()
        request = SiteRequest(
            run, LocalHost(run.id), "s", "server", small_userland, LIMITS, (PublishedPort("tcp", port, port),)
        )
        with PODMAN.open(PODMAN.options(**KINDS[name]), request) as site:
            assert site.run(Command(("true",))).returncode == 0
    machine.must_be_unchanged()


_OPENS = """
import sys, time
from pathlib import Path
from contextlib import ExitStack
from weighbridge import registry
from weighbridge.hosts.local import LocalHost
from weighbridge.model.command import PublishedPort
from weighbridge.model.host import Limits, RunContext
from weighbridge.model.site import SiteRequest
from weighbridge.runner import run_lock as state
from weighbridge.userland.build import cache_folder, ensure
run_id, port = sys.argv[1], int(sys.argv[2])
userland = ensure(registry.workloads()["iperf3"].userland(), cache_folder(), lambda _: None)
podman = registry.environments()["podman"]
with state.claim(run_id, cache_folder()) as folder, ExitStack() as stack:
    run = RunContext(run_id, folder, cache_folder(), stack)
    for name, options in (("r", {"publish": True}), ("u", {"rootless": True, "publish": True})):
        ports = (PublishedPort("tcp", port, port),)
        request = SiteRequest(run, LocalHost(run_id), name, "server", userland, Limits(), ports)
        stack.enter_context(podman.open(podman.options(**options), request))
        port += 1
    print("open", flush=True)
    time.sleep(600)
"""


def test_after_a_kill_clean_finds_and_removes_everything(machine: Machine):
    run_id = "90d3a90d3a92"
    argv = [sys.executable, "-c", _OPENS, run_id, str(free_port())]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "open\n"
        process.kill()
    assert {leftover.kind for leftover in clean.find().left if leftover.run == run_id} >= {
        "control group", "process", "state folder", "engine data", "network link",
    }  # fmt: skip
    clean.sweep(run_id)
    clean.run_lock.forget(run_id)
    assert not [leftover for leftover in clean.find().left if leftover.run == run_id]
    machine.must_be_unchanged()


@pytest.fixture(scope="module")
def ports() -> dict[str, int]:
    taken: list[int] = []
    for _ in KINDS:
        taken.append(free_port(taken))
    return dict(zip(KINDS, taken, strict=True))


@pytest.fixture(scope="module")
def sites(small_userland: Userland, ports: dict[str, int]) -> Iterator[dict[str, Site]]:
    for options in KINDS.values():
        if not (ready := PODMAN.ready(PODMAN.options(**options))).ready:
            pytest.skip(f"{ready.detail}: {ready.remedy}")
    with open_run("90d3a90d3a90") as run:
        opened = {}
        for name, options in KINDS.items():
            plain = name.replace(" ", "-")
            request = SiteRequest(
                run,
                LocalHost(run.id),
                f"{plain}-server",
                "server",
                small_userland,
                LIMITS,
                (PublishedPort("tcp", ports[name], ports[name]),),
            )
            opened[name] = run.stack.enter_context(PODMAN.open(PODMAN.options(**options), request))
        native = registry.environments()["native"]
        client = SiteRequest(run, LocalHost(run.id), "native-client", "client", small_userland, Limits())
        opened["client"] = run.stack.enter_context(native.open(native.options(), client))
        yield opened


@pytest.fixture(params=KINDS)
def site(request: pytest.FixtureRequest, sites: dict[str, Site]) -> Site:
    return sites[request.param]


def test_its_first_process_is_the_launcher_and_its_root_is_read_only(site: Site):
    told = site.run(Command(("sh", "-c", "cat /proc/1/comm; id -u; touch /x; echo $?; ulimit -n")))
    assert told.text.split() == ["weighbridge-lau", "0", "1", str(most_open_files())]
    assert site.open_files == most_open_files()


def test_limits_are_in_force(site: Site):
    pid = site.pid  # type: ignore[attr-defined]
    folder = cgroup_files.folders_of(Path(f"/proc/{pid}/cgroup").read_text())
    if cgroup_files.version() == 1:
        assert (folder("memory") / "memory.limit_in_bytes").read_text().strip() == str(LIMITS.memory)
        assert (folder("cpu") / "cpu.cfs_quota_us").read_text().strip() == "50000"
        assert (folder("cpuset") / "cpuset.cpus").read_text().strip() == "0"
    else:
        assert (folder("memory") / "memory.max").read_text().strip() == str(LIMITS.memory)
        assert (folder("cpu") / "cpu.max").read_text().split() == ["50000", "100000"]
    assert not [fact for fact in site.facts() if "limits of slirp" not in fact and "limits of pasta" not in fact
                and fact.startswith("not honoured")]  # fmt: skip


def test_what_it_uses_is_metered(site: Site):
    before = site.meters()
    site.run(Command(("sh", "-c", "i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done")))
    assert site.meters()["cpu_s"] > before["cpu_s"] + 0.02
    assert ("net" in site.scope()) is ("host" not in site.name)


@pytest.mark.measures
def test_frozen_it_does_nothing(site: Site):
    with started(site, "sh", "-c", "while :; do :; done") as running:
        time.sleep(0.1)
        site.freeze()
        used = site.meters()["cpu_s"]
        time.sleep(0.2)
        assert site.meters()["cpu_s"] == pytest.approx(used, abs=0.005)
        site.thaw()
        assert running.stop().returncode == -signal.SIGTERM


@pytest.mark.parametrize("name", REACHED)
def test_a_server_is_reached_and_the_path_is_known(name: str, sites: dict[str, Site], ports: dict[str, int]):
    site, client = sites[name], sites["client"]
    at = Endpoint(site.listen, site.address, ports[name], client.address)
    for _ in range(20):
        path = connection(site, client, {"server": at, "client": at}, "tcp")
        if path is not None:
            break
        time.sleep(0.5)
    assert path is not None
    expected = {"gateway": "destination", "loopback": "source and destination"}
    proxied = name in ("slirp4netns", "pasta")
    assert path.translation == ("proxy" if proxied else expected.get(name, "none"))
    server = site.start(Command(("iperf3", "-s", "-1", "-p", str(ports[name]))))
    assert site.listening((("tcp", ports[name]),), 10.0)
    done = client.run(Command(("iperf3", "-c", site.address, "-p", str(ports[name]), "-n", "10M"), 30))
    assert done.returncode == 0, done
    server.stop()


def test_rootless_containers_are_of_nobody_of_this_machine(sites: dict[str, Site]):
    pid = sites["slirp4netns"].pid  # type: ignore[attr-defined]
    assert Path(f"/proc/{pid}").stat().st_uid > 2**20
    assert sites["slirp4netns"].run(Command(("cat", "/proc/self/uid_map"))).text.split()[0] == "0"
    assert Path(f"/proc/{sites['bridge'].pid}").stat().st_uid == 0  # type: ignore[attr-defined]


@pytest.mark.measures
def test_podman_is_not_in_the_path_of_what_is_measured(sites: dict[str, Site], ports: dict[str, int]):
    """While a gigabyte goes through a bridge, podman and conmon use no CPU time to speak of."""
    site, client, port = sites["bridge"], sites["client"], ports["bridge"]
    with started(site, "iperf3", "-s", "-1", "-p", str(port)):
        assert site.listening((("tcp", port),), 10.0)
        before = _used("podman") + _used("conmon")
        assert client.run(Command(("iperf3", "-c", site.address, "-p", str(port), "-n", "1G"), 60)).returncode == 0
    assert _used("podman") + _used("conmon") - before < 0.1


def _used(name: str) -> float:
    """CPU seconds of the processes of this name."""
    ticks = 0
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if (folder / "comm").read_text().strip() == name:
                ticks += sum(int(word) for word in (folder / "stat").read_text().rpartition(")")[2].split()[11:13])
        except OSError:
            continue
    return ticks / os.sysconf("SC_CLK_TCK")
