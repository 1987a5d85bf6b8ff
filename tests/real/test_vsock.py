"""The stream to a launcher over a vsock device, as Firecracker and Cloud Hypervisor have it, without either of them.

A program takes the place of a hypervisor and its guest: it connects to the socket, as the device does for its guest,
and becomes the launcher. A real guest of QEMU has such a device if the crate ``vhost-device-vsock`` is installed.
"""

import os
import shutil
import signal
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import pytest

from weighbridge.errors import EnvironmentLost, Unavailable
from weighbridge.features.guests import disk, kernel, ramdisk, vsock
from weighbridge.features.guests.architecture import HOST
from weighbridge.features.guests.boot import booted
from weighbridge.features.guests.machine import Disk, QemuMachine
from weighbridge.hosts.local import LocalHost
from weighbridge.launcher import build
from weighbridge.model.command import Command
from weighbridge.model.host import Limits, RunContext
from weighbridge.model.site import SiteRequest
from weighbridge.model.userland import Userland

from .conftest import open_run

MIB = 2**20
DAEMON = "vhost-device-vsock"
CALL = """
import os, socket, sys
call = socket.socket(socket.AF_UNIX)
call.connect(sys.argv[1])
os.dup2(call.fileno(), 0)
os.dup2(call.fileno(), 1)
os.execv(sys.argv[2], sys.argv[2:])
"""
OF_FIRECRACKER = Path(__file__).parents[1] / "features/guests/data/firecracker/no-disk.txt"


@dataclass(frozen=True)
class StandIn:
    """A program in the place of a hypervisor; ``vsock`` is the device's path that it would get."""

    vsock: Path
    words: tuple[str, ...]
    network: ClassVar[None] = None
    window: ClassVar[int] = 0

    def argv(self) -> tuple[str, ...]:
        return self.words


class QemuWithVsock(QemuMachine):
    """A guest of QEMU, emulated, whose launcher is reached over a vsock device; its folder is its name."""

    __slots__ = ()

    @property
    def vsock(self) -> Path:  # type: ignore[override]
        return Path(self.name) / "vsock"

    def modules(self) -> tuple[str, ...]:
        return (*super().modules(), vsock.DRIVER)

    def argv(self) -> tuple[str, ...]:
        socket = f"{self.name}/vhost"
        script = 'until [ -S "$0" ]; do sleep 0.05; done; exec "$@"'
        daemon = f"{DAEMON} --vm guest-cid=3,socket={socket},uds-path={self.vsock} &"
        argv = [*super().argv()]
        argv[argv.index("-M") + 1] += ",memory-backend=shared"
        return (
            "sh", "-c", f"{daemon} {script}", socket, *argv,
            "-object", f"memory-backend-memfd,id=shared,size={self.memory >> 20}M,share=on",
            "-chardev", f"socket,id=vsock,path={socket}", "-device", "vhost-user-vsock-pci,chardev=vsock",
        )  # fmt: skip


@pytest.fixture(scope="module")
def run() -> Iterator[RunContext]:
    with open_run("9e5700000a2b") as made:
        yield made


def requested(run: RunContext) -> SiteRequest:
    userland = Userland("", Path("/"), None, {})
    return SiteRequest(run, LocalHost(run.id), "0-vsock", "server", userland, Limits())


def calling(run: RunContext, device: Path) -> StandIn:
    launcher = str(build.ensure(run.cache, run.say))
    return StandIn(device, (sys.executable, "-c", CALL, f"{device}_{vsock.PORT}", launcher))


def test_every_byte_passes_both_ways_and_no_socket_is_left(run: RunContext, tmp_path: Path):
    data = bytes(range(256)) * 4096
    with booted(calling(run, tmp_path / "vsock"), requested(run), None) as launcher:
        completed = launcher.run(Command(("cat",), 20, stdin=data))
        assert (completed.returncode, completed.stdout) == (0, data)
    assert [*tmp_path.iterdir()] == []


def test_a_guest_whose_hypervisor_is_killed_is_lost_at_once(run: RunContext, tmp_path: Path):
    with booted(calling(run, tmp_path / "vsock"), requested(run), None) as launcher:
        sleeping = launcher.start(Command(("sleep", "60"), 60))
        pid = int(launcher.run(Command(("sh", "-c", "echo $PPID"), 20)).text)
        os.kill(pid, signal.SIGKILL)
        with pytest.raises(EnvironmentLost):
            sleeping.wait(20)
            sleeping.stop()
    assert [*tmp_path.iterdir()] == []


def test_a_hypervisor_that_fails_says_why_and_is_not_started_again(run: RunContext, tmp_path: Path):
    failing = StandIn(tmp_path / "vsock", ("sh", "-c", f"cat {OF_FIRECRACKER}; exit 1"))
    why = r"its guest ended: Block device error: .* No such file or directory \(os error 2\) /nonexistent/disk$"
    with pytest.raises(Unavailable, match=why):
        booted(failing, requested(run), None).__enter__()
    assert [*tmp_path.iterdir()] == []


@pytest.mark.skipif(shutil.which(DAEMON) is None, reason=f"needs {DAEMON}")
def test_a_guest_calls_its_host(run: RunContext, tmp_path: Path, small_userland: Userland):
    guest_kernel = kernel.ensure(run.cache, run.say)
    root = disk.ensure(small_userland, run.cache, run.say)
    machine = QemuWithVsock(
        name=str(tmp_path), kernel=guest_kernel.image, ramdisk=ramdisk.ensure(guest_kernel, run.cache, run.say),
        accelerator="tcg", cpus=2, memory=256 * MIB, disks=(Disk(root, read_only=True),),
        arguments=("--vsock", str(vsock.PORT), "--off"), architecture=HOST,
    )  # fmt: skip
    data = bytes(range(256)) * 4096
    with booted(machine, requested(run), None) as launcher:
        assert launcher.run(Command(("cat", "/proc/1/comm"), 20)).text == "init\n"
        completed = launcher.run(Command(("cat",), 60, stdin=data))
        assert (completed.returncode, completed.stdout) == (0, data)
    assert {path.name for path in tmp_path.iterdir()} <= {"vhost"}
