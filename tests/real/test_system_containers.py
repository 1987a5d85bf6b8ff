"""LXC and systemd-nspawn: what is claimed of their sites holds, and nothing of them is left."""

import hashlib
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from weighbridge import registry
from weighbridge.errors import EnvironmentLost, Unavailable
from weighbridge.facts.site import about_site
from weighbridge.hosts.local import LocalHost
from weighbridge.hosts.options import SshOptions
from weighbridge.hosts.ssh import ssh_host
from weighbridge.linux import cgroup_files
from weighbridge.linux.process import link_prefix
from weighbridge.model.command import Command
from weighbridge.model.host import Limits, RunContext
from weighbridge.model.site import DATA, SiteRequest, SiteStorage
from weighbridge.model.userland import Userland
from weighbridge.runner import clean
from weighbridge.runner import run_lock as state
from weighbridge.runner.run import run_study
from weighbridge.study.loader import load

from .conftest import open_run
from .far import far_hosts
from .inside import must_kill_what_takes_too_much, sh
from .machine import Machine
from .weighing import Silent, facts, trials

RUN, OTHER = "5c5c5c5c5c5c", "5d5d5d5d5d5d"
MIB = 2**20
PROGRAMS = {"lxc": "lxc-start", "nspawn": "systemd-nspawn"}
LIMITS = Limits(cpus=0.5, memory=128 * MIB, cpuset="0")


@pytest.fixture(scope="module", params=PROGRAMS)
def kind(request: pytest.FixtureRequest) -> str:
    if shutil.which(PROGRAMS[request.param]) is None:
        pytest.skip(f"needs {PROGRAMS[request.param]}")
    return str(request.param)


def open_site(
    run: RunContext, kind: str, userland: Userland, role: str = "server", place: str = "", **options: Any
) -> Any:
    environment, directory = registry.environments()[kind], registry.storage()["directory"]
    chosen = directory.options.model_validate({"kind": "directory"})
    storage = SiteStorage("directory", lambda mount: directory.open(chosen, mount))
    request = SiteRequest(run, LocalHost(run.id), f"{kind}{place}-{role}", role, userland, LIMITS, storage=storage)
    return run.stack.enter_context(environment.open(environment.options(**options), request))


@pytest.fixture(scope="module")
def sites(kind: str, small_userland: Userland) -> Iterator[dict[str, Any]]:
    """Server and client on the bridge, and a native client; the machine is compared before and after."""
    before = Machine.as_it_is()
    with open_run(RUN) as run:
        yield {
            "server": open_site(run, kind, small_userland),
            "client": open_site(run, kind, small_userland, "client"),
            "native": open_site(run, "native", small_userland, "client"),
        }
    before.must_be_unchanged()


@pytest.fixture
def site(sites: dict[str, Any]) -> Any:
    return sites["server"]


# -- network -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("client", ["client", "native"])
def test_tcp_reaches_the_server_from_its_host_and_from_another_port(sites: dict[str, Any], client: str):
    server = sites["server"]
    listener = server.start(Command(("iperf3", "-s", "-B", server.listen, "-p", "20100"), 60))
    assert server.listening((("tcp", 20100),), 5)
    done = sites[client].run(Command(("iperf3", "-c", server.address, "-p", "20100", "-n", "1M"), 20))
    listener.stop()
    assert done.returncode == 0, done


def test_nothing_leads_anywhere_else(sites: dict[str, Any]):
    routes = [line.split()[:2] for line in sh(sites["server"], "cat /proc/net/route").text.splitlines()[1:]]
    assert [interface for interface, _ in routes] == ["eth0"]
    assert "00000000" not in [destination for _, destination in routes], "no default route"


# -- the contract ------------------------------------------------------------------------------------------------


def test_programs_run_as_anywhere(site: Any, small_userland: Userland):
    done = site.run(Command(("sh", "-c", 'echo "$WORD"; echo no >&2; exit 7'), env={"WORD": "yes"}))
    assert (done.stdout, done.stderr, done.returncode) == (b"yes\n", b"no\n", 7)
    wanted = hashlib.sha256((small_userland.root / "usr/bin/iperf3").read_bytes()).hexdigest()
    assert sh(site, "sha256sum /usr/bin/iperf3").text.split()[0] == wanted
    assert site.run(Command(("sleep", "60"), 0.3)).timed_out
    assert site.open_files == int(sh(site, "ulimit -n").text)


def test_only_what_is_in_memory_and_data_can_be_written_to(site: Any):
    for path in ("/x", "/usr/x", "/etc/x", "/var/x"):
        assert sh(site, f"echo x > {path}").returncode != 0, path
    for path in ("/tmp/x", "/run/x", "/dev/shm/x", f"{DATA}/x"):
        assert sh(site, f"echo x > {path} && cat {path} && rm {path}").stdout == b"x\n", path
    assert sh(site, "stat -c %a /tmp /run").text.split() == ["1777", "1777"]
    assert sh(site, f"stat -f -c %T {DATA}").text.strip() != "tmpfs"
    site.put("/tmp/put", b"\0data" * 1000)
    assert site.read("/tmp/put") == b"\0data" * 1000


def test_it_is_isolated_and_says_how(site: Any):
    told = {**site.facts(), **about_site(site)}
    assert {"ipc", "mnt", "net", "pid", "uts"} <= {*told["namespaces"].split()}
    assert told["seccomp"] == "filter"
    assert "chown" in told["capabilities"].split() and "sys_module" not in told["capabilities"].split()
    assert not [key for key in told if key.startswith("not honoured")], told
    assert len(sh(site, "ls -d /proc/[0-9]*").text.split()) <= 4, "it sees its own processes alone"
    assert sh(site, "cat /proc/sys/kernel/hostname").text.strip().endswith("-server")


# -- limits ------------------------------------------------------------------------------------------------------


def group_file(site: Any, controller: str, name: str) -> str:
    folder = cgroup_files.folders_of(Path(f"/proc/{site.pid}/cgroup").read_text())
    return (folder(controller) / name).read_text().strip()


@pytest.mark.skipif(cgroup_files.version() != 1, reason="names of version 1")
def test_limits_are_in_force(site: Any):
    assert group_file(site, "cpu", "cpu.cfs_quota_us") == "50000"
    assert group_file(site, "memory", "memory.limit_in_bytes") == str(LIMITS.memory)
    assert group_file(site, "cpuset", "cpuset.cpus") == "0"


@pytest.mark.measures
def test_a_busy_loop_gets_half_a_cpu(site: Any):
    before, began = site.meters(), time.monotonic()
    assert sh(site, "while :; do :; done", 2.0).timed_out
    wall, after = time.monotonic() - began, site.meters()
    share = (after["cpu_s"] - before["cpu_s"]) / wall
    assert 0 < share <= 0.65
    assert after["throttled_s"] > before["throttled_s"] or share < 0.4, "others took the CPU"


def test_the_memory_limit_kills_what_takes_too_much(site: Any):
    must_kill_what_takes_too_much(site)


def test_frozen_makes_no_progress(site: Any):
    running = site.start(Command(("sh", "-c", "while :; do :; done")))
    try:
        assert not running.wait(0.3)
        site.freeze()
        before = site.meters()["cpu_s"]
        assert not running.wait(0.5)
        assert site.meters()["cpu_s"] == before
        site.thaw()
        assert not running.wait(0.3)
        assert site.meters()["cpu_s"] > before
    finally:
        running.stop()


def test_its_files_tell_its_use(site: Any):
    for label, path in site.scope().items():
        if label != "net":
            assert Path(path).exists(), path
    assert "eth0" in Path(site.scope()["net"]).read_text()


# -- other networks ----------------------------------------------------------------------------------------------


def test_the_network_of_the_host_and_none(kind: str, small_userland: Userland, machine: Machine):
    with open_run(OTHER) as run:
        networks = ("host", "none")
        host, none = (open_site(run, kind, small_userland, place=name, network=name) for name in networks)
        assert host.address == "127.0.0.1"
        assert sh(host, "cat /proc/net/dev").text.count(":") == Path("/proc/net/dev").read_text().count(":")
        assert "net" not in about_site(host)["namespaces"].split() and "net" not in host.scope()
        names = [line.split(":")[0].strip() for line in sh(none, "cat /proc/net/dev").text.splitlines()[2:]]
        assert names == ["lo"]


# -- faults ------------------------------------------------------------------------------------------------------


def test_a_root_folder_that_is_not_there_is_one_sentence(kind: str, small_userland: Userland, machine: Machine):
    with open_run(OTHER) as run:
        with pytest.raises(Unavailable, match=r"No such|not exist") as caught:
            open_site(run, kind, replace(small_userland, root=Path("/no/such/root")))
        assert "\n" not in str(caught.value)


def test_one_that_is_killed_is_lost(kind: str, small_userland: Userland, machine: Machine):
    with open_run(OTHER) as run:
        lost = open_site(run, kind, small_userland)
        os.kill(lost.pid, signal.SIGKILL)
        with pytest.raises(EnvironmentLost) as caught:
            while True:
                sh(lost, "sleep 0.1")
        assert "\n" not in str(caught.value)


KILLED = """
import os, signal, sys, time
from pathlib import Path
from weighbridge.model.command import Command
from weighbridge.model.userland import Userland
from tests.real.conftest import open_run
from tests.real.test_system_containers import OTHER, open_site
kind, digest, root, frozen = sys.argv[1:]
with open_run(OTHER) as run:
    site = open_site(run, kind, Userland(digest=digest, root=Path(root), tar=Path(root), versions={}), "client")
    site.start(Command(("sh", "-c", "while :; do sleep 0.01; done"), 60))
    time.sleep(0.3)
    if frozen == "frozen":
        site.freeze()
    os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.parametrize("how", ["running", "frozen"])
def test_after_a_kill_clean_removes_everything(kind: str, how: str, small_userland: Userland, machine: Machine):
    argv = (sys.executable, "-c", KILLED, kind, small_userland.digest, str(small_userland.root), how)
    subprocess.run(argv, env={**os.environ, "PYTHONPATH": "."}, check=False, timeout=600)
    left = {leftover.kind for leftover in clean.find().left if leftover.run == OTHER}
    assert {"network link", "control group", "state folder"} <= left
    assert ("lock" in left) is (kind == "lxc")
    assert "process" in left or how == "running", "a launcher that runs hears that its stream has ended"
    with state.lock_run(OTHER, "clean") as folder:
        assert folder is not None
        clean.sweep(OTHER)
        state.forget(OTHER)
    assert not [leftover for leftover in clean.find().left if leftover.run == OTHER]
    assert not list(Path("/sys/class/net").glob(f"{link_prefix(OTHER)}*"))


# -- a whole study -----------------------------------------------------------------------------------------------

STUDY = """
study: system-containers
question: What do they cost?
{where}
resources: {{cpus: 1, memory: 512MiB}}
baseline: native
environments:
  native: {{kind: native}}
  lxc: {{kind: lxc{options}}}
  nspawn: {{kind: nspawn{options}}}
workloads:
  tcp: {{kind: iperf3, amount: 16MiB}}
repetitions: {{blocks: 2}}
"""
APART = """hosts:
  a: {kind: testbed}
  b: {kind: testbed}
placement: {client: a, server: b}
inside: [server, client]"""


@pytest.mark.promise("LXC and nspawn are measured with either role inside, and between two hosts")
@pytest.mark.parametrize(
    ("where", "options"),
    [
        pytest.param("inside: [server, client]", "", id="both", marks=pytest.mark.long),
        pytest.param("inside: [server]", "", id="server"),
        pytest.param(APART, ", attach: interface", id="apart", marks=pytest.mark.long),
    ],
)
def test_a_study_of_both(where: str, options: str, tmp_path: Path, machine: Machine, request: pytest.FixtureRequest):
    path = tmp_path / "study.yaml"
    path.write_text(STUDY.format(where=where, options=options))
    run_study(load(str(path)), tmp_path / "run", Silent(), lambda _: None)
    rows = trials(tmp_path / "run")
    assert {row["outcome"] for row in rows} == {"ok"}, [row["message"] for row in rows if row["message"]]
    assert len([row for row in rows if row["environment"] in PROGRAMS]) == 4
    told = {name: value for (scope, name), value in facts(tmp_path / "run").items() if scope.startswith("lxc")}
    assert told["seccomp"] == "filter"


def test_nspawn_on_a_machine_that_ssh_reaches(small_userland: Userland, tmp_path: Path, machine: Machine):
    """Its links are gone with the connection, however that ends."""
    with far_hosts(tmp_path, "far") as (far,):
        options = SshOptions(kind="ssh", destination="far", config=str(far.config))
        with open_run(OTHER) as run, ssh_host("far", options, run) as host, ExitStack() as sites:
            environment = registry.environments()["nspawn"]
            request = SiteRequest(run, host, "nspawn-server", "server", small_userland, LIMITS)
            site = sites.enter_context(environment.open(environment.options(), request))
            assert sh(site, "cat /proc/net/dev").text.count("eth0") == 1
            assert "wb-" in far.inside("ip", "link", "show")
            assert site.meters()["cpu_s"] > 0 and about_site(site)["seccomp"] == "filter"
        deadline = time.monotonic() + 20
        while "wb-" in (shown := far.inside("ip", "link", "show")):
            assert time.monotonic() < deadline, shown
