"""The argument list of a guest's hypervisor, and what becomes of a site's limits."""

from contextlib import ExitStack
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any, get_args

import pytest

from sentences import assert_sentence, raises_sentence
from weighbridge import registry
from weighbridge.errors import Unavailable
from weighbridge.features.guests.architecture import AARCH64, X86_64
from weighbridge.features.guests.kernel import DRIVERS
from weighbridge.features.guests.machine import Disk, DiskBus, Nic, QemuMachine
from weighbridge.features.guests.network import Tap, UserNetwork
from weighbridge.features.guests.resources import (
    DEFAULT_MEMORY,
    cpus_of,
    lacking_memory,
    memory_of,
    own_cpus,
    reserved,
)
from weighbridge.model.command import PublishedPort
from weighbridge.model.environment import Needs
from weighbridge.model.host import Limits, RunContext
from weighbridge.model.study import Resources

MIB = 2**20
TAP = Tap("wb-abcdef-p0", "wb-abcdef-b0", "198.19.202.2", "198.19.202.1", 1500)
PLAIN = QemuMachine("weighbridge-x", Path("/c/vmlinux"), Path("/c/ramdisk"), "tcg", 2, 512 * MIB, architecture=X86_64)


def value(argv: tuple[str, ...], option: str, holding: str = "") -> str:
    found = [after for word, after in pairwise(argv) if word == option and holding in after]
    assert len(found) == 1, found
    return found[0]


def test_a_machine_has_what_it_was_given_and_nothing_by_default():
    argv = PLAIN.argv()
    assert {"-nodefaults", "-no-user-config", "-no-reboot"} <= {*argv}
    assert value(argv, "-smp") == "2" and value(argv, "-m") == "512M"
    assert value(argv, "-accel").startswith("tcg") and "-netdev" not in argv and "-drive" not in argv
    assert value(replace(PLAIN, accelerator="kvm").argv(), "-cpu") == "host"


@pytest.mark.parametrize("nic", get_args(Nic))
def test_every_interface_has_its_driver(nic: Nic):
    machine = replace(PLAIN, network=TAP, nic=nic)
    assert {*machine.modules()} <= {*DRIVERS}
    assert len(machine.modules()) == len(PLAIN.modules()) + 1
    assert f"ifname={TAP.name}" in value(machine.argv(), "-netdev")
    assert ("vhost=on" in value(machine.argv(), "-netdev")) == (nic == "vhost")
    assert f"mac={TAP.hardware}" in value(machine.argv(), "-device", "netdev=net")
    told = machine.command_line()
    assert told[told.index("--address") + 1] == TAP.guest_address and told[told.index("--gateway") + 1] == TAP.gateway


@pytest.mark.parametrize("bus", get_args(DiskBus))
def test_the_root_is_never_written_to_and_the_data_is(bus: DiskBus):
    root, data = Disk(Path("/c/a,b.ext4"), bus, read_only=True), Disk(Path("/d/data"), bus, "none")
    machine = replace(PLAIN, disks=(root, data))
    first, second = value(machine.argv(), "-drive", "id=d0"), value(machine.argv(), "-drive", "id=d1")
    assert first.startswith("file=/c/a,,b.ext4,")
    assert "readonly=on" in first or "snapshot=on" in first
    assert "file.locking=off" in first and "locking" not in second
    assert "cache=none" in second and "readonly" not in second and "snapshot" not in second
    told, names = machine.command_line(), {"virtio": "/dev/vd", "ide": "/dev/sd"}
    assert told[told.index("--disk") + 1] == f"{names[bus]}a" and told[told.index("--data") + 1] == f"{names[bus]}b"
    assert {*machine.modules()} <= {*DRIVERS}


def test_ports_lead_from_one_address_of_the_host_alone():
    told = UserNetwork("127.0.0.1", (PublishedPort("tcp", 5001, 5001), PublishedPort("udp", 5002, 80))).netdev()
    assert "hostfwd=tcp:127.0.0.1:5001-10.0.2.15:5001" in told and "hostfwd=udp:127.0.0.1:5002-10.0.2.15:80" in told


def test_a_guest_reaches_nobody_where_its_ports_allow_that():
    assert "restrict=on" in UserNetwork("127.0.0.1", (PublishedPort("tcp", 5001, 5001),)).netdev()
    assert (
        "restrict=off"
        in UserNetwork("127.0.0.1", (PublishedPort("tcp", 5001, 5001), PublishedPort("udp", 5001, 5001))).netdev()
    )
    assert UserNetwork("127.0.0.1").facts() == {"way out": "none"}
    assert "beyond" in UserNetwork("127.0.0.1", (PublishedPort("udp", 5001, 5001),)).facts()["way out"]


def test_no_two_guests_have_one_hardware_address():
    others = [replace(TAP, guest_address=f"198.19.{third}.{fourth}") for third in (202, 203) for fourth in (2, 3)]
    assert len({tap.hardware for tap in others}) == 4


class Machine4:
    """A host with four CPUs and a GiB."""

    name = "four"

    def cpus_online(self) -> list[int]:
        return [0, 1, 2, 3]

    def read(self, path: str) -> bytes:
        assert path == "/proc/meminfo"
        return b"MemTotal: 2097152 kB\nMemAvailable: 1048576 kB\n"


@pytest.mark.parametrize(
    ("limits", "cpus"),
    [
        (Limits(), 4), (Limits(cpus=1), 1), (Limits(cpus=0.5), 1), (Limits(cpus=1.5), 2), (Limits(cpus=9), 4),
        (Limits(cpuset="1,3"), 2), (Limits(cpus=3, cpuset="0"), 1),
    ],
)  # fmt: skip
def test_virtual_cpus_are_what_the_limit_keeps_busy(limits: Limits, cpus: int):
    assert cpus_of(limits, Machine4()) == cpus  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("limits", "cpus"),
    [(Limits(cpus=2), [0, 1]), (Limits(cpus=1.5, cpuset="3,1"), [1, 3]), (Limits(cpus=0.5, cpuset="2"), [2])],
)
def test_each_virtual_cpu_has_a_cpu_of_its_own(limits: Limits, cpus: list[int]):
    assert own_cpus(limits, Machine4()) == cpus  # type: ignore[arg-type]
    assert len(cpus) == cpus_of(limits, Machine4())  # type: ignore[arg-type]


def test_more_virtual_cpus_than_there_are_cpus_for_are_refused():
    with raises_sentence(Unavailable):
        own_cpus(Limits(cpus=1.2, cpuset="3"), Machine4())  # type: ignore[arg-type]


def test_a_client_beside_the_server_has_other_cpus_than_it():
    host: Any = Machine4()
    assert own_cpus(Limits(cpus=2), host, behind_server=True) == [2, 3]
    assert own_cpus(Limits(cpus=1, cpuset="1"), host, behind_server=True) == [1]  # the study says which
    with raises_sentence(Unavailable):
        own_cpus(Limits(), host, behind_server=True)


def test_memory_is_the_limit():
    assert memory_of(Limits(memory=512 * MIB + 5)) == 512 * MIB
    assert memory_of(Limits()) == DEFAULT_MEMORY


def limited(memory: str) -> Resources:
    return Resources.model_validate({"memory": memory})


@pytest.mark.parametrize("kind", ["qemu", "virtualbox", "xen", "uml", "firecracker", "cloud-hypervisor"])
def test_a_guest_that_would_not_come_up_is_refused(kind: str):
    environment = registry.environments()[kind]
    options, small = environment.options.model_validate({}), limited("100MiB")
    (why,) = environment.check(options, needs=Needs(resources=small))
    assert why == ("a guest needs at least 128 MiB of memory, but its limit is 100 MiB: raise it (resources: memory)")


def test_guests_that_are_larger_than_this_machine_are_refused():
    large = limited("921600GiB")
    lacking = lacking_memory(Needs(resources=large))
    assert lacking is not None and not lacking.ready and lacking.remedy == "set a smaller limit (resources: memory)"
    assert lacking.detail.startswith("a guest with 943718400 MiB does not fit on this machine (")
    both = Needs(network=True, inside=frozenset({"server", "client"}), resources=large)
    lacking = lacking_memory(both)
    assert lacking is not None and lacking.detail.startswith("2 guests with 943718400 MiB each do not fit")
    assert lacking_memory(Needs(resources=limited("128MiB"))) is None


def test_what_guests_were_promised_is_not_there_for_others(tmp_path):
    """The host has 1024 MiB, of which guests take what they were promised only as they use it."""
    host = Machine4()
    with ExitStack() as stack:
        run = RunContext("5175e5717e57", tmp_path, tmp_path, stack)
        with raises_sentence(Unavailable):
            stack.enter_context(reserved(2048 * MIB, host, run))  # type: ignore[arg-type]
        with reserved(600 * MIB, host, run):  # type: ignore[arg-type]
            with raises_sentence(Unavailable):
                stack.enter_context(reserved(600 * MIB, host, run))  # type: ignore[arg-type]
            stack.enter_context(reserved(400 * MIB, host, run))  # type: ignore[arg-type]
        stack.enter_context(reserved(600 * MIB, host, run))  # type: ignore[arg-type]


@pytest.mark.parametrize("nic", ["virtio", "vhost"])
def test_where_a_cable_has_no_offloads_the_guest_has_none(nic: Nic):
    plain = replace(PLAIN, network=replace(TAP, offloads=False), nic=nic)
    assert "host_tso4=off" in value(plain.argv(), "-device", "netdev=net")
    assert "off" not in value(replace(plain, network=TAP).argv(), "-device", "netdev=net")


def test_a_card_with_several_queues_has_an_interrupt_for_each():
    argv = replace(PLAIN, network=TAP, queues=4).argv()
    assert value(argv, "-netdev").endswith(",queues=4")
    assert value(argv, "-device", "netdev=net").endswith(",mq=on,vectors=10")
    assert "queues" not in value(replace(PLAIN, network=TAP).argv(), "-netdev")


def test_memory_in_huge_pages_is_all_of_the_machines():
    argv = replace(PLAIN, huge_pages=True).argv()
    assert value(argv, "-object") == "memory-backend-memfd,id=ram,size=512M,hugetlb=on,prealloc=on"
    assert value(argv, "-M").endswith(",memory-backend=ram") and "-object" not in PLAIN.argv()


@pytest.mark.parametrize("options", [{"nic": "e1000"}, {"network": "user"}, {"network": "none"}])
def test_several_queues_take_a_card_and_a_network_that_has_them(options: dict[str, str]):
    qemu = registry.environments()["qemu"]
    problems = qemu.check(qemu.options.model_validate({"queues": 2, **options}), needs=Needs())
    assert problems == ["'queues' needs nic: virtio or vhost, on network: bridge"]
    assert qemu.check(qemu.options.model_validate({"queues": 2, "nic": "vhost"}), needs=Needs()) == []


def test_a_machine_of_arm64_has_its_own_board_cpu_and_console():
    machine = replace(PLAIN, architecture=AARCH64, network=TAP)
    argv = machine.argv()
    assert argv[0] == "qemu-system-aarch64" and value(argv, "-M").startswith("virt")
    assert (
        value(argv, "-cpu").startswith("max") and value(replace(machine, accelerator="kvm").argv(), "-cpu") == "host"
    )
    assert "console=ttyAMA0" in machine.command_line() and "console=ttyS0" in PLAIN.command_line()


def test_a_microvm_has_no_pci_and_asks_its_host_for_its_clock():
    disks = (Disk(Path("/c/root.ext4"), read_only=True), Disk(Path("/d/data")))
    machine = replace(PLAIN, machine_type="microvm", disks=disks, network=TAP, queues=2, tsc_khz=2_000_000)
    argv = machine.argv()
    assert value(argv, "-M").startswith("microvm") and not any("-pci" in word or "romfile" in word for word in argv)
    assert "virtio-serial-device" in argv and value(argv, "-device", "drive=d1").startswith("virtio-blk-device")
    card = value(argv, "-device", "netdev=net")
    assert card.startswith("virtio-net-device") and card.endswith(",mq=on")
    assert machine.modules()[0] == "virtio_mmio" and {*machine.modules()} <= {*DRIVERS}
    assert {"tsc_early_khz=2000000", "tsc=reliable"} <= {*machine.command_line()}
    assert "virtio_mmio" not in PLAIN.modules() and not any("tsc" in word for word in PLAIN.command_line())


@pytest.mark.parametrize("options", [{"nic": "e1000"}, {"disk": "ide"}])
def test_a_microvm_has_only_devices_without_pci(options: dict[str, str], monkeypatch):
    qemu = registry.environments()["qemu"]
    monkeypatch.setattr("weighbridge.features.guests.environments.qemu.HOST", X86_64)
    (why,) = qemu.check(qemu.options.model_validate({"machine": "microvm", **options}), needs=Needs())
    assert_sentence(why)
    assert qemu.check(qemu.options.model_validate({"machine": "microvm", "nic": "vhost"}), needs=Needs()) == []


def test_a_microvm_is_refused_where_qemu_has_none(monkeypatch):
    qemu = registry.environments()["qemu"]
    monkeypatch.setattr("weighbridge.features.guests.environments.qemu.HOST", AARCH64)
    (why,) = qemu.check(qemu.options.model_validate({"machine": "microvm"}), needs=Needs())
    assert_sentence(why)
