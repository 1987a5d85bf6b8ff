"""VirtualBox: the real VBoxManage of Debian sid, the boot medium under QEMU, and machines in a guest host of ours.

Debian 12 has no VirtualBox: what is run here is in a folder with Debian sid, in a mount namespace of its own. This
machine's kernel has no module of it, so that no machine starts but in the guest host. There none leaves its reset
vector under the AMD-V that QEMU emulates (told to interpret instead, it was in our boot loader after two minutes).
"""

import hashlib
import os
import re
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from itertools import count
from pathlib import Path

import pytest

from weighbridge import build_once, registry
from weighbridge.errors import Unavailable
from weighbridge.features.guests import disk, kernel, medium, serial, sid
from weighbridge.features.guests.environments.virtualbox import commands, output, site
from weighbridge.features.guests.environments.virtualbox.commands import Attachment, VirtualMachine, creation
from weighbridge.features.guests.environments.virtualbox.site import VirtualBox, machine_of
from weighbridge.features.guests.hosts.guest.host import GuestHost, guest_host
from weighbridge.features.guests.hosts.guest.options import GuestOptions
from weighbridge.features.guests.virtualbox import VirtualBoxTraces
from weighbridge.features.guests.words import words
from weighbridge.hosts.local import LocalHost
from weighbridge.launcher import build
from weighbridge.launcher.launch import Launcher
from weighbridge.linux import process
from weighbridge.linux.process import Process, environment_of
from weighbridge.model.cleanup import Leftover, RunFolders
from weighbridge.model.command import Command, Completed, PublishedPort
from weighbridge.model.host import Limits, RunContext
from weighbridge.model.site import SiteRequest
from weighbridge.model.userland import Userland
from weighbridge.runner import clean

from .conftest import open_run
from .programs import await_that

RUN = "b0c5000000a1"
MIB = 2**20
_SHARED = ("/tmp", "/root", "/proc", "/sys", "/dev")
_HOLD = (
    'root=$1; shift; for each; do mkdir -p "$root$each" && mount --rbind "$each" "$root$each"; done; exec sleep 900'
)
_numbers = count()

pytestmark = pytest.mark.skipif(
    medium.cannot_build() is not None, reason=": ".join(medium.cannot_build() or ("the boot medium can be built",))
)


class SidHost(LocalHost):
    """This machine, but its commands find the files of Debian sid, VirtualBox among them."""

    def __init__(self, run_id: str, root: Path, holder: int) -> None:
        super().__init__(run_id)
        self._enter = ("nsenter", f"--mount=/proc/{holder}/ns/mnt", "chroot", str(root))

    def run(self, command: Command) -> Completed:
        return super().run(command.wrapped(*self._enter))

    def start(self, command: Command, *, hold: bool = False) -> Process:
        return super().start(command.wrapped(*self._enter), hold=hold)


@pytest.fixture(scope="module")
def root() -> Path:
    """Debian sid with VirtualBox, kept by the user: a minute and a half to build."""
    cache = Path.home() / ".cache/weighbridge/systems"
    key = f"virtualbox-{hashlib.sha256(sid.INPUTS.encode()).hexdigest()[:16]}"

    def make(work: Path) -> None:
        sid.virtualbox(work / "root", work)

    def cached() -> Path | None:
        return cache / key / "root" if (cache / key).exists() else None

    return build_once.ensure(cache, key, "Debian sid with VirtualBox", cached, lambda: None, print, make)


def _meetings(run_id: str) -> list[Leftover]:
    unused = RunFolders(Path("/unused"), Path("/unused"))
    return [leftover for leftover in VirtualBoxTraces().find(unused) if leftover.run == run_id]


@pytest.fixture(scope="module")
def run() -> Iterator[RunContext]:
    with open_run(RUN) as made:
        yield made
    assert not _processes(RUN)
    assert not _meetings(RUN)
    assert not (made.cache / "engines" / RUN).exists()


@pytest.fixture(scope="module")
def host(run: RunContext, root: Path) -> Iterator[SidHost]:
    hold = ("unshare", "--mount", "--propagation", "slave", "sh", "-c", _HOLD, "hold", str(root), *_SHARED)
    holder = Process(Command(hold, 900), env={process.RUN_VARIABLE: run.id})
    try:
        await_that(lambda: Path(f"/proc/{holder.pid}/comm").read_text() == "sleep\n")  # everything is mounted
        yield SidHost(run.id, root, holder.pid)
    finally:
        holder.stop()


@contextmanager
def box_on(host: SidHost, run: RunContext) -> Iterator[tuple[VirtualBox, Path]]:
    with ExitStack() as stack:
        name = f"{next(_numbers)}-box"
        group = host.group(name)
        stack.callback(group.remove)
        stack.callback(group.kill)
        folder = stack.enter_context(host.data_folder(run, name))
        box = VirtualBox(host, run, folder, group)
        stack.callback(box.close)
        yield box, folder


@pytest.fixture(scope="module")
def boot_medium(run: RunContext, small_userland: Userland) -> Path:
    return medium.ensure(kernel.ensure(Path.home() / ".cache/weighbridge", print), run.cache, print)


def machine_in(folder: Path, boot: Path, run: RunContext, network: Attachment | None) -> VirtualMachine:
    port, console = f"/tmp/wb-{run.id}", str(folder / "console")
    return VirtualMachine("0-guest-server", str(folder), 2, 384 * MIB, str(boot), (), port, console, network)


def requested(run: RunContext, host: object, userland: Userland) -> SiteRequest:
    limits = Limits(cpus=1, memory=256 * MIB)
    return SiteRequest(run, host, f"{next(_numbers)}-guest-server", "server", userland, limits)  # type: ignore[arg-type]


def _processes(run: str) -> list[Path]:
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if process.run_of(folder) == run and int(folder.name) != os.getpid():
                found.append(folder)
        except OSError:
            continue
    return found


# -- VBoxManage ----------------------------------------------------------------------------------------------------

REAL_TOOL = pytest.mark.promise("VirtualBox's own tool takes every network, and a killed run leaves no machine")

NETWORKS: dict[str, tuple[Attachment | None, dict[str, str]]] = {
    "bridge": (
        commands.bridged("wb-0000a1-b0", "198.19.202.2", "198.19.202.1", 1500),
        {"nic1": "bridged", "bridgeadapter1": "wb-0000a1-b0", "macaddress1": "5254C613CA02"},
    ),
    "internal": (commands.internal("wb-0000a1-internal", "198.19.201.2"), {"nic1": "intnet"}),
    "nat": (
        commands.translated("127.0.0.1", [PublishedPort("tcp", 5201, 5201), PublishedPort("udp", 5201, 5201)]),
        {"nic1": "nat", "Forwarding(0)": "tcp5201,tcp,127.0.0.1,5201,,5201"},
    ),
    "host-only": (
        commands.host_only("vboxnet0", "192.168.56.2", "192.168.56.1"),
        {"nic1": "hostonly", "hostonlyadapter1": "vboxnet0"},
    ),
    "none": (None, {"nic1": "none"}),
}


@pytest.mark.long  # Debian sid with VirtualBox takes a minute and a half to build
@REAL_TOOL
def test_every_network_is_taken_by_the_real_tool(host: SidHost, run: RunContext, boot_medium: Path):
    with box_on(host, run) as (box, folder):
        for name, (network, expected) in NETWORKS.items():
            machine = replace(machine_in(folder, boot_medium, run, network), name=name)
            with machine_of(box, machine):
                told = output.pairs(box.must("showvminfo", machine.name, "--machinereadable"))
                assert {key: told.get(key) for key in expected} == expected
                assert (told["cpus"], told["memory"], told["VMState"]) == ("2", "384", "poweroff")
                assert (
                    told["uartmode1"] == f"server,{machine.port}" and told["uartmode2"] == f"file,{machine.console}"
                )
                assert told["ide-1-1"] == str(boot_medium)
                assert box.must("list", "runningvms") == ""
            assert box.must("list", "vms") == ""


@pytest.mark.long  # Debian sid with VirtualBox takes a minute and a half to build
@REAL_TOOL
def test_a_failed_command_is_told_and_leaves_no_machine(host: SidHost, run: RunContext, boot_medium: Path):
    with box_on(host, run) as (box, folder):
        machine = replace(machine_in(folder, boot_medium, run, None), memory=3 * MIB)
        with pytest.raises(Unavailable, match=r"VBoxManage modifyvm: Invalid RAM size: 3 MB \(must be"):
            machine_of(box, machine).__enter__()
        assert box.must("list", "vms") == ""
        with pytest.raises(Unavailable, match="failed to open /dev/vboxnetctl"):
            box.must("hostonlyif", "create")


@pytest.mark.long  # Debian sid with VirtualBox takes a minute and a half to build
@REAL_TOOL
def test_the_users_machines_are_neither_seen_nor_touched(host: SidHost, run: RunContext, boot_medium: Path):
    with box_on(host, run) as (users, home), machine_of(users, machine_in(home, boot_medium, run, None)):
        with box_on(host, run) as (ours, _):
            assert ours.must("list", "vms") == ""
        assert "0-guest-server" in users.must("list", "vms")


@pytest.mark.long  # Debian sid with VirtualBox takes a minute and a half to build
@REAL_TOOL
def test_a_machine_that_cannot_start_is_told_in_a_sentence(host: SidHost, run: RunContext, small_userland: Userland):
    """Everything until then is real: the disk of the userland, the medium, the machine, its hypervisor's start."""
    image = disk.ensure(small_userland, run.cache, run.say)
    before = image.stat()
    opening = registry.environments()["virtualbox"].open(
        registry.environments()["virtualbox"].options(network="nat"), requested(run, host, small_userland)
    )
    with pytest.raises(Unavailable, match=r"^\d+-guest-server: .*Kernel driver not inst"):
        opening.__enter__()
    assert image.stat() == before, "its end deletes nothing of the cache"
    assert not _meetings(RUN)
    assert not [each for each in _processes(RUN) if "VBox" in (each / "comm").read_text()]


@pytest.mark.long  # Debian sid with VirtualBox takes a minute and a half to build
@REAL_TOOL
def test_what_a_killed_run_left_is_found_and_removed(host: SidHost, root: Path, boot_medium: Path):
    lost = "b0c5000000b2"
    other = SidHost(lost, root, int(host._enter[1].split("/")[2]))
    with open_run(lost) as run, ExitStack() as never_closed:
        folder = never_closed.enter_context(other.data_folder(run, "left"))
        box = VirtualBox(other, run, folder, None)
        for each in creation(machine_in(folder, boot_medium, run, None)):
            box.must(*each)
        never_closed.pop_all()
        assert _meetings(lost)
        clean.sweep(lost)
        assert not _meetings(lost)
        assert not _processes(lost)


# -- the medium and the launcher over a serial port -----------------------------------------------------------------


@contextmanager
def booted(boot: Path, image: Path, folder: Path, run: RunContext) -> Iterator[tuple[Process, Launcher]]:
    """The machine that VirtualBox is told to make, made by QEMU: a BIOS, IDE, two 16550 ports."""
    port = f"/tmp/wb-{run.id}-port"
    machine = (
        "qemu-system-x86_64", "-nodefaults", "-no-user-config", "-display", "none", "-M", "pc", "-boot", "d",
        "-accel", "tcg,thread=multi", "-cpu", "max", "-m", "256M", "-cdrom", str(boot),
        "-drive", f"file={image},format=raw,if=ide,index=0,snapshot=on,file.locking=off",
        "-chardev", f"socket,id=port,path={port},server=on,wait=off", "-serial", "chardev:port",
        "-serial", f"file:{folder / 'console'}",
    )  # fmt: skip
    hypervisor = Process(Command(machine, 300), env={process.RUN_VARIABLE: run.id})
    launcher = str(build.ensure(run.cache, run.say))
    carrier, stream = process.talk(Command((launcher, "--connect", port)), env={process.RUN_VARIABLE: run.id})
    drivers = ("crc32c_generic", "ext4", *commands.DISK_DRIVERS, "tcp_diag", "udp_diag")
    try:
        told = words("guest", drivers, commands.DISKS[:1], None, 1024)
        serial.tell(stream, told, 300, lambda: "it ended" if hypervisor.poll() is not None else None)
        with Launcher(stream, "guest", (folder / "console").read_text, environment_of(run.id), 300) as opened:
            yield hypervisor, opened
    finally:
        carrier.stop()
        hypervisor.stop()
        Path(port).unlink(missing_ok=True)


def test_the_medium_boots_and_its_launcher_answers(
    boot_medium: Path, small_userland: Userland, run: RunContext, tmp_path: Path
):
    """Every byte gets through both ways, and what goes wrong switches the machine off."""
    image = disk.ensure(small_userland, Path.home() / ".cache/weighbridge", print)
    with booted(boot_medium, image, tmp_path, run) as (hypervisor, launcher):
        done = launcher.run(Command(("sh", "-c", "cat; echo no >&2; exit 7"), stdin=bytes(range(256))))
        assert (done.stdout, done.stderr, done.returncode) == (bytes(range(256)), b"no\n", 7)
        data = os.urandom(128 * 1024)
        launcher.put("/tmp/data", data)
        assert launcher.read("/tmp/data") == data
        assert launcher.read("/var/lib/dpkg/status") == (small_userland.root / "var/lib/dpkg/status").read_bytes()
        launcher.start(Command(("sh", "-c", "kill -TERM 1; kill -KILL $PPID; sleep 60"), 60))
        assert hypervisor.wait(30), "its first process ends the machine when the launcher has ended"


# -- in a guest host ------------------------------------------------------------------------------------------------


@pytest.mark.long  # builds a guest host of Debian sid and then takes six minutes
@pytest.mark.promise("a machine of VirtualBox has its whole life in a guest host, and leaves nothing")
def test_its_life_in_a_guest_host(run: RunContext, small_userland: Userland, monkeypatch: pytest.MonkeyPatch):
    """Created, running, switched off and forgotten; its guest gets nowhere, which one sentence tells."""
    monkeypatch.setenv("WEIGHBRIDGE_CACHE", str(Path.home() / ".cache/weighbridge"))
    monkeypatch.setattr(site, "READY_S", 60.0)
    given = {"kind": "guest", "accelerator": "tcg", "memory": "2GiB", "system": "virtualbox"}
    environment = registry.environments()["virtualbox"]
    kept = replace(run, cache=Path.home() / ".cache/weighbridge")
    with guest_host("lab", GuestOptions.model_validate(given), kept) as host:
        assert host.run(Command(("test", "-c", "/dev/vboxdrv"), 60)).returncode == 0, "its set-up loads the modules"
        with pytest.raises(Unavailable, match=r"\b60 s\b"):
            environment.open(environment.options(), requested(kept, host, small_userland)).__enter__()
        _nothing_is_left(host)


def _nothing_is_left(host: GuestHost) -> None:
    running = host.run(Command(("ps", "-eo", "comm"), 60)).text
    assert not re.search(r"^VBox", running, re.MULTILINE), running
    assert "vbox" not in host.run(Command(("ls", "-A", "/tmp"), 60)).text
