"""User-mode Linux guests: they keep the contract of sites, from a disk and from a folder, and nothing is left."""

import contextlib
import os
import signal
import time
from collections.abc import Iterator
from dataclasses import replace
from itertools import count
from pathlib import Path

import pytest

from weighbridge import registry
from weighbridge.errors import EnvironmentLost, Unavailable
from weighbridge.facts.connection import connection
from weighbridge.features.guests import disk
from weighbridge.features.guests.environments.uml import UmlOptions
from weighbridge.hosts.local import LocalHost
from weighbridge.linux.network import free_port
from weighbridge.linux.process import run_of
from weighbridge.model.command import Command, Completed
from weighbridge.model.host import Limits, RunContext
from weighbridge.model.site import DATA, Site, SiteRequest, SiteStorage
from weighbridge.model.study import Role
from weighbridge.model.userland import Userland
from weighbridge.model.workload import Endpoint
from weighbridge.runner.preflight import ready

from .conftest import open_run
from .machine import Machine
from .programs import started
from .weighing import NATIVE, going, trials, weighbridge, write_study

RUN = "9e5700000a1c"
MIB = 2**20
LIMITS = Limits(cpus=0.5, memory=256 * MIB)
UML = registry.environments()["uml"]
_numbers = count()

pytestmark = pytest.mark.skipif(not ready(UML).ready, reason=ready(UML).detail)


def requested(run: RunContext, userland: Userland, **further: object) -> SiteRequest:
    made = SiteRequest(run, LocalHost(run.id), f"{next(_numbers)}-guest-server", "server", userland, LIMITS)
    return replace(made, **further)  # type: ignore[arg-type]


def options(**given: object) -> UmlOptions:
    return UmlOptions.model_validate(given)


@pytest.fixture(scope="module")
def run() -> Iterator[RunContext]:
    with open_run(RUN) as made:
        yield made


@pytest.fixture(scope="module", params=["disk", "folder"])
def site(run: RunContext, small_userland: Userland, request: pytest.FixtureRequest) -> Iterator[Site]:
    with UML.open(options(root=request.param), requested(run, small_userland)) as opened:
        yield opened


def shell(site: Site, script: str, deadline_s: float = 60.0) -> Completed:
    return site.run(Command(("sh", "-c", script), deadline_s))


def test_output_exit_code_environment_and_input(site: Site):
    done = site.run(Command(("sh", "-c", 'echo "$WORD"; cat; echo no >&2; exit 7'), env={"WORD": "yes"}, stdin=b"in"))
    assert (done.stdout, done.stderr, done.returncode) == (b"yes\nin", b"no\n", 7)
    assert site.run(Command(("no-such-program",))).returncode == 127


def test_a_deadline_ends_a_program(site: Site):
    done = site.run(Command(("sleep", "60"), deadline_s=0.5))
    assert done.timed_out and done.returncode != 0 and done.duration_s < 10


def test_a_big_file_goes_in_and_comes_out_of_a_line_that_holds_little(site: Site):
    data = bytes(range(256)) * 1024
    site.put("/tmp/big", data)
    assert site.read("/tmp/big") == data
    assert shell(site, "cat /tmp/big").stdout == data
    assert site.run(Command(("cat",), 60, stdin=data)).stdout == data


def test_only_memory_can_be_written_to(site: Site):
    assert shell(site, "echo x > /etc/x").returncode != 0
    assert shell(site, "echo x > /tmp/x && echo x > /run/x").returncode == 0


@pytest.mark.parametrize("above", ["", "/proc/self/root", "/proc/1/root"])
def test_a_guests_root_writes_to_no_file_of_the_host(site: Site, tmp_path: Path, above: str):
    """Its kernel has hostfs built in, and each ".." in what is mounted leads out of the guest's own folder."""
    (tmp_path / "old").write_text("old")
    script = """
        mkdir -p /tmp/host
        perl -e 'my ($none, $at, $kind, $where) = ("none", "/tmp/host", "hostfs", $ENV{WHERE});
            exit(syscall(165, $none, $at, $kind, 0, $where) == 0 ? 0 : 3)' || exit $?  # mount(2)
        cat /tmp/host/old; (echo new > /tmp/host/new); (echo new > /tmp/host/old)
        perl -e 'my $at = "/tmp/host"; exit(syscall(166, $at, 0) != 0)'  # umount2(2)
    """
    where = "../" * 12 + f"{above}/{tmp_path}".lstrip("/")
    done = site.run(Command(("sh", "-c", script), 60, env={"WHERE": where}))
    if above == "/proc/1/root":
        assert done.returncode == 3, "it sees a process of the host"
    else:
        assert (done.returncode, done.text) == (0, "old"), done
        assert done.stderr.count(b"Read-only file system") == 2
    assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [("old", "old")]


def test_the_guest_has_the_same_bits(site: Site, small_userland: Userland):
    for path in ("var/lib/dpkg/status", "usr/bin/iperf3", "usr/bin/redis-server"):
        assert site.read(f"/{path}") == (small_userland.root / path).read_bytes()


def test_registers_of_programs_that_alternate_are_kept(site: Site):
    """Sums of both, in vector registers: a processor with AMX has more of them than the guest's kernel knows."""
    sums = "for i in 1 2 3 4; do (seq 1 20000 | sha512sum) & done; wait"
    lines = shell(site, sums).text.split("\n")
    assert len({*lines[:4]}) == 1 and len(lines[0]) > 128


@pytest.mark.parametrize("transport", ["tcp", "udp"])
def test_a_listener_is_seen_without_being_asked(site: Site, transport: str):
    port = free_port()
    server = site.start(Command(("iperf3", "-s", "-p", str(port)), 60))
    try:
        assert site.listening((("tcp", port),), 20)
        assert not site.listening(((transport, port + 1),))  # type: ignore[arg-type]
    finally:
        server.stop()


def test_it_has_one_processor_and_its_memory(site: Site):
    assert shell(site, "nproc").text == "1\n"
    total = int(next(line.split()[1] for line in site.read("/proc/meminfo").decode().splitlines()))
    assert 180 * 1024 < total < 256 * 1024  # KiB, without what the kernel keeps for itself


def test_what_it_is_is_told(site: Site):
    assert (site.layers[-1].name, site.layers[-1].emulated) == ("user-mode Linux", False)
    facts = site.facts()
    assert (facts["virtual CPUs"], facts["memory"]) == ("1", "256 MiB") and "6." in facts["guest kernel"]
    assert facts["network driver"] == "uml-vector"
    assert {*site.guest_meters()} == {"guest_cpu_s"}


def test_more_processors_are_not_had(run: RunContext, small_userland: Userland):
    limits = replace(LIMITS, cpus=2)
    with UML.open(options(network="none"), requested(run, small_userland, limits=limits)) as opened:
        assert "not honoured: CPUs" in opened.facts() and shell(opened, "nproc").text == "1\n"


@pytest.mark.measures
def test_the_whole_guest_is_within_the_quota(site: Site):
    before, began = site.meters()["cpu_s"], time.monotonic()
    site.run(Command(("sh", "-c", "while :; do :; done"), 3))
    used, wall = site.meters()["cpu_s"] - before, time.monotonic() - began
    assert 0.0 < used / wall < 0.5 * 1.2  # others may have the CPUs


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


def test_a_guest_on_a_bridge_is_reached(site: Site, run: RunContext, small_userland: Userland):
    native, port = registry.environments()["native"], free_port()
    with native.open(native.options(), requested(run, small_userland, role="client")) as client:
        end = Endpoint(site.listen, site.address, port, client.address)
        at: dict[Role, Endpoint] = {"server": end, "client": end}
        found = connection(site, client, at, "tcp")
        assert found is not None
        last = found.interfaces[-1]
        assert (last.place, last.name, last.mtu) == ("server", "eth0", 1500)
        server = site.start(Command(("iperf3", "-s", "-1", "-p", str(port)), 60))
        assert site.listening((("tcp", port),), 20)
        done = client.run(Command(("iperf3", "-c", site.address, "-p", str(port), "-n", "16M"), 60))
        assert done.returncode == 0, done
        server.stop()


def test_data_is_on_a_disk_of_its_own(run: RunContext, small_userland: Userland):
    directory = registry.storage()["directory"]
    storage = SiteStorage("directory", lambda request: directory.open(directory.options(), request))
    with UML.open(options(network="none"), requested(run, small_userland, storage=storage)) as opened:
        assert opened.run(Command(("cat", "/proc/net/dev"), 20)).text.count(":") == 1
        assert shell(opened, f"ls -A {DATA}").text == "" and opened.facts()["disk driver"] == "uml-blkdev"
        assert all(flags & os.O_SYNC for flags in flags_of_disks("data.ext4")), "its driver ignores flushes"
        assert shell(opened, f"dd if=/dev/zero of={DATA}/x bs=1M count=16 conv=fsync", 300).returncode == 0
        images = [*(run.cache / "engines" / run.id).glob("data-*/data.ext4")]
        assert len(images) == 1 and images[0].stat().st_blocks * 512 > 16 * MIB
    assert not images[0].exists()


def test_a_program_of_this_machine_writes_to_a_layer_in_memory(run: RunContext, tmp_path: Path):
    (tmp_path / "old").write_text("old")
    machine = Userland("", Path("/"), None, {}, layered=str(tmp_path))
    with UML.open(options(root="folder", network="none"), requested(run, machine)) as opened:
        assert opened.read(f"{tmp_path}/old") == b"old"
        assert shell(opened, f"echo new > {tmp_path}/new && cat {tmp_path}/new").text == "new\n"
        assert shell(opened, "echo x > /etc/x").returncode != 0
    assert [path.name for path in tmp_path.iterdir()] == ["old"]


# -- ends ----------------------------------------------------------------------------------------------------------


def test_a_guest_that_is_killed_is_lost_at_once(run: RunContext, small_userland: Userland):
    others = guests(RUN)
    with UML.open(options(network="none"), requested(run, small_userland)) as opened:
        sleeping = opened.start(Command(("sleep", "600"), 600))
        for pid in guests(RUN) - others:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        assert sleeping.wait(300)
        with pytest.raises(EnvironmentLost):
            sleeping.stop()
    assert guests(RUN) == others


def test_why_a_guest_ended_is_told_by_its_console(run: RunContext, small_userland: Userland):
    with (
        UML.open(options(network="none"), requested(run, small_userland)) as opened,
        pytest.raises(EnvironmentLost, match="Kernel panic - not syncing: sysrq triggered crash"),
    ):
        shell(opened, "echo c > /proc/sysrq-trigger; sleep 60")


def test_a_guest_whose_disk_is_no_disk_does_not_come_up(
    run: RunContext, small_userland: Userland, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    image = tmp_path / "damaged"
    image.write_bytes(bytes(MIB))
    monkeypatch.setattr(disk, "ensure", lambda *_: image)
    with pytest.raises(Unavailable, match="/root: Invalid argument"):
        UML.open(options(network="none"), requested(run, small_userland)).__enter__()


# -- whole runs ----------------------------------------------------------------------------------------------------

TCP = "tcp: {kind: iperf3, amount: 16MiB}"


def test_a_run_measures_a_guest_and_leaves_nothing(machine: Machine, tmp_path: Path):
    study = write_study(tmp_path, environments=(NATIVE, "guest: {kind: uml}"), workloads=(TCP,))
    done = weighbridge("run", study, "--out", tmp_path / "run", "--yes")
    assert done.code == 0, done
    assert {(row["environment"], row["outcome"]) for row in trials(tmp_path / "run")} == {
        ("native", "ok"), ("guest", "ok"),
    }  # fmt: skip
    machine.must_be_unchanged()


def test_a_guest_does_not_outlive_a_run_that_was_killed(machine: Machine, tmp_path: Path):
    study = write_study(tmp_path, environments=(NATIVE, "guest: {kind: uml}"), workloads=(TCP,), blocks=20)
    with going("run", study, "--out", tmp_path / "run", "--yes", files=tmp_path) as going_on:
        going_on.await_that(lambda: len(trials(tmp_path / "run")) >= 2)
        going_on.end(signal.SIGKILL)
    assert weighbridge("clean").code == 0
    machine.must_be_unchanged()


def flags_of_disks(name: str) -> list[int]:
    """The flags with which the run's guests have opened disks of this name, of which there are some."""
    files = [file for pid in guests(RUN) for file in Path(f"/proc/{pid}/fd").iterdir()]
    infos = [file.parents[1] / "fdinfo" / file.name for file in files if file.readlink().name == name]
    assert infos
    return [int(info.read_text().split()[3], 8) for info in infos]


def guests(run_id: str) -> set[int]:
    """The processes of a run's guests on the host that carry its mark."""
    found = set()
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if "linux.uml" in (folder / "comm").read_text() and run_of(folder) == run_id:
                found.add(int(folder.name))
    return found
