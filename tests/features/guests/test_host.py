"""Guest hosts: their options, and the machine that QEMU is told to make."""

from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
from pydantic import ValidationError

from sentences import raises_sentence
from weighbridge.features.guests import system
from weighbridge.features.guests.accelerator import LAYERS
from weighbridge.features.guests.hosts import guest
from weighbridge.features.guests.hosts.guest import machine as guest_machine
from weighbridge.features.guests.hosts.guest.options import GuestOptions
from weighbridge.features.guests.hosts.guest.xen import layers_of
from weighbridge.features.guests.machine import Disk, QemuMachine
from weighbridge.features.guests.network import Tap
from weighbridge.features.guests.xen_domains import WITHIN_FIRST
from weighbridge.hosts.agent.frames import BOOT
from weighbridge.hosts.kinds.local import LocalOptions
from weighbridge.hosts.switch import BRIDGE, NOWHERE, port_of
from weighbridge.linux import process
from weighbridge.model.host import THIS_MACHINE
from weighbridge.runner.planned import readiness_of
from weighbridge.study.loader import check
from weighbridge.study.source import parse

MOST_WORDS = 32
"""That the kernel gives to its first process (init/main.c)."""
MOST_BYTES = 2048
"""Of its command line on x86 (COMMAND_LINE_SIZE)."""


def machine(**other: object) -> QemuMachine:
    words = ("-I", "-S", "-u", system.AGENT, "resident", "0123456789ab", "lab", "0/pid:[4026531836]")
    return QemuMachine(
        name="weighbridge-0123456789ab",
        kernel=Path("/cache/vmlinux"),
        ramdisk=Path("/cache/ramdisk"),
        accelerator="tcg",
        cpus=2,
        memory=2**31,
        disks=(Disk(Path("/cache/a,b.ext4"), temporary=True), Disk(Path("/run/data.ext4"))),
        network=Tap(port_of("198.19.200.3"), BRIDGE, "198.19.200.3", NOWHERE, 1500),
        arguments=("--system", ",".join((system.PROGRAM, *words))),
        **other,  # type: ignore[arg-type]
    )


def test_its_first_process_is_told_no_more_than_the_kernel_passes_on():
    told = machine().command_line()
    assert len(told[told.index("--") + 1 :]) <= MOST_WORDS
    assert len(" ".join(told)) < MOST_BYTES
    assert told[told.index("--disk") + 1] == "/dev/vda" and told[told.index("--data") + 1] == "/dev/vdb"
    assert told[-1].split(",")[0] == "/usr/bin/python3"


def test_nothing_is_written_to_the_system_that_all_share():
    drives = [word for word in machine().argv() if word.startswith("file=/") and "id=d" in word]
    assert drives == [
        "file=/cache/a,,b.ext4,format=raw,id=d0,if=none,cache=writeback,werror=report,rerror=report,snapshot=on",
        "file=/run/data.ext4,format=raw,id=d1,if=none,cache=writeback,werror=report,rerror=report",
    ]


def test_a_disk_with_a_volatile_write_cache_is_its_server_s():
    disk = Disk(Path("/run/data.ext4"), socket=Path("/run/lab,1.nbd"))
    (drive,) = [word for word in replace(machine(), disks=(disk,)).argv() if "id=d0,if" in word]
    assert drive.startswith("file=nbd+unix:///?socket=/run/lab,,1.nbd,format=raw,id=d0,if=none,cache=writeback,")


def test_a_volatile_write_cache_needs_its_server(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(guest, "which", lambda _: None)
    volatile = GuestOptions.model_validate({"kind": "guest", "write_cache": "volatile"})
    state = guest.PLUGIN.ready(volatile)
    assert not state.ready and state.remedy == "apt-get install nbdkit"


def test_its_tap_is_the_port_of_its_address():
    argv = machine().argv()
    assert "tap,id=net,ifname=p3,script=no,downscript=no" in argv
    assert any("mac=52:54:c6:13:c8:03" in word for word in argv)


def test_a_hypervisor_is_booted_with_the_kernel_as_its_module():
    argv = machine(hypervisor=Path("/cache/xen")).argv()
    assert argv[argv.index("-kernel") + 1] == "/cache/xen"
    kernel_and_disk = argv[argv.index("-initrd") + 1].replace(",,", "\0").split(",")
    assert kernel_and_disk[0].startswith("/cache/vmlinux console=hvc0 ") and kernel_and_disk[1] == "/cache/ramdisk"
    assert argv[argv.index("-cpu") + 1] == "max,-smap"
    told = argv[argv.index("-append") + 1].split()
    assert {"dom0_mem=1024M,max:1024M", "dom0_vcpus_pin", "spec-ctrl=eager-fpu"} <= {*told}


def test_qemu_has_the_cpus_of_its_group_and_not_those_of_the_users_shell(monkeypatch: pytest.MonkeyPatch):
    """The launcher starts it, as every program: it takes away what the shell is set to (taskset, nice, ulimit)."""
    commands = []
    monkeypatch.setattr(guest_machine, "Process", lambda command, **_: commands.append(command) or Ended())
    monkeypatch.setattr(guest_machine, "within", lambda _host, _run, group, *argv: ("launcher", group, *argv))
    switch, run = SimpleNamespace(enter=("enter",)), SimpleNamespace(id="0123456789ab")
    with guest_machine.started(machine(), GuestOptions(kind="guest"), run, switch, "group"):  # type: ignore[arg-type]
        pass
    words = commands[0].argv
    assert words[words.index("launcher") :][:3] == ("launcher", "group", "enter") and "qemu" in " ".join(words)


class Ended(SimpleNamespace):
    """A process that has ended."""

    def stop(self) -> None:
        """Nothing."""


def test_its_options():
    options = GuestOptions.model_validate({"kind": "guest", "link": "100mbit", "memory": "1GiB", "cpus": "1"})
    assert (options.memory, options.own_cpus, options.cable_rate) == (2**30, "1", 1e8)
    assert options.description == "guest, a QEMU guest of 1024 MiB on this machine, 100 Mbit/s"
    assert options.reaches(LocalOptions()) and options.traits.own_kernel and not THIS_MACHINE.own_kernel
    with raises_sentence(ValidationError):
        GuestOptions.model_validate({"kind": "guest", "memory": "100MiB"})


STUDY = """study: guests
question: What does it cost?
hosts: {lab: {kind: guest}}
placement: {client: lab, server: lab}
inside: [server, client]
baseline: native
environments: {native: {kind: native}, ipvlan: {kind: docker, network: ipvlan}}
workloads: {tcp: {kind: iperf3}}
repetitions: {blocks: 3}
"""


def test_what_only_its_own_kernel_knows_is_not_asked_of_this_one():
    states = readiness_of(check(parse(STUDY, "guests.yaml")))
    assert all(state.ready for state in states.values())


def test_a_guest_in_it_would_need_files_of_this_machine():
    text = STUDY.replace("{kind: docker, network: ipvlan}", "{kind: qemu}")
    with raises_sentence(Exception):
        check(parse(text, "guests.yaml"))


def test_programs_of_a_first_domain_are_in_it():
    assert layers_of(machine()) == (LAYERS[machine().accelerator],)
    assert layers_of(machine(hypervisor=Path("/cache/xen"))) == (LAYERS[machine().accelerator], WITHIN_FIRST)


def test_xen_is_below_the_system_that_has_it_alone():
    text = STUDY.replace("kind: guest", "kind: guest, hypervisor: xen, system: virtualbox")
    with raises_sentence(Exception):
        check(parse(text, "guests.yaml"))


def test_every_system_is_built_once_for_itself(tmp_path: Path):
    assert system._key(BOOT, "debian") != system._key(BOOT, "virtualbox")
    assert system.modules("virtualbox") == ("vboxdrv", "vboxnetadp", "vboxnetflt")
    assert system.modules("debian") == ()


def test_without_the_programs_that_build_it_there_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(process, "_ROOTS_FOLDERS", ())
    why = system.cannot_build(tmp_path, BOOT)
    assert why is not None and why[1] == "apt-get install mmdebstrap"
    with ExitStack() as stack:
        stack.enter_context(raises_sentence(Exception))
        system.ensure(tmp_path, BOOT, lambda _: None)
