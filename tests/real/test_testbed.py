"""Hosts that are made on this machine: each is a machine of its own, and ends as a whole."""

import json
import os
import signal
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from weighbridge.engines.docker import engine
from weighbridge.errors import EnvironmentLost, Unavailable
from weighbridge.hosts import testbed
from weighbridge.hosts.chroot import chroot_site
from weighbridge.launcher.build import NAME
from weighbridge.linux import cgroup_files, cpus, network
from weighbridge.model.command import Command
from weighbridge.model.host import Limits, RunContext
from weighbridge.model.site import SiteRequest
from weighbridge.model.userland import Userland
from weighbridge.userland.build import cache_folder

from .between import CONTAINER, NATIVE, on_host, write
from .conftest import open_run
from .machine import Machine, processes
from .programs import PATIENCE_S, await_that
from .weighing import going, run_id, trials, weighbridge

RUN = "7e57bed7e57b"
PAUSED = {"docker-init", "tini", NAME[:15], "sleep", "unshare"}
PAYLOAD = 100 * 1448 / 1538
"""Mbit/s of TCP payload on Ethernet of 100 Mbit/s: each frame has 12 bytes of options, 40 of headers, 38 around.

Without what is around a frame it would be 95.7.
"""
OPTIONS = {
    "a": {"link": "100Mbit/s", "cpus": "0"},
    "b": {"link": "100Mbit/s", "cpus": "1"},
    "c": {"mtu": 1400, "offloads": False},
}
LISTEN = (
    "use Socket; socket(S, PF_INET, SOCK_STREAM, 0); setsockopt(S, SOL_SOCKET, SO_REUSEADDR, 1);"
    "bind(S, sockaddr_in($ARGV[0], INADDR_ANY)) or die; listen(S, 5); sleep 100"
)
_KNOCK = "use IO::Socket::INET; IO::Socket::INET->new(PeerAddr => $ARGV[0], PeerPort => 9, Timeout => 2); print $!"


@pytest.fixture(scope="module")
def run() -> Iterator[RunContext]:
    before = Machine.as_it_is()
    with open_run(RUN) as run:
        yield run
    before.must_be_unchanged()


@pytest.fixture(scope="module")
def hosts(run: RunContext) -> Iterator[dict[str, testbed.TestbedHost]]:
    with ExitStack() as stack:
        yield {name: stack.enter_context(made(run, name, **options)) for name, options in OPTIONS.items()}  # type: ignore[arg-type]


@contextmanager
def made(run: RunContext, name: str, **options: object) -> Iterator[testbed.TestbedHost]:
    with testbed.testbed_host(
        name, testbed.TestbedOptions.model_validate({"kind": "testbed", **options}), run
    ) as host:
        yield host


def told(host: testbed.TestbedHost, script: str, *arguments: str) -> str:
    """What a script prints on the host."""
    done = host.run(Command(("sh", "-c", script, "script", *arguments), 20))
    assert done.returncode == 0, done
    return done.text.strip()


def reaches(host: testbed.TestbedHost, address: str) -> bool:
    """Whether there is somebody at an address, who then says that nobody listens."""
    return host.run(Command(("perl", "-e", _KNOCK, address), 20)).text == "Connection refused"


def test_it_is_a_machine_of_its_own(hosts: dict[str, testbed.TestbedHost]):
    a, b = hosts["a"], hosts["b"]
    for namespace in ("net", "mnt", "uts", "ipc", "pid"):
        seen = {told(host, f"readlink /proc/self/ns/{namespace}") for host in (a, b)}
        assert len(seen | {str(Path(f"/proc/self/ns/{namespace}").readlink())}) == 3
    assert (told(a, "hostname"), told(b, "hostname")) == ("wb-a", "wb-b")
    assert told(a, "cat /proc/1/comm") in ("tini", "docker-init")
    assert len(told(a, "ls -d /proc/[0-9]*").split()) < 8
    assert set(told(a, "ls /sys/class/net").split()) == {"lo", "eth0"}
    assert told(a, "cat /sys/class/net/eth0/operstate") == "up"
    told(a, "echo mine > /etc/weighbridge-test; echo mine > /run/weighbridge-test")
    for path in ("/etc/weighbridge-test", "/run/weighbridge-test"):
        assert a.read(path) == b"mine\n"
        assert not Path(path).exists()
        with pytest.raises(FileNotFoundError):
            b.read(path)
    assert "/host-a" in told(a, "cat /proc/self/cgroup")
    assert told(a, f"ls -d /sys/fs/cgroup{'' if cgroup_files.version() == 2 else '/cpu'}/weighbridge/{RUN}/host-a")


def test_it_does_what_is_asked_of_it(hosts: dict[str, testbed.TestbedHost]):
    a = hosts["a"]
    done = a.run(Command(("sh", "-c", 'cat; echo "$WORD" >&2; exit 3'), stdin=b"yes", env={"WORD": "no"}))
    assert (done.stdout, done.stderr, done.returncode, done.timed_out) == (b"yes", b"no\n", 3, False)
    slow = a.run(Command(("sleep", "600"), 0.2))
    assert slow.timed_out and slow.duration_s < 300
    held = a.start(Command(("cat",)), hold=True)
    held.send(b"written")
    await_that(lambda: held.output_so_far() == b"written")
    assert held.poll() is None
    assert held.output_so_far(5) == b"en" and held.stop().stdout == b"written"
    server = a.start(Command(("sh", "-c", "trap 'echo bye; exit 3' TERM; echo up; while :; do sleep 0.1; done")))
    while server.output_so_far() != b"up\n":
        assert not server.wait(0.01)
    assert server.stop().stdout == b"up\nbye\n", "its last words are heard"
    assert told(a, "ls /proc/[0-9]*/exe | wc -l") < "6", "nothing is left of what was ended"


def test_hosts_reach_one_another_and_nothing_else(hosts: dict[str, testbed.TestbedHost]):
    a, b = hosts["a"], hosts["b"]
    assert a.address != b.address
    assert reaches(a, b.address)
    assert not reaches(a, "192.0.2.1")


@pytest.mark.measures
def test_link_rate_is_that_of_ethernet(hosts: dict[str, testbed.TestbedHost], run: RunContext, userland: Userland):
    a, b = hosts["a"], hosts["b"]
    with ExitStack() as stack:
        client, server = (
            stack.enter_context(
                chroot_site(
                    SiteRequest(
                        run, host, f"rate-{role}", role, userland, Limits(cpuset=host.cpuset), separate_hosts=True
                    )
                )
            )
            for host, role in ((a, "client"), (b, "server"))
        )
        port = b.free_ports()
        running = server.start(Command(("iperf3", "-s", "-B", server.listen, "-p", str(port))))
        while not server.listening((("tcp", port),)):
            assert running.poll() is None
        measured: list[float] = []
        command = Command(("iperf3", "-J", "-c", server.address, "-p", str(port), "-t", "3", "-O", "1"), 30)
        while len(measured) < 5 and max(measured, default=0.0) < 0.98 * PAYLOAD:  # steal lets tokens run over
            done = client.run(command)
            measured.append(json.loads(done.text)["end"]["sum_received"]["bits_per_second"] / 1e6)
        running.stop()
    assert 0.7 * PAYLOAD < max(measured) < 1.01 * PAYLOAD, "with less of the CPUs for us less arrives, never more"


def test_mtu_and_offloads_are_in_force(hosts: dict[str, testbed.TestbedHost]):
    for name, mtu, state in (("a", "1500", "on"), ("c", "1400", "off")):
        assert hosts[name].read("/sys/class/net/eth0/mtu").decode().strip() == mtu
        features = told(hosts[name], "ethtool -k eth0")
        for feature in ("tcp-segmentation-offload", "generic-segmentation-offload"):
            assert f"{feature}: {state}" in features
    assert "generic-receive-offload: off" in told(hosts["c"], "ethtool -k eth0")
    assert "tbf" in told(hosts["a"], "tc qdisc show dev eth0") and "tbf" not in told(hosts["c"], "tc qdisc")
    known = hosts["c"].facts()
    assert (known["mtu"], known["offloads"], known["link"]) == ("1400", "off", "no rate limit")
    assert "100 Mbit/s" in hosts["a"].facts()["link"]


def test_its_cpus_hold_for_everything_in_it(hosts: dict[str, testbed.TestbedHost], run: RunContext):
    for name, cpu, mask in (("a", "0", "1"), ("b", "1", "2")):
        host = hosts[name]
        assert (host.cpuset, host.cpus_online()) == (cpu, [int(cpu)])
        assert told(host, "nproc") == "1"
        assert f"Cpus_allowed_list:\t{cpu}\n" in host.read("/proc/1/status").decode()
        assert host.read("/sys/class/net/eth0/queues/rx-0/rps_cpus").decode().strip().lstrip("0,") == mask
    assert hosts["c"].cpus_online() == cpus.cpus_online()


def test_listeners_and_free_ports_are_its_own(hosts: dict[str, testbed.TestbedHost], monkeypatch: pytest.MonkeyPatch):
    a, b = hosts["a"], hosts["b"]
    port = a.free_ports()
    server = a.start(Command(("perl", "-e", LISTEN, str(port))))
    while not network.listening((("tcp", port),), a.pid):
        assert not server.wait(0.01)
    assert not network.listening((("tcp", port),), b.pid) and not network.listening((("tcp", port),))
    monkeypatch.setattr(network, "_FIRST_PORT", port)
    monkeypatch.setattr(network, "_PORTS", 4)
    assert (a.free_ports(), b.free_ports([port + 2])) == (port + 2, port)
    server.stop()
    assert not network.listening((("tcp", port),), a.pid)


def test_groups_meters_scopes_and_signals_go_by_its_own_numbers(hosts: dict[str, testbed.TestbedHost]):
    a = hosts["a"]
    group = a.group("some")
    assert group.limit(Limits(cpus=0.5, memory=2**28)) == {}
    join = 'for f in "$@"; do echo 0 > "$f"; done; echo $$; exec setsid sleep 100'
    process = a.start(Command(("sh", "-c", join, "join", *(str(path) for path in group.procs))))
    while not process.output_so_far().endswith(b"\n"):
        assert not process.wait(0.01)
    pid = int(told(a, "until pgrep -x sleep; do sleep 0.05; done").split()[0])
    assert a.meters_of(pid)["memory_bytes"] == group.meters()["memory_bytes"] > 0
    scope = a.scope_of(pid)
    assert {**group.scope(), "net": f"/proc/{pid}/net/dev"} == scope
    assert b"eth0" in a.read(scope["net"])
    for path in group.scope().values():
        assert a.read(path)
    group.freeze()
    group.thaw()
    a.signal(pid, signal.SIGTERM)
    assert process.wait(5)
    process.stop()
    a.signal(pid, signal.SIGTERM)  # it has ended: no error
    assert (a.meters_of(pid), a.scope_of(pid)) == ({}, {})
    assert group.remove()


def test_a_cpu_that_is_not_there(run: RunContext):
    with (
        pytest.raises(Unavailable, match=r"host far cannot use CPU 4095\b"),
        made(run, "far", cpus="4095"),
    ):
        pass


def test_a_variant_is_one_more_host_with_the_same_cable(hosts: dict[str, testbed.TestbedHost]):
    a = hosts["a"]
    other = a.dedicated_host("macvlan")
    assert other is a.dedicated_host("macvlan") and other is not a
    assert (other.name, other.options) == ("a-macvlan", a.options)
    assert other.address not in {host.address for host in hosts.values()}
    assert reaches(other, hosts["b"].address)
    assert told(other, "hostname") == "wb-a-macvlan"


def test_a_cable_can_be_pulled_and_plugged_in(hosts: dict[str, testbed.TestbedHost]):
    a, b = hosts["a"], hosts["b"]
    a.plug(up=False)
    assert told(a, "cat /sys/class/net/eth0/carrier") == "0"
    assert not reaches(a, b.address)
    a.plug(up=True)
    # the first packet may still wait for the answer of a neighbour that was asked without a carrier
    assert any(reaches(a, b.address) for _ in range(3))


def test_its_first_process_takes_everything_along(run: RunContext):
    """Also the engine and its mounts; what is asked of it afterwards is told that it has gone."""
    with made(run, "mortal") as host, engine(run, host) as docker:
        network = docker.client.networks.create("some")
        assert network.id
        sleeper = host.start(Command(("sleep", "100")))
        while not {"dockerd", "sleep"} <= on_host(run.id, "mortal"):
            assert not sleeper.wait(0.01)
        os.kill(host.pid, signal.SIGKILL)
        assert sleeper.wait(PATIENCE_S)
        await_that(lambda: not on_host(run.id, "mortal"))
        for ask in (lambda: host.run(Command(("true",))), lambda: host.start(Command(("true",)))):
            with pytest.raises(EnvironmentLost, match="host mortal "):
                ask()
        host.signal(1, signal.SIGTERM)
        assert host.meters_of(1) == {}
        with pytest.raises(OSError, match="No such"):
            host.read("/proc/1/comm")
    assert not (run.cache / "engines" / run.id).exists()


def test_killed_with_kill_9_it_leaves_only_what_clean_removes(
    run: RunContext, machine: Machine, userland: Userland, tmp_path: Path
):
    """The run of the other tests lives beside it, and is named by `clean`."""
    study = write(tmp_path, environments=(NATIVE, CONTAINER), blocks=30)
    killed = tmp_path / "run"
    with going("run", study, "--out", killed, "--yes", files=tmp_path) as going_on:
        going_on.await_that(lambda: len(trials(killed)) >= 2)
        own = run_id(killed)
        assert {"dockerd", "tini", "docker-init"} & on_host(own, "b-docker")
        going_on.end(signal.SIGKILL)
    # what is paused cannot die, and what waits for it
    await_that(lambda: not {name for _, owner, name in processes() if owner == own} - PAUSED)
    listed = weighbridge("clean", "--check")
    listed.must_fail(1)
    kinds = {line.split(" weighbridge/")[0].split(" /")[0] for line in listed.stdout.splitlines()}
    assert kinds - {line for line in kinds if line.startswith("process ")} == {
        "control group",
        "state folder",
        "engine data",
    }, listed.stdout
    cleaned = weighbridge("clean")
    assert (cleaned.code, cleaned.stdout.splitlines()[-1]) == (0, "no other leftovers"), cleaned
    assert not (cache_folder() / "engines").exists()
