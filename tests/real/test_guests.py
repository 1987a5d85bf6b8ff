"""QEMU guests, emulated: they keep the contract of sites, their ends are told, and nothing of them is left."""

import contextlib
import json
import os
import signal
import subprocess
import time
from collections.abc import Iterator
from dataclasses import replace
from itertools import count
from pathlib import Path

import pytest

from weighbridge import registry
from weighbridge.errors import EnvironmentLost, Unavailable
from weighbridge.facts.connection import connection
from weighbridge.facts.path import probe
from weighbridge.features.guests import boot, disk
from weighbridge.features.guests.environments.qemu import QemuOptions
from weighbridge.hosts.local import LocalHost
from weighbridge.linux.network import free_port
from weighbridge.linux.process import link_prefix, run_of
from weighbridge.model.command import Command, Completed, PublishedPort
from weighbridge.model.host import Limits, RunContext
from weighbridge.model.site import DATA, Site, SiteRequest, SiteStorage
from weighbridge.model.study import Role
from weighbridge.model.userland import Userland
from weighbridge.model.workload import Endpoint
from weighbridge.runner.preflight import ready

from .conftest import open_run
from .machine import Machine
from .programs import PATIENCE_S, started
from .weighing import NATIVE, going, trials, weighbridge, write_study

RUN = "9e5700000a1b"
MIB = 2**20
LIMITS = Limits(cpus=0.5, memory=384 * MIB)
_numbers = count()

pytestmark = pytest.mark.skipif(
    not ready(registry.environments()["qemu"]).ready, reason=ready(registry.environments()["qemu"]).detail
)


def requested(run: RunContext, userland: Userland, **further: object) -> SiteRequest:
    number = next(_numbers)
    made = SiteRequest(run, LocalHost(run.id), f"{number}-guest-server", "server", userland, LIMITS)
    return replace(made, **further)  # type: ignore[arg-type]


def options(**given: object) -> QemuOptions:
    return QemuOptions.model_validate({"accelerator": "tcg", **given})


@pytest.fixture(scope="module")
def run() -> Iterator[RunContext]:
    with open_run(RUN) as made:
        yield made


@pytest.fixture(scope="module")
def site(run: RunContext, small_userland: Userland) -> Iterator[Site]:
    with registry.environments()["qemu"].open(options(), requested(run, small_userland)) as opened:
        yield opened


def shell(site: Site, script: str, deadline_s: float = 60.0) -> Completed:
    return site.run(Command(("sh", "-c", script), deadline_s))


# -- what every site does ------------------------------------------------------------------------------------------


def test_output_exit_code_environment_and_input(site: Site):
    done = site.run(Command(("sh", "-c", 'echo "$WORD"; cat; echo no >&2; exit 7'), env={"WORD": "yes"}, stdin=b"in"))
    assert (done.stdout, done.stderr, done.returncode) == (b"yes\nin", b"no\n", 7)
    assert site.run(Command(("no-such-program",))).returncode == 127


def test_a_deadline_ends_a_program(site: Site):
    done = site.run(Command(("sleep", "600"), deadline_s=0.5))
    assert done.timed_out and done.returncode != 0 and done.duration_s < 300


def test_a_big_file_goes_in_and_comes_out(site: Site):
    data = bytes(range(256)) * 8192
    site.put("/tmp/big", data)
    assert site.read("/tmp/big") == data
    assert shell(site, "cat /tmp/big").stdout == data


def test_only_memory_can_be_written_to(site: Site):
    assert shell(site, "echo x > /etc/x").returncode != 0
    assert shell(site, "echo x > /tmp/x && echo x > /run/x").returncode == 0


def test_the_guest_has_the_same_bits(site: Site, small_userland: Userland):
    for path in ("var/lib/dpkg/status", "usr/bin/iperf3", "usr/bin/redis-server"):
        assert site.read(f"/{path}") == (small_userland.root / path).read_bytes()


def test_a_listener_is_seen_without_being_asked(site: Site):
    port = free_port()
    server = site.start(Command(("iperf3", "-s", "-p", str(port)), 60))
    try:
        assert site.listening((("tcp", port),), 20)
        assert not site.listening((("tcp", port + 1),))
    finally:
        server.stop()


@pytest.mark.measures
def test_the_way_there_and_back_is_short(site: Site):
    """The launcher's own answer: what a program takes is the emulated processor's matter."""
    ways = []
    for _ in range(20):
        done = site.run(Command(("true",), 20))
        assert done.outside_s is not None
        ways.append(done.outside_s - done.duration_s)
    assert sorted(ways)[10] < 0.1  # ms on an idle machine; others may have both CPUs


# -- limits and meters ---------------------------------------------------------------------------------------------


def test_the_guest_has_what_the_limits_say(site: Site):
    assert shell(site, "nproc").text == "1\n"
    total = int(next(line.split()[1] for line in site.read("/proc/meminfo").decode().splitlines()))
    assert 300 * 1024 < total < 384 * 1024  # KiB, without what the kernel keeps for itself


@pytest.mark.measures
def test_the_whole_hypervisor_is_within_the_quota(site: Site):
    before, began = site.meters()["cpu_s"], time.monotonic()
    site.run(Command(("sh", "-c", "while :; do :; done"), 3))
    used, wall = site.meters()["cpu_s"] - before, time.monotonic() - began
    assert 0.0 < used / wall < 0.5 * 1.2  # others may have the CPUs


@pytest.mark.measures
def test_a_guest_sees_its_own_cpu_time_beside_what_its_hypervisor_uses(site: Site):
    before, seen = site.meters()["cpu_s"], site.guest_meters()["guest_cpu_s"]
    site.run(Command(("sh", "-c", "while :; do :; done"), 2))
    asked = time.monotonic()
    seen, took = site.guest_meters()["guest_cpu_s"] - seen, time.monotonic() - asked
    assert seen > 0.2 and site.meters()["cpu_s"] - before > 0.2
    assert took < 0.2  # ms on an idle machine; others may have both CPUs


@pytest.mark.measures
def test_a_frozen_guest_uses_nothing_and_its_clock_goes_on(site: Site):
    with started(site, "sh", "-c", "while :; do :; done"):
        before = float(site.read("/proc/uptime").split()[0])
        site.freeze()
        used = site.meters()["cpu_s"]
        time.sleep(1.0)
        assert site.meters()["cpu_s"] - used < 0.05
        site.thaw()
        assert float(site.read("/proc/uptime").split()[0]) - before > 0.9


def test_what_it_is_is_told(site: Site):
    assert site.layers[-1].emulated and site.layers[-1].name == "QEMU, TCG"
    facts = site.facts()
    assert facts["accelerator"] == "tcg" and facts["memory"] == "384 MiB" and "6." in facts["guest kernel"]


def test_virtual_cpus_have_cpus_of_their_own_and_the_rest_has_all(run: RunContext, small_userland: Userland):
    limits, others = Limits(cpus=2, memory=384 * MIB), hypervisors(RUN)
    request = requested(run, small_userland, limits=limits)
    with registry.environments()["qemu"].open(options(network="none", pin="vcpus"), request) as opened:
        (pid,) = hypervisors(RUN) - others
        there = request.host.cpus_online()
        on = {task: cpus for task, cpus in threads(pid) if task.startswith("CPU ")}
        assert on == {"CPU 0/TCG": {there[0]}, "CPU 1/TCG": {there[1]}}
        assert all(cpus == {*there} for task, cpus in threads(pid) if task not in on)
        assert opened.facts()["virtual CPUs"] == f"2, each pinned: 0 to CPU {there[0]}, 1 to CPU {there[1]}"
    with pytest.raises(Unavailable, match=r"pin: vcpus .*\b64\b"):
        request = requested(run, small_userland, limits=replace(limits, cpus=64))
        registry.environments()["qemu"].open(options(pin="vcpus"), request).__enter__()


def test_a_guest_that_stands_still_is_booted_once_more(run: RunContext, small_userland: Userland, monkeypatch):
    monkeypatch.setattr(boot, "BOOTS_S", (0.2, 90.0))  # none answers in so little time
    others = hypervisors(RUN)
    with registry.environments()["qemu"].open(options(network="none"), requested(run, small_userland)) as opened:
        assert shell(opened, "echo booted").text == "booted\n"
        assert len(hypervisors(RUN) - others) == 1


# -- networks ------------------------------------------------------------------------------------------------------


def path_to(site: Site, run: RunContext, userland: Userland, port: int) -> None:
    """A client outside reaches it, over TCP and UDP, and is seen to."""
    native = registry.environments()["native"]
    with native.open(native.options(), requested(run, userland, role="client")) as client:
        end = Endpoint(site.listen, site.address, port, client.address)
        at: dict[Role, Endpoint] = {"server": end, "client": end}
        found = connection(site, client, at, "tcp")
        assert found is not None
        last = found.interfaces[-1]
        assert (last.place, last.name, last.mtu) == ("server", "eth0", 1500)
        datagrams = probe(site, client, at)
        assert datagrams is not None and datagrams.udp_payload >= 1472


def test_a_guest_on_a_bridge_is_reached(site: Site, run: RunContext, small_userland: Userland):
    path_to(site, run, small_userland, free_port())


@pytest.mark.parametrize(
    "given", [{"nic": "e1000", "disk": "ide"}, {"nic": "e1000e"}, {"nic": "rtl8139"}, {"network": "user"}]
)
def test_every_device_carries_what_it_should(run: RunContext, small_userland: Userland, given: dict[str, str]):
    port = free_port()
    request = requested(
        run, small_userland, ports=(PublishedPort("tcp", port, port), PublishedPort("udp", port, port))
    )
    with registry.environments()["qemu"].open(options(**given), request) as opened:
        path_to(opened, run, small_userland, port)


# -- without a network ---------------------------------------------------------------------------------------------


def test_data_is_on_a_disk_of_its_own_and_a_panic_is_told_by_the_console(run: RunContext, small_userland: Userland):
    environment = registry.environments()["qemu"]
    directory = registry.storage()["directory"]
    storage = SiteStorage("directory", lambda request: directory.open(directory.options(), request))
    with environment.open(options(network="none"), requested(run, small_userland, storage=storage)) as opened:
        assert opened.run(Command(("cat", "/proc/net/dev"), 20)).text.count(":") == 1
        assert shell(opened, f"ls -A {DATA}").text == ""
        assert shell(opened, f"dd if=/dev/zero of={DATA}/x bs=1M count=64 conv=fsync").returncode == 0
        images = [*(run.cache / "engines" / run.id).glob("data-*/data.ext4")]
        assert len(images) == 1 and images[0].stat().st_blocks * 512 > 64 * MIB
        with pytest.raises(EnvironmentLost, match="Kernel panic - not syncing: sysrq triggered crash"):
            shell(opened, "echo c > /proc/sysrq-trigger; sleep 60")
    assert not images[0].exists()


# -- ends ----------------------------------------------------------------------------------------------------------


def test_a_guest_that_is_killed_is_lost_at_once(run: RunContext, small_userland: Userland):
    others = hypervisors(RUN)
    with registry.environments()["qemu"].open(options(network="none"), requested(run, small_userland)) as opened:
        (pid,) = hypervisors(RUN) - others
        sleeping = opened.start(Command(("sleep", "600"), 600))
        os.kill(pid, signal.SIGKILL)
        with pytest.raises(EnvironmentLost):
            sleeping.wait(PATIENCE_S)
            sleeping.stop()


def test_a_guest_whose_disk_is_no_disk_does_not_come_up(
    run: RunContext, small_userland: Userland, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    image = tmp_path / "damaged"
    image.write_bytes(bytes(MIB))
    monkeypatch.setattr(disk, "ensure", lambda *_: image)
    with pytest.raises(Unavailable, match="/root: Invalid argument"):
        registry.environments()["qemu"].open(options(network="none"), requested(run, small_userland)).__enter__()


def test_more_memory_than_there_is_is_refused(run: RunContext, small_userland: Userland):
    request = requested(run, small_userland, limits=Limits(memory=2**50))
    with pytest.raises(Unavailable, match="host local"):
        registry.environments()["qemu"].open(options(network="none"), request).__enter__()


def test_a_link_that_is_not_ours_is_left_alone(small_userland: Userland):
    with open_run("9e57000000c2") as other:
        name = f"{link_prefix(other.id)}p0"
        subprocess.run(["ip", "link", "add", name, "type", "bridge"], check=True)
        try:
            with pytest.raises(Unavailable, match=name):
                registry.environments()["qemu"].open(options(), requested(other, small_userland)).__enter__()
            assert "master" not in subprocess.check_output(["ip", "link", "show", name], text=True)
        finally:
            subprocess.run(["ip", "link", "delete", name], check=False)


# -- whole runs ----------------------------------------------------------------------------------------------------

GUEST = "guest: {kind: qemu, accelerator: tcg}"
TCP = "tcp: {kind: iperf3, amount: 16MiB}"


def test_a_run_measures_a_guest_and_leaves_nothing(machine: Machine, tmp_path: Path):
    study = write_study(tmp_path, environments=(NATIVE, GUEST), workloads=(TCP,))
    done = weighbridge("run", study, "--out", tmp_path / "run", "--yes")
    assert done.code == 0, done
    assert {(row["environment"], row["outcome"]) for row in trials(tmp_path / "run")} == {
        ("native", "ok"), ("guest", "ok"),
    }  # fmt: skip
    _sees_its_own_cpu_time(tmp_path / "run")
    machine.must_be_unchanged()


def _sees_its_own_cpu_time(run: Path) -> None:
    """Beside what its hypervisor used: the guest alone has a kernel of its own."""
    rows = json.loads(weighbridge("report", run, "--json").stdout)["programs"]
    told = {row["environment"]: row["medians"] for row in rows if row["role"] == "server"}
    assert "guest_cpu_s" not in told["native"] and told["native"]["cpu_s"] > 0
    assert told["guest"]["guest_cpu_s"] > 0 and told["guest"]["cpu_s"] > 0


def test_a_guest_does_not_outlive_a_run_that_was_killed(machine: Machine, tmp_path: Path):
    study = write_study(tmp_path, environments=(NATIVE, GUEST), workloads=(TCP,), blocks=20)
    with going("run", study, "--out", tmp_path / "run", "--yes", files=tmp_path) as going_on:
        going_on.await_that(lambda: len(trials(tmp_path / "run")) >= 2)
        going_on.end(signal.SIGKILL)
    assert weighbridge("clean").code == 0
    machine.must_be_unchanged()


def threads(pid: int) -> list[tuple[str, set[int]]]:
    """The threads of a process by name, each with the CPUs that it may use."""
    folders = Path(f"/proc/{pid}/task").iterdir()
    return [((each / "comm").read_text().strip(), os.sched_getaffinity(int(each.name))) for each in folders]


def hypervisors(run_id: str) -> set[int]:
    """The processes of a run's hypervisors."""
    found = set()
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if "qemu-system" in (folder / "comm").read_text() and run_of(folder) == run_id:
                found.add(int(folder.name))
    return found
