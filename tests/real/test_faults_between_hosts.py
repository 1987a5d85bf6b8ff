"""Things go wrong between two hosts: a clear sentence, a recorded outcome, finished trials kept, both hosts clean."""

import contextlib
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import docker
import pytest

from weighbridge import registry
from weighbridge.engines import networks
from weighbridge.errors import EnvironmentLost, StudyError, TrialsFailed, Unavailable
from weighbridge.hosts.testbed import TestbedHost
from weighbridge.linux import network
from weighbridge.model.command import Command
from weighbridge.model.userland import UserlandSpec
from weighbridge.runner import programs, userlands
from weighbridge.runner.run import run_study
from weighbridge.runner.sites import Sites
from weighbridge.study.loader import load
from weighbridge.userland.build import cached

from .between import CONTAINER, NATIVE, TCP, site_of, write
from .machine import Machine
from .test_faults import FAILURES_ARE_TOLD, Quiet, Waits, meanwhile
from .test_users_engine import everything
from .users_engine import own_engine, socket_of
from .weighing import going, trials, weighbridge
from .weighing import write_study as write_here

_TALK = (
    "use Socket; $SIG{PIPE} = 'IGNORE'; socket(S, PF_INET, SOCK_STREAM, 0);"
    "setsockopt(S, SOL_SOCKET, SO_REUSEADDR, 1);"
    "bind(S, sockaddr_in($ARGV[1], inet_aton($ARGV[0]))) or die 'bind'; listen(S, 5);"
    "while (accept(C, S)) { select(undef, undef, undef, 0.05) while syswrite(C, 'x'); close(C); }"
)
_HEAR = (
    "use IO::Socket::INET; $s = IO::Socket::INET->new(PeerAddr => $ARGV[0], PeerPort => $ARGV[1]) or die 'connect';"
    "for (1 .. $ARGV[2]) { sysread($s, $x, 1) or die 'read' } print 42"
)
HEARD = 20
"""Words of the server, 50 ms apart: a trial takes a second."""


class Talks(Waits):
    """A client that hears so many words of its server."""

    kind = "talks"

    def command(self, role, options, at):
        if role == "client":
            return Command(("perl", "-e", _HEAR, at.address, str(at.port), str(HEARD)), options.deadline)
        return Command(("perl", "-e", _TALK, at.listen, str(at.port)), 60, listens=(("tcp", at.port),))


class Mute(Waits):
    """A server that never listens."""

    kind = "mute"

    def command(self, role, options, at):
        return Command(("sleep", "100"), 120, listens=(("tcp", at.port),))


SWARMS = pytest.mark.promise(
    "a swarm that a run formed is dissolved, after a kill by clean; a user's is never changed"
)
WAITS = "w: {kind: waits, seconds: 1.5}"


@pytest.fixture(autouse=True)
def workloads(monkeypatch: pytest.MonkeyPatch) -> None:
    known = {**registry.workloads(), **{one.kind: one() for one in (Waits, Talks, Mute)}}
    monkeypatch.setattr(registry, "workloads", lambda: known)
    monkeypatch.setattr(userlands, "userland_of", lambda _: UserlandSpec.of(["iperf3"]))


@pytest.fixture
def sites(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The sites of each session, as they are opened."""
    opened: list[Any] = []
    open_all = Sites.open_all
    monkeypatch.setattr(Sites, "open_all", lambda self, stack: (open_all(self, stack), opened.append(self)))
    return opened


def running(host: Any) -> dict[str, int]:
    """What runs on a host, in its containers too: name -> number on the host."""
    found = {}
    for path in (host.folder / "proc").glob("[0-9]*/comm"):
        with contextlib.suppress(OSError):
            found[path.read_text().strip()] = int(path.parent.name)
    return found


def at_work(sites: list[Any], environment: str, program: str = "sleep") -> bool:
    """Whether the client of a trial of this environment runs this program."""
    if not sites or (environment, "client") not in {key[:2] for key, site in sites[-1]._open.items() if site.awake}:
        return False
    return program in running(site_of(sites[-1], environment, "client").host)


def fails(study: Path, run: Path, error: type[Exception], *words: str) -> str:
    """The sentence with which a run ends that must fail."""
    with pytest.raises(error) as caught:
        run_study(load(str(study)), run, Quiet(), lambda _: None)
    told = str(caught.value)
    assert "\n" not in told and all(word in told for word in words), told
    return told


# -- natively ----------------------------------------------------------------------------------------------------


@FAILURES_ARE_TOLD
def test_cable_pulled_in_a_trial(machine: Machine, tmp_path: Path, sites: list[Any]):
    """Nothing fails, nothing arrives: the deadline ends the trial. With the cable back its block is run again."""
    run, pulled = tmp_path / "run", threading.Event()

    def pull_then_plug() -> bool:
        if pulled.is_set() and len(trials(run)) == 2:
            sites[0].hosts["b"].plug(up=True)
            return True
        if not pulled.is_set() and len(trials(run)) == 1 and at_work(sites, "native", "perl"):
            time.sleep(0.2)
            sites[0].hosts["b"].plug(up=False)
            pulled.set()
        return False

    study = write(tmp_path, workloads=("t: {kind: talks, deadline: 3}",), blocks=2)
    with meanwhile(pull_then_plug):
        run_study(load(str(study)), run, Quiet(), lambda _: None)
    rows = trials(run)
    assert [row["outcome"] for row in rows] == ["ok", "deadline", "ok"]
    assert "perl" in rows[1]["message"] and "3 s" in rows[1]["message"]


@FAILURES_ARE_TOLD
def test_a_host_goes_off_in_a_trial(machine: Machine, tmp_path: Path, sites: list[Any]):
    run = tmp_path / "run"

    def off() -> bool:
        if len(trials(run)) == 1 and at_work(sites, "native"):
            os.kill(sites[0].hosts["b"].pid, signal.SIGKILL)
            return True
        return False

    study = write(tmp_path, workloads=(WAITS,), blocks=3)
    with meanwhile(off):
        fails(study, run, EnvironmentLost, "native was lost during w", "host b was lost", "Finished trials are kept")
    machine.must_be_unchanged()
    assert [row["outcome"] for row in trials(run)] == ["ok", "environment lost"]
    run_study(None, run, Quiet(), lambda _: None)
    assert sum(row["outcome"] == "ok" for row in trials(run)) == 3


def test_a_peer_that_never_becomes_ready(machine: Machine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(programs, "READY_S", 0.5)
    run = tmp_path / "run"
    study = write(tmp_path, workloads=("m: {kind: mute}",))
    fails(study, run, TrialsFailed)
    assert {row["outcome"] for row in trials(run)} == {"server not ready"}
    assert all("did not listen" in row["message"] for row in trials(run))


def taking(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hosts on which somebody else takes each port that was free a moment ago."""
    free = TestbedHost.free_ports

    def taken(self: TestbedHost, ports: Any = ()) -> int:
        port = free(self, ports)
        ports_taken.append(port)
        self.start(Command(("perl", "-e", _TALK, "0.0.0.0", str(port))))
        while not network.listening((("tcp", port),), self.pid):
            time.sleep(0.01)
        return port

    def dedicated_host(self: TestbedHost, purpose: str) -> TestbedHost:
        made = other(self, purpose)
        for port in ports_taken:
            made.start(Command(("perl", "-e", _TALK, "0.0.0.0", str(port))))
        return made

    ports_taken: list[int] = []
    other = TestbedHost.dedicated_host
    monkeypatch.setattr(TestbedHost, "free_ports", taken)
    monkeypatch.setattr(TestbedHost, "dedicated_host", dedicated_host)


def test_port_taken(machine: Machine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    taking(monkeypatch)
    with pytest.raises(Unavailable, match=r"port \d+ "):
        run_study(load(str(write(tmp_path, workloads=(WAITS,)))), tmp_path / "run", Quiet(), lambda _: None)
    assert trials(tmp_path / "run") == []


# -- Docker ------------------------------------------------------------------------------------------------------


@pytest.mark.long  # on one host in make test
@FAILURES_ARE_TOLD
def test_published_port_taken(machine: Machine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    taking(monkeypatch)
    published = "box: {kind: docker, network: bridge, publish: true}"
    study = write(tmp_path, environments=(NATIVE, published), workloads=(WAITS,))
    fails(study, tmp_path / "run", Unavailable, "opening 2-box-server", "address already in use")


def test_parent_interface_that_does_not_exist(machine: Machine, tmp_path: Path):
    macvlan = "vlan: {kind: docker, network: macvlan, parent: nosuch0}"
    attached = "attached: {kind: docker, network: bridge, attach: interface, parent: nosuch0}"
    for environment in (macvlan, attached):
        study = write(tmp_path, environments=(NATIVE, environment), workloads=(WAITS,))
        told = "a testbed host has no network interface 'nosuch0', only eth0"
        fails(study, tmp_path / "run", StudyError, f"{study}:", told)


@pytest.mark.long
@FAILURES_ARE_TOLD
def test_subnet_that_collides(machine: Machine, tmp_path: Path):
    overlays = tuple(f"o{bits}: {{kind: docker, network: overlay, subnet: 10.77.0.0/{bits}}}" for bits in (24, 16))
    study = write(tmp_path, environments=(NATIVE, *overlays), workloads=(WAITS,))
    fails(study, tmp_path / "run", Unavailable, "the subnet 10.77.0.0/16 of environment o16 overlaps with")


@pytest.mark.long  # an engine that is killed on one host, and a host that goes off, are in make test
@FAILURES_ARE_TOLD
def test_engine_then_client_container_killed_in_a_trial(machine: Machine, tmp_path: Path, sites: list[Any]):
    run = tmp_path / "run"

    def box_works() -> bool:
        client = site_of(sites[-1], "box", "client")
        return at_work(sites, "box") and bool(client.host.run(Command(("pgrep", "-x", "sleep"))).text.split())

    def once(victim: Callable[[], int]) -> Callable[[], bool]:
        begun = len(sites)

        def act() -> bool:
            if len(sites) > begun and trials(run) and box_works():
                site_of(sites[-1], "box", "client").host.run(Command(("kill", "-9", str(victim()))))
                return True
            return False

        return act

    study = write(tmp_path, environments=(NATIVE, CONTAINER), workloads=(WAITS,), blocks=8)
    lost = ("box was lost during w", "Finished trials are kept")
    with meanwhile(once(lambda: running(site_of(sites[-1], "box", "client").host)["dockerd"])):
        fails(study, run, EnvironmentLost, *lost, "the Docker engine no longer answers")
    machine.must_be_unchanged()
    before = trials(run)
    assert [row["outcome"] for row in before] == ["ok"] * (len(before) - 1) + ["environment lost"]
    with meanwhile(once(lambda: int(site_of(sites[-1], "box", "client").pid))):
        fails(study, run, EnvironmentLost, *lost, "container")
    after = trials(run)
    assert after[: len(before)] == before and after[-1]["outcome"] == "environment lost"


@pytest.mark.parametrize("options", ["network: ipvlan", "network: overlay, encrypted: true"])
def test_what_the_kernel_cannot_do_is_named_by_plan_and_refused_by_run(
    machine: Machine, tmp_path: Path, options: str
):
    feature = "ipvlan" if "ipvlan" in options else "encrypted"
    why = networks.lacking(feature)
    if not why:
        pytest.skip(f"this kernel can do {feature}")
    study = write(tmp_path, environments=(NATIVE, f"wanted: {{kind: docker, {options}}}"))
    planned = weighbridge("plan", study, "--json")
    assert planned.code == 4 and why in planned.stdout
    run = weighbridge("run", study, "--out", tmp_path / "run", "--yes")
    run.must_fail(4, "wanted: ", why.split(" (")[0], "use a kernel that has it")
    assert why.split(" (")[0] in " ".join(weighbridge("doctor", "--json").stdout.split())
    assert not (tmp_path / "run").exists()


# -- an engine that is the user's --------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def own(cache: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[docker.DockerClient]:
    userland = cached(UserlandSpec.of(["iperf3"]), cache)
    assert userland is not None
    with own_engine(userland, tmp_path_factory.mktemp("own")) as engine:
        yield engine


def overlay_here(folder: Path, blocks: int) -> Path:
    """A study with an overlay network on this machine alone."""
    overlay = "overlay: {kind: docker, network: overlay}"
    path = write_here(folder, environments=(NATIVE, overlay), workloads=(TCP,), blocks=blocks)
    path.write_text(path.read_text().replace("baseline:", "inside: [server, client]\nbaseline:"))
    return path


def swarm_of(engine: docker.DockerClient) -> str:
    return str(engine.info()["Swarm"]["LocalNodeState"])


def test_a_swarm_that_we_formed_is_dissolved(own: docker.DockerClient, machine: Machine, tmp_path: Path):
    before = everything(own)
    address = {"DOCKER_HOST": f"unix://{socket_of(own)}"}
    done = weighbridge("run", overlay_here(tmp_path, 1), "--out", tmp_path / "run", "--yes", env=address)
    assert done.code == 0, done
    assert swarm_of(own) == "inactive" and everything(own) == before


@pytest.mark.long
@SWARMS
def test_clean_leaves_the_swarm_of_a_killed_run(own: docker.DockerClient, machine: Machine, tmp_path: Path):
    before, run = everything(own), tmp_path / "run"
    address = {"DOCKER_HOST": f"unix://{socket_of(own)}"}
    with going("run", overlay_here(tmp_path, 30), "--out", run, "--yes", env=address, files=tmp_path) as going_on:
        going_on.await_that(lambda: len(trials(run)) >= 1)
        going_on.end(signal.SIGKILL)
    assert swarm_of(own) == "active"
    listed = weighbridge("clean", "--check", env=address)
    listed.must_fail(1)
    assert "swarm" in listed.stdout
    cleaned = weighbridge("clean", env=address)
    assert cleaned.code == 0, cleaned
    assert swarm_of(own) == "inactive" and everything(own) == before


@SWARMS
def test_a_swarm_of_the_users_is_never_changed(own: docker.DockerClient, machine: Machine, tmp_path: Path):
    address = {"DOCKER_HOST": f"unix://{socket_of(own)}"}
    own.swarm.init(advertise_addr="127.0.0.1", listen_addr="127.0.0.1:2377")
    deadline = time.monotonic() + 20
    while not own.networks.list(names=["docker_gwbridge"]):  # Docker makes it a moment later
        assert time.monotonic() < deadline
        time.sleep(0.05)
    try:
        before = everything(own), own.swarm.id, own.swarm.attrs["Spec"]
        done = weighbridge("run", overlay_here(tmp_path, 1), "--out", tmp_path / "run", "--yes", env=address)
        done.must_fail(4, "is already in a swarm (active), which Weighbridge never changes")
        assert "swarm" not in weighbridge("clean", "--check", env=address).stdout
        assert weighbridge("clean", env=address).code == 0
        own.swarm.reload()
        assert (everything(own), own.swarm.id, own.swarm.attrs["Spec"]) == before
    finally:
        own.swarm.leave(force=True)
        for network in own.networks.list(names=["docker_gwbridge"]):
            network.remove()
