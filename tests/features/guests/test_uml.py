"""User-mode Linux: the argument list of a guest, its installed kernel, and what is refused before a run."""

import os
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from sentences import assert_sentence
from weighbridge import registry
from weighbridge.features.guests import uml
from weighbridge.features.guests.environments import uml as environment
from weighbridge.features.guests.environments.uml import UmlOptions
from weighbridge.features.guests.kernel import Kernel
from weighbridge.features.guests.network import Tap
from weighbridge.features.guests.uml import UmlMachine
from weighbridge.model.command import Command, Completed
from weighbridge.model.environment import Needs
from weighbridge.model.host import HostTraits
from weighbridge.model.plugin import Readiness
from weighbridge.model.study import Resources

MIB = 2**20
TAP = Tap("wb-abcdef-p0", "wb-abcdef-b0", "198.19.202.2", "198.19.202.1", 1450)
PLAIN = UmlMachine(
    name="weighbridge-x", site="uml-0", ramdisk=Path("/c/ramdisk"),
    library=Path("/c/preload.so"), memory=512 * MIB, root=Path("/c/disk.ext4"),
)  # fmt: skip
DEPENDENCIES = "kernel/net/ipv4/udp_diag.ko: kernel/net/ipv4/inet_diag.ko\nkernel/fs/overlayfs/overlay.ko:\n"


def split(machine: UmlMachine) -> tuple[list[str], list[str]]:
    """The words of the kernel, and those of its first process."""
    argv = [*machine.argv()]
    return argv[: argv.index("--")], argv[argv.index("--") + 1 :]


def told(machine: UmlMachine, option: str) -> str:
    _, words = split(machine)
    return words[words.index(option) + 1]


def test_the_stream_is_a_serial_line_and_the_console_is_standard_error():
    kernel, _ = split(PLAIN)
    assert {"ssl0=fd:0,fd:1", "con0=null,fd:2", "con=null", "ssl=null"} <= {*kernel}
    assert told(PLAIN, "--serial") == "/dev/ttyS0" and "--taken" in split(PLAIN)[1]


def test_a_guest_has_its_memory_its_own_folder_and_no_second_life():
    kernel, _ = split(PLAIN)
    assert {"mem=512M", "initrd=/c/ramdisk", "umid=uml-0", "uml_dir=/dev/shm", "panic=-1", "noreboot"} <= {*kernel}
    assert kernel[:4] == ["env", "TMPDIR=/dev/shm", "LD_PRELOAD=/c/preload.so", "linux.uml"]


def test_the_root_is_a_disk_that_is_never_written_to_and_the_data_is_another():
    assert "ubd0rd=/c/disk.ext4" in split(PLAIN)[0] and told(PLAIN, "--disk") == "/dev/ubda"
    assert not any(word.startswith("ubd1") for word in PLAIN.argv()) and "--data" not in PLAIN.argv()
    machine = replace(PLAIN, data=Path("/d/data.ext4"))
    assert "ubd1sd=/d/data.ext4" in split(machine)[0] and told(machine, "--data") == "/dev/ubdb"
    assert "ubd1d=/d/data.ext4" in split(replace(machine, synced=False))[0]


def test_a_folder_is_all_that_the_guest_sees_of_its_host():
    machine = replace(PLAIN, root=Path("/u/root"), of_folder=True, data=Path("/d/data.ext4"))
    assert "hostfs=/u/root" in split(machine)[0] and told(machine, "--disk") == "hostfs"
    assert told(machine, "--data") == "/dev/ubdb"
    assert not any(word.startswith("ubd0") for word in machine.argv())


def test_a_layer_needs_a_module_and_is_the_launchers():
    machine = replace(PLAIN, layered="/home/user")
    assert told(machine, "--layer") == "/home/user" and told(machine, "--modules") == "udp_diag,overlay"
    assert "--layer" not in PLAIN.argv() and told(PLAIN, "--modules") == "udp_diag"


def test_a_tap_has_the_address_and_the_packet_size_of_its_bridge():
    machine = replace(PLAIN, network=TAP)
    (card,) = [word for word in split(machine)[0] if word.startswith("vec0:")]
    assert {"transport=tap", f"ifname={TAP.name}", f"mac={TAP.hardware}", "mtu=1450"} <= {*card[5:].split(",")}
    assert told(machine, "--address") == TAP.guest_address and told(machine, "--mtu") == "1450"
    assert not any(word.startswith("vec") for word in PLAIN.argv())


class Recorder:
    """A host on which nothing fails, and what ran on it."""

    name = "here"

    def __init__(self) -> None:
        self.ran: list[tuple[str, ...]] = []

    def run(self, command: Command) -> Completed:
        self.ran.append(command.argv)
        return Completed(command.argv, 0, b"", b"", 0.0, False)


def test_a_tap_is_up_before_the_guest_can_send_and_gone_after_it():
    host: Any = Recorder()
    with replace(TAP, made_first=True).made(host):
        assert host.ran[0] == ("ip", "tuntap", "add", "dev", TAP.name, "mode", "tap")
        assert host.ran[-1] == ("ip", "link", "set", TAP.name, "up")
        assert ("ip", "link", "set", TAP.name, "master", TAP.bridge) in host.ran
    assert host.ran[-1] == ("ip", "link", "delete", TAP.name)
    qemus: Any = Recorder()
    with TAP.made(qemus):
        assert qemus.ran == []


def test_the_kernel_passes_every_word_to_its_first_process():
    """It gives it no more than 32, among which are its own words that it does not know."""
    machine = replace(PLAIN, network=TAP, data=Path("/d"), layered="/home/user", of_folder=True)
    _, words = split(machine)
    assert len(words) + len(["noreboot", "root=98:0", "console=tty0"]) < 32


def test_modules_come_in_the_order_of_loading():
    files = uml.modules_of(DEPENDENCIES, Path("/m"))
    assert [path.name for path in files["udp_diag"]] == ["inet_diag.ko", "udp_diag.ko"]
    assert files["overlay"] == (Path("/m/kernel/fs/overlayfs/overlay.ko"),)
    assert uml.modules_of("", Path("/m")) == {"udp_diag": (), "overlay": ()}


# -- readiness -----------------------------------------------------------------------------------------------------


def room(monkeypatch: pytest.MonkeyPatch, *, free: int, size: int = 2**30, flags: int = 0) -> None:
    status = SimpleNamespace(f_bavail=free // 4096, f_blocks=size // 4096, f_frsize=4096, f_flag=flags)
    monkeypatch.setattr(uml.os, "statvfs", lambda _: status)


def test_memory_that_does_not_fit_into_the_folder_is_refused(monkeypatch):
    room(monkeypatch, free=64 * MIB, size=64 * MIB)  # as in a container
    lacking = uml.without_room(512 * MIB, 2)
    assert lacking is not None and lacking.remedy == "mount -o remount,size=1024M /dev/shm"
    assert_sentence(lacking.detail)
    assert uml.without_room(32 * MIB, 2) is None


def test_a_folder_for_memory_must_allow_programs(monkeypatch):
    room(monkeypatch, free=2**30, flags=os.ST_NOEXEC)
    lacking = uml.without_room(MIB, 1)
    assert lacking == Readiness(False, "/dev/shm is mounted noexec", "mount -o remount,exec /dev/shm")


def test_a_folder_for_memory_must_be_there(tmp_path):
    lacking = uml.without_room(MIB, 1, tmp_path / "none")
    assert lacking is not None and not lacking.ready and lacking.remedy.startswith("mount a tmpfs on ")


def test_the_kernel_sees_its_host_read_only_except_the_data_disk():
    assert PLAIN.sealed(as_root=True) == ("--sealed", "--name", PLAIN.name)
    machine = replace(PLAIN, data=Path("/d/data-1/data.ext4"))
    assert machine.sealed(as_root=False) == (
        "--user", "self", "--sealed", "--name", PLAIN.name, "--data", "/d/data-1/data.ext4",
    )  # fmt: skip


@pytest.fixture
def as_user(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Become root or not, where the kernel is installed."""
    monkeypatch.setattr(uml, "installed", lambda: Kernel("6.1", "x", Path("/usr/bin/linux.uml"), {}))
    monkeypatch.setattr(uml, "without_room", lambda *_: None)
    return lambda user: monkeypatch.setattr(environment.os, "geteuid", lambda: user)


def state(needs: Needs | None = None, **options: object) -> Readiness:
    return environment.PLUGIN.ready(UmlOptions.model_validate(options), needs)


def test_root_has_every_disk_and_network(as_user):
    as_user(0)
    assert all(state(root=root, network=network) == Readiness(True) for root in ("disk", "folder")
               for network in ("bridge", "none"))  # fmt: skip
    large = Needs(resources=Resources.model_validate({"memory": "921600GiB"}))
    assert state(large).detail.startswith("a guest with 943718400 MiB does not fit")


def test_a_user_has_a_folder_without_a_network(as_user):
    as_user(65534)
    assert state(root="folder", network="none") == Readiness(True)
    assert state(root="folder") == Readiness(
        False, "only root can create bridges and taps", "run as root, or set network: none"
    )
    assert "root: folder" in state(root="disk", network="none").detail
    assert environment.PLUGIN.ready().ready


def problems(needs: Needs, **options: object) -> list[str]:
    return environment.PLUGIN.check(UmlOptions.model_validate(options), needs)


def test_this_machines_own_files_are_a_folder_and_no_disk():
    needs = Needs(of_this_machine=True)
    assert problems(needs, root="folder") == []
    (why,) = problems(needs, root="disk")
    assert_sentence(why)


def test_a_host_with_a_kernel_of_its_own_has_not_this_machines_files():
    (why,) = problems(Needs(hosts={"guest": HostTraits(here=True, own_kernel=True)}))
    assert_sentence(why)


def test_what_a_network_does_not_reach_is_refused():
    assert problems(Needs(network=True)) == []
    for needs, options in (
        (Needs(network=True), {"network": "none"}),
        (Needs(network=True, separate_hosts=True), {}),
        (Needs(), {"attach": "interface", "network": "none"}),
    ):
        (why,) = problems(needs, **options)
        assert_sentence(why)


def test_only_a_disk_whose_writes_are_synced_is_durable():
    """The driver of Linux 6.1 acknowledges a flush without a call to its host."""
    durability = environment.PLUGIN.disk_durability
    assert durability(UmlOptions()) == "synchronous" and durability(UmlOptions(cache="unsafe")) == "none"


def test_a_command_is_weighed_in_it_without_root_and_a_server_on_a_bridge():
    names = environment.PLUGIN.weighed_in()
    assert {name: UmlOptions.model_validate(given).network for name, given in names.items()} == {
        "uml": "none", "uml-bridge": "bridge",
    }  # fmt: skip
    assert registry.environment_named("uml-bridge") == {"kind": "uml", "root": "folder"}


def test_its_kernel_sees_no_time_that_others_took(monkeypatch):
    site = environment.UmlSite.__new__(environment.UmlSite)
    seen = {"guest_cpu_s": 1.0, "guest_steal_s": 0.0}
    monkeypatch.setattr(environment.GuestSite, "guest_meters", lambda _: seen)
    assert site.guest_meters() == {"guest_cpu_s": 1.0}
