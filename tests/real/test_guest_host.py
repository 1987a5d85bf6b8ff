"""Guests as hosts: a kernel of their own that holds what this machine's may not, and nothing left of them.

Emulated on a busy machine one takes a minute to come up, so the module has few of them.
"""

import contextlib
import io
import os
import signal
import tarfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from weighbridge.engines import networks
from weighbridge.engines.docker import LAUNCHER, engine
from weighbridge.errors import EnvironmentLost, Unavailable
from weighbridge.features.guests import ramdisk
from weighbridge.features.guests.hosts.guest.host import GuestHost, guest_host
from weighbridge.features.guests.hosts.guest.options import GuestOptions
from weighbridge.hosts.chroot import chroot_site
from weighbridge.launcher import build
from weighbridge.linux import process
from weighbridge.model.command import Command
from weighbridge.model.host import SPEEDS, Limits, RunContext
from weighbridge.model.site import SiteRequest
from weighbridge.model.userland import Userland
from weighbridge.runner import clean, run_lock

from .conftest import open_run
from .programs import await_that
from .weighing import going, run_id, trials

RUN = "6e57d057a0b1"
OPTIONS = GuestOptions.model_validate({"kind": "guest", "accelerator": "tcg", "memory": "1GiB"})
STUDY = """study: on-a-guest
question: Does it run on a host with a kernel of its own?
hosts: {lab: {kind: guest, memory: 1GiB, accelerator: tcg}}
placement: {client: lab, server: lab}
baseline: native
aa: false
environments: {native: {kind: native}}
workloads: {cpu: {kind: sysbench-cpu, duration: 1s}}
repetitions: {blocks: 1}
"""


@pytest.fixture(scope="module")
def run() -> Iterator[RunContext]:
    with open_run(RUN) as run:
        yield run
    assert not _processes(RUN)
    assert not (run.cache / "engines" / RUN).exists()


@pytest.fixture(scope="module")
def host(run: RunContext) -> Iterator[GuestHost]:
    with guest_host("lab", OPTIONS, run) as host:
        yield host


def _processes(run: str, name: str = "") -> list[Path]:
    """Folders in /proc of a run's processes whose name begins so."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):  # one that has just ended
            mine = process.run_of(folder) == run and int(folder.name) != os.getpid()
            if mine and (folder / "comm").read_text().startswith(name):
                found.append(folder)
    return found


def _run(host: GuestHost, *argv: str) -> str:
    done = host.run(Command(argv, 120))
    assert done.returncode == 0, done
    return done.text


def test_it_is_a_machine_of_its_own(host: GuestHost):
    assert host.layers and any(layer.emulated for layer in host.layers)
    assert _run(host, "uname", "-r").strip() != os.uname().release
    assert _run(host, "hostname").strip() == "wb-lab"
    assert host.read("/proc/1/comm") == b"init\n"
    assert host.cpus_online() == sorted(os.sched_getaffinity(0))
    assert host.clock().within_s < 5
    assert host.free_ports() > 0
    with pytest.raises(FileNotFoundError):
        host.read("/nothing")
    with pytest.raises(Unavailable, match="nothing-of-this-name"):
        host.run(Command(("nothing-of-this-name",), 10))


def test_its_kernel_has_what_this_machines_may_lack(host: GuestHost):
    _run(host, "ip", "link", "add", "try0", "link", "eth0", "type", "ipvlan", "mode", "l2")
    _run(host, "ip", "link", "delete", "try0")
    key = "0x000102030405060708090a0b0c0d0e0f10111213"
    ends = ("src", "127.0.0.1", "dst", "127.0.0.2", "proto", "esp", "spi", "0x1")
    cipher = ("mode", "transport", "aead", "rfc4106(gcm(aes))", key, "64")
    _run(host, "ip", "xfrm", "state", "add", *ends, *cipher)
    _run(host, "ip", "xfrm", "state", "flush")
    _run(host, "modprobe", "nfsd")


@pytest.mark.measures
def test_a_native_site_has_the_userland_and_its_limits(host: GuestHost, run: RunContext, small_userland: Userland):
    limits = Limits(cpus=0.5, memory=256 * 2**20)
    with chroot_site(SiteRequest(run, host, "1-native-solo", "solo", small_userland, limits)) as site:
        assert site.layers == host.layers
        assert not [key for key in site.facts() if key.startswith("not honoured")]
        done = site.run(Command(("sysbench", "--version"), 60))
        assert done.returncode == 0 and "sysbench" in done.text
        before, started = site.meters()["cpu_s"], time.monotonic()
        site.run(Command(("sh", "-c", "timeout 5 sh -c 'while :; do :; done'"), 60))
        used, took = site.meters()["cpu_s"] - before, time.monotonic() - started
        assert took >= 5 and used <= 0.6 * took + 0.2  # half a CPU
        assert site.meters()["throttled_s"] > 0


def test_its_cable_takes_a_rate(run: RunContext, host: GuestHost):
    assert host.link() is None
    host.options = OPTIONS.model_copy(update={"link": 1e8})
    host.set_link(limited=True)
    link = host.link()
    assert link is not None and set(link.carried()) == {"in", "out"}
    host.set_link(limited=False)
    assert host.link() is None
    host.options = OPTIONS


@pytest.mark.measures
def test_its_data_disk_can_be_held_back(host: GuestHost):
    file = f"{host.data}/try"
    writes = ("dd", "if=/dev/zero", f"of={file}", "bs=4k", "count=150", "oflag=direct", "conv=notrunc")
    _run(host, *writes)

    def took() -> float:
        started = time.monotonic()
        _run(host, *writes)
        return time.monotonic() - started

    slow = SPEEDS["hdd-like"]
    host.capabilities.limit_disk(slow)
    held_back = took()
    host.capabilities.limit_disk(None)
    assert held_back > 130 / slow.requests > took()  # a burst of a tenth of a second's requests is let through
    _run(host, "rm", file)


@pytest.mark.long  # an engine in an emulated guest
@pytest.mark.promise("networks that this machine's kernel lacks are measured between two guest hosts")
def test_an_engine_in_it_holds_ipvlan(host: GuestHost, run: RunContext):
    program = build.ensure(run.cache, run.say).read_bytes()
    with engine(run, host) as made:
        assert made.private and made.disposable
        made.client.api.import_image_from_data(_tar(program))
        [image] = made.client.images.list()
        with networks.on_parent(made, run, "ipvlan", "eth0", None, None, "l2") as network:
            container = made.client.containers.create(
                image.id, [], entrypoint=[LAUNCHER], stdin_open=True, network=network.name
            )
            container.start()
            container.reload()
            assert container.status == "running"
            inside = ("nsenter", "--target", str(container.attrs["State"]["Pid"]), "--net", "--")
            assert "ipvlan" in _run(host, *inside, "ip", "-d", "link")
    with pytest.raises(EnvironmentLost):  # it had a container left: the host was switched off with it
        host.run(Command(("true",), 10))


def _tar(program: bytes) -> bytes:
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w") as archive:
        about = tarfile.TarInfo(LAUNCHER.lstrip("/"))
        about.size, about.mode = len(program), 0o755
        archive.addfile(about, io.BytesIO(program))
    return made.getvalue()


def test_one_that_does_not_boot_is_told_with_its_last_words(
    run: RunContext, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    (tmp_path / "ramdisk").write_bytes(b"no archive")
    monkeypatch.setattr(ramdisk, "ensure", lambda *_: tmp_path / "ramdisk")
    with (
        pytest.raises(Unavailable, match=r"host dead .*Kernel panic"),
        guest_host("dead", OPTIONS, run),
    ):
        pass
    assert not (run.cache / "engines" / RUN / "dead").exists()


@pytest.mark.promise("a guest host ends with its run, and clean removes what a killed one left")
def test_a_study_on_it_and_a_guest_killed_in_its_midst(tmp_path: Path):
    study = tmp_path / "study.yaml"
    study.write_text(STUDY.replace("1s}", "600s}"))
    out = tmp_path / "run"
    with going("run", study, "--yes", "--out", out, files=tmp_path) as run:
        run.await_text("trials done")
        time.sleep(3)
        [guest] = _processes(run_id(out), "qemu")
        os.kill(int(guest.name), signal.SIGKILL)
        ended = run.end()
    assert "Traceback" not in ended.stderr, ended
    assert "lost the connection to host lab: its guest ended" in ended.stderr + "".join(
        row["message"] for row in trials(out)
    )
    assert not _processes(run_id(out))


@pytest.mark.long
@pytest.mark.promise("a guest host ends with its run, and clean removes what a killed one left")
def test_what_a_killed_run_leaves_is_cleaned(tmp_path: Path):
    study = tmp_path / "study.yaml"
    study.write_text(STUDY)
    out = tmp_path / "run"
    with going("run", study, "--yes", "--out", out, files=tmp_path) as run:
        run.await_text("starting host lab")
        run.await_that(lambda: _processes(run_id(out), "qemu") != [], "QEMU")
        run.end(signal.SIGKILL)
    mine = run_id(out)
    await_that(lambda: not _processes(mine))  # QEMU ends by itself
    assert [left for left in clean.find().left if left.run == mine]  # the disks of its guest
    clean.sweep(mine)
    run_lock.forget(mine)
    assert not [left for left in clean.find().left if left.run == mine]
