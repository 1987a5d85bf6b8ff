"""Bubblewrap: what is claimed of its sandboxes holds, for root and for a user, and nothing of them is left."""

import hashlib
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from weighbridge import registry
from weighbridge.errors import Unavailable
from weighbridge.facts.site import about_site
from weighbridge.hosts.local import LocalHost
from weighbridge.linux.process import link_prefix
from weighbridge.model.command import Command
from weighbridge.model.host import Limits, RunContext
from weighbridge.model.site import DATA, SiteRequest, SiteStorage
from weighbridge.model.userland import Userland
from weighbridge.runner import clean
from weighbridge.runner import run_lock as state
from weighbridge.runner.run import run_study
from weighbridge.study.loader import load
from weighbridge.userland.sources.host import PLUGIN as HOST_PROGRAMS

from .conftest import open_run
from .inside import must_kill_what_takes_too_much, must_make_no_progress_while_frozen, sh
from .machine import Machine
from .test_unprivileged import as_user, home, user  # noqa: F401 - fixtures
from .weighing import Silent, facts, trials

pytestmark = pytest.mark.skipif(shutil.which("bwrap") is None, reason="needs bwrap")
RUN, OTHER = "5b5b5b5b5b5b", "5e5e5e5e5e5e"
MIB = 2**20
NETWORKS = ("host", "own")


def open_site(run: RunContext, userland: Userland, network: str, limits: Limits | None = None, name: str = "") -> Any:
    environment, directory = registry.environments()["bubblewrap"], registry.storage()["directory"]
    chosen = directory.options.model_validate({"kind": "directory"})
    storage = SiteStorage("directory", lambda mount: directory.open(chosen, mount))
    request = SiteRequest(
        run, LocalHost(run.id), name or f"{network}-server", "server", userland,
        limits or Limits(cpus=0.5, memory=128 * MIB, cpuset="0"), storage=storage,
    )  # fmt: skip
    return run.stack.enter_context(environment.open(environment.options(network=network), request))


@pytest.fixture(scope="module")
def sites(small_userland: Userland) -> Iterator[dict[str, Any]]:
    """One in each network, and a native client; the machine is compared before and after."""
    before = Machine.as_it_is()
    with open_run(RUN) as run:
        native = registry.environments()["native"]
        client = SiteRequest(run, LocalHost(run.id), "client", "client", small_userland, Limits())
        yield {
            **{network: open_site(run, small_userland, network) for network in NETWORKS},
            "client": run.stack.enter_context(native.open(native.options(), client)),
        }
    before.must_be_unchanged()


@pytest.fixture(params=NETWORKS)
def site(request: pytest.FixtureRequest, sites: dict[str, Any]) -> Any:
    return sites[request.param]


def test_a_server_is_reached_from_its_host(site: Any, sites: dict[str, Any]):
    listener = site.start(Command(("iperf3", "-s", "-B", site.listen, "-p", "20100"), 60))
    assert site.listening((("tcp", 20100),), 5)
    done = sites["client"].run(Command(("iperf3", "-c", site.address, "-p", "20100", "-n", "1M"), 20))
    listener.stop()
    assert done.returncode == 0, done


def test_only_its_own_network_is_its_own(sites: dict[str, Any]):
    names = {
        network: [
            line.split(":")[0].strip() for line in sh(sites[network], "cat /proc/net/dev").text.splitlines()[2:]
        ]
        for network in NETWORKS
    }
    assert sorted(names["own"]) == ["eth0", "lo"]
    assert {*names["host"]} == {path.name for path in Path("/sys/class/net").iterdir() if path.is_symlink()}
    assert "eth0" in Path(sites["own"].scope()["net"]).read_text() and "net" not in sites["host"].scope()
    assert sh(sites["own"], "cat /proc/net/route").text.count("\n") == 2, "no route but that to its host"


def test_programs_run_as_anywhere(site: Any, small_userland: Userland):
    done = site.run(Command(("sh", "-c", 'echo "$WORD"; echo no >&2; exit 7'), env={"WORD": "yes"}))
    assert (done.stdout, done.stderr, done.returncode) == (b"yes\n", b"no\n", 7)
    wanted = hashlib.sha256((small_userland.root / "usr/bin/iperf3").read_bytes()).hexdigest()
    assert sh(site, "sha256sum /usr/bin/iperf3").text.split()[0] == wanted
    assert site.open_files == int(sh(site, "ulimit -n").text)


def test_only_what_is_in_memory_and_data_can_be_written_to(site: Any):
    for path in ("/x", "/usr/x", "/etc/x", "/var/x", "/sys/x"):
        assert sh(site, f"echo x > {path}").returncode != 0, path
    for path in ("/tmp/x", "/run/x", "/dev/shm/x", f"{DATA}/x"):
        assert sh(site, f"echo x > {path} && cat {path} && rm {path}").stdout == b"x\n", path
    assert sh(site, f"stat -f -c %T {DATA}").text.strip() != "tmpfs"
    site.put("/tmp/put", b"\0data" * 1000)
    assert site.read("/tmp/put") == b"\0data" * 1000


def test_it_is_isolated_and_says_how(site: Any):
    told = {**site.facts(), **about_site(site)}
    own = {"ipc", "mnt", "pid", "user", "uts", *(["net"] if told["network"] == "own" else [])}
    assert {*told["namespaces"].split()} - {"cgroup"} == own
    assert told["seccomp"] == "off" and told["bubblewrap"].startswith("bubblewrap ")
    assert told["capabilities"] == "none"
    assert not [key for key in told if key.startswith("not honoured")], told
    status = dict(
        line.split(":\t", 1) for line in sh(site, "cat /proc/self/status").text.splitlines() if ":\t" in line
    )
    assert int(status["CapEff"], 16) == int(status["CapBnd"], 16) == 0 and status["NoNewPrivs"] == "1"
    assert len(sh(site, "ls -d /proc/[0-9]*").text.split()) <= 4, "it sees its own processes alone"


def test_the_memory_limit_kills_what_takes_too_much(site: Any):
    must_kill_what_takes_too_much(site)


def test_frozen_makes_no_progress(site: Any):
    must_make_no_progress_while_frozen(site)


def test_a_folder_of_this_machine_is_written_to_in_memory_alone(tmp_path: Path, machine: Machine):
    (tmp_path / "data").write_text("as it was")
    userland = HOST_PROGRAMS.existing(HOST_PROGRAMS.options(folder=str(tmp_path)))
    with open_run(OTHER) as run:
        site = open_site(run, userland, "host")
        done = sh(site, f"cd {tmp_path} && cat data && echo changed > data && echo more > new && cat data new")
        assert done.text.splitlines() == ["as it waschanged", "more"], done
        assert sh(site, "stat -c %i /usr/bin/env").text == f"{Path('/usr/bin/env').stat().st_ino}\n"
    assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [("data", "as it was")]


def test_a_root_folder_that_is_not_there_is_one_sentence(small_userland: Userland, machine: Machine, tmp_path: Path):
    nowhere = Userland("0" * 64, tmp_path / "nowhere", tmp_path / "nowhere.tar", {})
    with open_run(OTHER) as run:
        with pytest.raises(Unavailable, match="nowhere") as caught:
            open_site(run, nowhere, "host")
        assert "\n" not in str(caught.value)


@pytest.mark.parametrize("frozen", [False, True], ids=["running", "frozen"])
def test_what_a_killed_run_leaves_is_found_and_removed(small_userland: Userland, machine: Machine, frozen: bool):
    ready, go = os.pipe()
    child = os.fork()
    if child == 0:  # a run that is killed: nothing of it is closed
        with open_run(OTHER) as run:
            site = open_site(run, small_userland, "own")
            site.start(Command(("sleep", "600"), 900))
            if frozen:
                site.freeze()
            os.write(go, b"1")
            os.kill(os.getpid(), 9)
    assert os.read(ready, 1) == b"1"
    os.waitpid(child, 0)
    left = {leftover.kind for leftover in clean.find().left if leftover.run == OTHER}
    assert {"control group", "state folder"} <= left and ("process" in left) >= frozen
    clean.sweep(OTHER)
    state.forget(OTHER)
    assert not [leftover for leftover in clean.find().left if leftover.run == OTHER]
    assert not list(Path("/sys/class/net").glob(f"{link_prefix(OTHER)}*"))


STUDY = """
study: sandboxes
question: What does a sandbox cost?
resources: {cpus: 1, memory: 512MiB}
baseline: native
aa: false
environments:
  native: {kind: native}
  space: {kind: netns}
  host: {kind: bubblewrap}
  own: {kind: bubblewrap, network: own}
workloads:
  tcp: {kind: iperf3, amount: 16MiB}
repetitions: {blocks: 1}
"""


@pytest.mark.promise("a bubblewrap sandbox is measured with the host's network and with one of its own")
def test_a_study(tmp_path: Path, machine: Machine):
    path = tmp_path / "study.yaml"
    path.write_text(STUDY)
    run_study(load(str(path)), tmp_path / "run", Silent(), lambda _: None)
    rows = trials(tmp_path / "run")
    assert {row["outcome"] for row in rows} == {"ok"} and len(rows) == 4, [row["message"] for row in rows]
    told = facts(tmp_path / "run")
    assert {told[f"{name}/server", "network"] for name in NETWORKS} == {*NETWORKS}


@pytest.mark.promise("a user without root weighs a program in a bubblewrap sandbox")
def test_a_user_weighs_a_program(machine: Machine, user: Path):  # noqa: F811
    (user / "note").write_text("mine")
    os.chown(user / "note", 54321, 54321)
    words = (
        "--in",
        "bubblewrap",
        "--blocks",
        "1",
        "--out",
        user / "run",
        "--",
        "sh",
        "-c",
        "cat note; id -u; echo > new",
    )
    done = as_user(user, "weigh", *words)
    assert done.code in (0, 4), done
    rows = trials(user / "run")
    assert {(row["environment"], row["outcome"]) for row in rows} == {
        (name, "ok") for name in ("native", "bubblewrap", "native-again")
    }, done
    told = facts(user / "run")
    assert told["bubblewrap/server", "user"] == told["native/server", "user"]
    assert "user" in told["bubblewrap/server", "namespaces"].split()
    assert not (user / "new").exists()
