"""Sites of every kind keep the same contract."""

import hashlib
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from weighbridge import registry
from weighbridge.hosts.local import LocalHost
from weighbridge.launcher.build import NAME
from weighbridge.linux import cgroup_files
from weighbridge.linux.cpus import cpus_online
from weighbridge.linux.network import free_port
from weighbridge.model.command import Command, Completed, PublishedPort
from weighbridge.model.host import Limits
from weighbridge.model.site import Site, SiteRequest
from weighbridge.model.userland import Userland

from .conftest import open_run
from .machine import processes
from .programs import PATIENCE_S, await_that

RUN = "5175e5717e57"
KINDS = {
    "native": ("native", {}),
    "none": ("docker", {"network": "none"}),
    "host": ("docker", {"network": "host"}),
    "bridge": ("docker", {"network": "bridge"}),
    "gateway": ("docker", {"network": "bridge", "publish": True}),
    "loopback": ("docker", {"network": "bridge", "publish": True, "publish_on": "loopback"}),
    "apptainer": ("apptainer", {}),
    "contained": ("apptainer", {"contain": True, "image": "folder"}),
}
LIMITS = Limits(cpus=0.5, memory=128 * 2**20, cpuset="0")
MIB = 2**20


@pytest.fixture(scope="module")
def ports() -> dict[str, int]:
    return {name: free_port() for name in KINDS}


@contextmanager
def under_taskset() -> Iterator[None]:
    """This process on one CPU alone, as taskset(1) starts it."""
    own = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(own)})
    try:
        yield
    finally:
        os.sched_setaffinity(0, own)


@pytest.fixture(scope="module")
def sites(userland: Userland, ports: dict[str, int], apptainer: str) -> Iterator[dict[str, Site]]:
    """One of each; those of Apptainer where there is one."""
    with open_run(RUN) as run, under_taskset():
        opened = {}
        for name, (kind, options) in KINDS.items():
            if kind == "apptainer" and apptainer:
                continue
            environment = registry.environments()[kind]
            request = SiteRequest(
                run,
                LocalHost(run.id),
                f"{name}-server",
                "server",
                userland,
                LIMITS,
                (PublishedPort("tcp", ports[name], ports[name]),),
            )
            opened[name] = run.stack.enter_context(environment.open(environment.options(**options), request))
        yield opened


@pytest.fixture(params=KINDS)
def site(request: pytest.FixtureRequest, sites: dict[str, Site], apptainer: str) -> Site:
    return one_of(sites, request.param, apptainer)


@pytest.fixture(params=["native", "bridge", "apptainer", "contained"])
def either(request: pytest.FixtureRequest, sites: dict[str, Site], apptainer: str) -> Site:
    """One native, and containers: what does not depend on the network."""
    return one_of(sites, request.param, apptainer)


def one_of(sites: dict[str, Site], name: str, lacking: str) -> Site:
    if name not in sites:
        pytest.skip(lacking)
    return sites[name]


def test_under_taskset_an_engine_is_on_the_cpus_that_sites_have(sites: dict[str, Site]):
    cpus = {name: os.sched_getaffinity(pid) for pid, run, name in processes() if run == RUN}
    assert {name for name, (kind, _) in KINDS.items() if kind != "apptainer"} <= sites.keys()
    for name in ("dockerd", "containerd", "docker-proxy"):
        assert cpus[name] == {*cpus_online()}, name


def shell(site: Site, script: str, *, deadline_s: float = 60.0, stdin: bytes = b"") -> Completed:
    return site.run(Command(("sh", "-c", script), deadline_s, stdin=stdin))


def group_file(site: Site, controller: str, name: str) -> str:
    """A file of the control group that the site's processes are in, read on the host."""
    for line in shell(site, "cat /proc/self/cgroup").text.splitlines():
        _, names, path = line.split(":", 2)
        if controller in names.split(",") or (names == "" and cgroup_files.version() == 2):
            base = cgroup_files.bases()[controller if cgroup_files.version() == 1 else ""]
            return (base / path.lstrip("/") / name).read_text().strip()
    raise AssertionError(f"{site.name} is in no group of {controller}")


# -- processes ---------------------------------------------------------------------------------------------------


def test_output_exit_code_and_environment(site: Site):
    done = site.run(Command(("sh", "-c", 'echo "$WORD"; echo no >&2; exit 7'), env={"WORD": "yes"}))
    assert (done.stdout, done.stderr, done.returncode, done.timed_out) == (b"yes\n", b"no\n", 7, False)


def test_standard_input_and_bytes_that_are_no_text(either: Site):
    data = bytes(range(256)) * 64
    assert either.run(Command(("cat",), stdin=data)).stdout == data


def test_large_input_that_nobody_reads_does_not_hold_us_up(either: Site):
    done = either.run(Command(("true",), 10, stdin=b"x" * 2 * MIB))
    assert done.returncode == 0
    late = either.run(Command(("sleep", "600"), 1, stdin=b"x" * 2 * MIB))
    assert late.timed_out and late.duration_s < 300


def test_five_megabytes_on_both_streams_are_captured_whole(either: Site):
    script = "head -c 5000000 /dev/zero | tr '\\0' a & head -c 5000000 /dev/zero | tr '\\0' b >&2; wait"
    done = shell(either, script)
    assert done.stdout == b"a" * 5_000_000
    assert done.stderr == b"b" * 5_000_000


def test_no_such_program_is_a_failure_with_words(either: Site):
    done = either.run(Command(("no-such-program",)))
    assert done.returncode in (126, 127)
    assert "no-such-program" in done.last_words


def test_deadline_kills(site: Site):
    done = site.run(Command(("sleep", "600"), deadline_s=0.3))
    assert done.timed_out
    assert done.duration_s < 300
    assert done.returncode != 0


STUBBORN = """trap '' TERM; echo up; while :; do sleep 1; done"""


def test_one_that_ignores_sigterm_is_killed_with_its_children(either: Site):
    running = either.start(Command(("sh", "-c", f"({STUBBORN}) & {STUBBORN}")))
    await_that(lambda: running.printed()[0] == b"up\nup\n")
    assert running.poll() is None
    assert running.stop().returncode != 0
    assert processes_of(either) == []
    assert running.stop() is running.stop(), "stopping twice is harmless"


def test_children_that_outlive_their_leader_are_ended(either: Site):
    done = shell(either, "sleep 61 & echo up")
    assert (done.returncode, done.stdout) == (0, b"up\n")
    assert processes_of(either) == []


def processes_of(site: Site) -> list[str]:
    """The processes in the site's control group beside its launcher, and what Apptainer has there itself."""
    script = "for p in /proc/[0-9]*; do cat $p/cmdline $p/cgroup 2>/dev/null | tr '\\0\\n' '  '; echo; done"
    group = next(line for line in shell(site, "cat /proc/self/cgroup").text.splitlines() if ":cpu" in line)
    lines = [line for line in shell(site, script).text.splitlines() if group.split(":", 1)[1] in line]
    ours = [line for line in lines if NAME not in line.split(" ")[0] and "for p in" not in line]
    ours = [line for line in ours if not line.startswith(("Apptainer runtime", "appinit"))]
    return [line for line in ours if not line.startswith(("cat ", "tr "))]


def test_stop_signal_is_used(either: Site):
    running = either.start(
        Command(("sh", "-c", "trap 'echo bye; exit 3' TERM; echo up; while :; do sleep 0.1; done"))
    )
    await_that(lambda: running.printed()[0] == b"up\n")
    done = running.stop()
    assert done.stdout == b"up\nbye\n"
    assert done.returncode == 3


# -- the userland ------------------------------------------------------------------------------------------------


def test_the_same_bits_everywhere(sites: dict[str, Site], userland: Userland):
    command = Command(("sha256sum", "/usr/bin/iperf3", "/usr/bin/sysbench", "/var/lib/dpkg/status"))
    sums = {site.run(command).stdout for site in sites.values()}
    assert len(sums) == 1
    expected = hashlib.sha256((userland.root / "usr/bin/iperf3").read_bytes()).hexdigest()
    assert sums.pop().decode().startswith(expected)


def test_root_is_read_only_and_tmp_and_run_are_not(site: Site):
    for path in ("/x", "/usr/x", "/etc/x", "/var/x"):
        assert shell(site, f"echo x > {path}").returncode != 0, path
    for path in ("/tmp/x", "/run/x"):
        assert shell(site, f"echo x > {path} && cat {path} && rm {path}").stdout == b"x\n"


def test_put(site: Site):
    data = bytes(range(256)) * 4096
    site.put("/tmp/put", data)
    assert site.run(Command(("sha256sum", "/tmp/put"))).text.split()[0] == hashlib.sha256(data).hexdigest()
    shell(site, "rm /tmp/put")


def test_put_elsewhere_is_refused_with_one_sentence(either: Site):
    with pytest.raises(Exception, match="/etc/x") as caught:
        either.put("/etc/x", b"x")
    assert "\n" not in str(caught.value)


def test_facts(sites: dict[str, Site], userland: Userland):
    for name, site in sites.items():
        facts = site.facts()
        assert facts["userland"] == userland.digest
        assert facts["user"] == "root"
        refused = [key for key in facts if key.startswith("not honoured")]
        assert refused == (["not honoured: limits of docker-proxy"] if name == "loopback" else []), (name, facts)
    assert "private" in sites["bridge"].facts()["docker"]


# -- the network -------------------------------------------------------------------------------------------------


def serve(site: Site, port: int) -> Command:
    """A server that answers each connection with a word."""
    script = (
        "use Socket; socket(S, PF_INET, SOCK_STREAM, 0); setsockopt(S, SOL_SOCKET, SO_REUSEADDR, 1);"
        "bind(S, sockaddr_in($ARGV[1], inet_aton($ARGV[0]))) or die; listen(S, 5);"
        "while (accept(C, S)) { syswrite(C, 'weighed'); close(C); }"
    )
    return Command(("perl", "-e", script, site.listen, str(port)), listens=(("tcp", port),))


@pytest.mark.parametrize("name", ["native", "host", "bridge", "gateway", "loopback"])
def test_a_server_is_seen_and_reached_from_the_host(sites: dict[str, Site], ports: dict[str, int], name: str):
    import socket

    site, port = sites[name], ports[name]
    assert not site.listening((("tcp", port),))
    running = site.start(serve(site, port))
    try:
        assert site.listening((("tcp", port),), PATIENCE_S)
        with socket.create_connection((site.address, port), timeout=10) as connection:
            assert connection.recv(100) == b"weighed"
    finally:
        running.stop()
    assert not site.listening((("tcp", port),))


def test_no_network_is_no_network(sites: dict[str, Site]):
    links = shell(sites["none"], "ls /sys/class/net").text.split()
    assert links == ["lo"]


def test_published_addresses(sites: dict[str, Site]):
    assert sites["loopback"].address == "127.0.0.1"
    assert sites["gateway"].address.endswith(".1") and sites["gateway"].address != "127.0.0.1"
    assert sites["bridge"].address == sites["bridge"].listen


# -- limits ------------------------------------------------------------------------------------------------------


def test_limits_are_in_force_and_equal(sites: dict[str, Site]):
    if cgroup_files.version() != 1:
        names = (("cpu", "cpu.max"), ("memory", "memory.max"), ("cpuset", "cpuset.cpus"))
        expected = ["50000 100000", str(LIMITS.memory), "0"]
    else:
        names = (
            ("cpu", "cpu.cfs_quota_us"), ("cpu", "cpu.cfs_period_us"), ("cpu", "cpu.shares"),
            ("memory", "memory.limit_in_bytes"), ("cpuset", "cpuset.cpus"),
        )  # fmt: skip
        expected = ["50000", "100000", "1024", str(LIMITS.memory), "0"]
    for site in (sites["native"], sites["host"], sites["bridge"]):
        assert [group_file(site, *name) for name in names] == expected, site.name


def test_swap_is_treated_alike(sites: dict[str, Site]):
    if cgroup_files.version() != 1:
        pytest.skip("version 1 names")
    found = set()
    for name in ("native", "bridge"):
        try:
            found.add(group_file(sites[name], "memory", "memory.memsw.limit_in_bytes"))
        except OSError:
            found.add("absent")
    assert len(found) == 1


@pytest.mark.measures
def test_busy_loop_gets_half_a_cpu(either: Site):
    before, began = either.meters(), time.monotonic()
    done = shell(either, "while :; do :; done", deadline_s=2.0)
    wall = time.monotonic() - began
    after = either.meters()
    assert done.timed_out
    assert 0.35 <= (after["cpu_s"] - before["cpu_s"]) / wall <= 0.65
    assert after["throttled_s"] > before["throttled_s"]


def test_memory_limit_ends_one_that_takes_too_much(either: Site):
    done = either.run(Command(("perl", "-e", '$x = "a" x (400 * 2**20); print "survived\n"'), 30))
    assert done.returncode != 0
    assert b"survived" not in done.stdout
    assert not done.timed_out
    fine = either.run(Command(("perl", "-e", '$x = "a" x (20 * 2**20); print "survived\n"'), 30))
    assert fine.stdout == b"survived\n"


def test_cpuset_is_what_programs_see(either: Site):
    assert shell(either, "nproc").text.strip() == "1"
    assert "Cpus_allowed_list:\t0\n" in shell(either, "cat /proc/self/status").text


def test_meters_are_of_the_site_alone(either: Site):
    readings = either.meters()
    assert set(readings) == {"cpu_s", "throttled_s", "throttled_periods", "memory_bytes", "oom_kills"}
    assert 0 < readings["memory_bytes"] <= LIMITS.memory  # type: ignore[operator]


# -- freezing ----------------------------------------------------------------------------------------------------


def test_frozen_makes_no_progress(either: Site):
    running = either.start(Command(("sh", "-c", "i=0; while :; do i=$((i+1)); echo $i > /tmp/count; done")))
    try:
        assert not running.wait(0.3)
        either.freeze()
        before = either.meters()["cpu_s"]
        assert not running.wait(0.5)
        assert either.meters()["cpu_s"] == before
        either.thaw()
        assert not running.wait(0.3)
        assert either.meters()["cpu_s"] > before
    finally:
        running.stop()


def test_sites_hold_nothing_of_each_other(sites: dict[str, Site]):
    shell(sites["native"], "echo x > /tmp/mine")
    assert shell(sites["bridge"], "test -e /tmp/mine").returncode == 1
    assert not Path("/tmp/mine").exists()
    shell(sites["native"], "rm /tmp/mine")
