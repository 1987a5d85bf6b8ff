"""What VBoxManage is told and what it prints, by its real outputs; what cannot work is told in a sentence."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from environments.kinds import traits
from weighbridge import registry
from weighbridge.features.guests import medium
from weighbridge.features.guests.environments import virtualbox
from weighbridge.features.guests.environments.virtualbox import output
from weighbridge.features.guests.environments.virtualbox.commands import (
    DiskDescriptor,
    VirtualMachine,
    bridged,
    creation,
    descriptor,
    host_only,
    internal,
    removal,
    translated,
)  # fmt: skip
from weighbridge.model.command import PublishedPort
from weighbridge.model.environment import Needs
from weighbridge.model.study import Resources

DATA = Path(__file__).parent / "data/virtualbox"
VIRTUALBOX = registry.environments()["virtualbox"]
BOTH = frozenset({"server", "client"})
HERE = Needs(network=True)
INSIDE = Needs(network=True, inside=BOTH)
BETWEEN = Needs(network=True, separate_hosts=True, hosts=traits("testbed"))
SSH = Needs(network=True, separate_hosts=True, hosts=traits("ssh"))
CALLS = Needs(network=True, server_calls_client=True)
MACHINE = VirtualMachine(
    name="0-guest-server", folder="/data", cpus=2, memory=384 * 2**20, medium="/cache/boot.iso",
    disks=(DiskDescriptor("/data/root.vmdk", immutable=True), DiskDescriptor("/data/data.vmdk", immutable=False)),
    port="/tmp/port", console="/data/console", network=bridged("wb-b0", "198.19.202.2", "198.19.202.1", 1500),
)  # fmt: skip


def options(**given: Any) -> Any:
    return VIRTUALBOX.options.model_validate(given)


WRONG: dict[str, tuple[Needs, dict[str, Any], str]] = {
    "none": (HERE, {"network": "none"}, "network: none cannot carry"),
    "attached nat": (HERE, {"network": "nat", "attach": "interface"}, "'attach' needs network: bridge, not nat"),
    "bridge from afar": (BETWEEN, {}, "attach: interface, or network: nat"),
    "host-only from afar": (BETWEEN, {"network": "host-only"}, "cannot be reached from another host"),
    "internal from outside": (HERE, {"network": "internal"}, "Put the client inside, too"),
    "nat of both": (INSIDE, {"network": "nat"}, "Put the client outside"),
    "called back": (CALLS, {"network": "nat"}, "this workload needs connections in both directions"),
    "by ssh": (SSH, {"network": "nat"}, "its disk is created on this machine"),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_cannot_work_is_told(case: str):
    needs, wrong, text = WRONG[case]
    told = VIRTUALBOX.check(options(**wrong), needs=needs)
    assert any(text in sentence for sentence in told), told


@pytest.mark.parametrize(
    ("needs", "right"),
    [
        (HERE, {}), (INSIDE, {}), (INSIDE, {"network": "internal"}), (HERE, {"network": "nat"}),
        (HERE, {"network": "host-only"}), (BETWEEN, {"attach": "interface"}), (BETWEEN, {"network": "nat"}),
        (Needs(network=True, hosts=traits("guest")), {}), (Needs(), {"network": "none"}),
    ],
)  # fmt: skip
def test_what_works_is_not_complained_of(needs: Needs, right: dict[str, Any]):
    assert VIRTUALBOX.check(options(**right), needs=needs) == []


def test_what_is_missing_is_told_with_what_brings_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(medium, "LOADER_FOLDERS", (tmp_path,))
    (tmp_path / "ldlinux.c32").touch()
    assert VIRTUALBOX.ready().remedy == "apt-get install isolinux"
    (tmp_path / "isolinux.bin").touch()
    monkeypatch.setattr(virtualbox, "FOLDERS", (str(tmp_path),))
    assert VIRTUALBOX.ready().detail.startswith("VirtualBox is not installed")
    (tmp_path / "VBoxManage").touch()
    monkeypatch.setattr(virtualbox, "_DEVICE", tmp_path / "vboxdrv")
    assert VIRTUALBOX.ready().remedy.endswith("vboxdrv")
    (tmp_path / "vboxdrv").touch()
    assert VIRTUALBOX.ready().ready
    large = Needs(resources=Resources.model_validate({"memory": "921600GiB"}))
    assert VIRTUALBOX.ready(options(), large).detail.startswith("a guest with 943718400 MiB does not fit")
    assert VIRTUALBOX.unverified()


# -- what it is told -----------------------------------------------------------------------------------------------


def test_a_machine_is_made_in_this_order():
    create, modify, controller, *attached = creation(MACHINE)
    assert create[:3] == ("createvm", "--name", "0-guest-server") and create[-1] == "--register"
    assert modify[:2] == ("modifyvm", "0-guest-server")
    assert _after(modify, "--cpus", "--memory") == ["2", "384"]
    assert _after(modify, "--nic1", "--bridge-adapter1", "--mac-address1") == ["bridged", "wb-b0", "5254c613ca02"]
    assert controller[0] == "storagectl"
    assert [_after(words, "--medium", "--port", "--device") for words in attached] == [
        ["/data/root.vmdk", "0", "0"], ["/data/data.vmdk", "0", "1"], ["/cache/boot.iso", "1", "1"],
    ]  # fmt: skip
    assert [_after(words, "--mtype") for words in attached[:2]] == [["immutable"], ["normal"]]


def test_its_serial_ports_are_a_socket_and_a_file():
    modify = creation(MACHINE)[1]
    at = modify.index("--uart-mode1")
    assert modify[at : at + 3] == ("--uart-mode1", "server", "/tmp/port")
    at = modify.index("--uart-mode2")
    assert modify[at : at + 3] == ("--uart-mode2", "file", "/data/console")


@pytest.mark.parametrize(
    ("network", "words"),
    [
        (internal("net", "198.19.201.2"), ("--nic1", "intnet", "--intnet1", "net")),
        (host_only("vboxnet0", "192.168.56.2", "192.168.56.1"), ("--nic1", "hostonly", "--host-only-adapter1")),
        (
            translated("127.0.0.1", [PublishedPort("tcp", 5201, 80)]),
            ("--nic1", "nat", "--nat-pf1", "tcp5201,tcp,127.0.0.1,5201,,80"),
        ),
        (None, ("--nic1", "none")),
    ],
)
def test_every_network_has_its_words(network: Any, words: tuple[str, ...]):
    modify = creation(replace(MACHINE, network=network))[1]
    at = modify.index("--nic1")
    assert modify[at : at + len(words)] == words


def test_its_end_deletes_no_image():
    assert removal("name") == (("controlvm", "name", "poweroff"), ("unregistervm", "name"))


def test_a_descriptor_names_the_image_and_its_sectors():
    text = descriptor("/dev/vdc", 4096, "11111111-2222-3333-4444-555555555555")
    assert '\nRW 8 FLAT "/dev/vdc" 0\n' in text


def _after(words: tuple[str, ...], *names: str) -> list[str]:
    return [words[words.index(name) + 1] for name in names]


# -- what it prints ------------------------------------------------------------------------------------------------


def said(name: str) -> str:
    return (DATA / f"{name}.txt").read_text()


COMPLAINTS = {
    "headless-failed": "Kernel driver not installed",
    "hostonlyif-failed": "Failed to create the host-only adapter: VBoxNetAdpCtl: Error while adding new interface: "
    "failed to open /dev/vboxnetctl: No such file or directory",
    "modifyvm-failed": "Invalid type 'sideways' specfied for NIC 1",
    "modifyvm-memory-failed": "Invalid RAM size: 3 MB (must be in range [4, 2097152] MB)",
    "showvminfo-failed": "Could not find a registered machine named 'no-such'",
    "startvm-failed": "The virtual machine '0-guest-server' has terminated unexpectedly during startup with exit "
    "code 1 (0x1)",
    "storageattach-failed": "Could not find a controller named 'ide'",
    "headless": "",
}


@pytest.mark.parametrize("case", COMPLAINTS)
def test_a_complaint_is_one_line(case: str):
    assert output.complaint(said(case).encode()) == COMPLAINTS[case]


def test_a_machine_and_its_state():
    told = output.pairs(said("showvminfo-nat"))
    assert told["nic1"] == "nat" and told["memory"] == "1024" and told["Forwarding(1)"].startswith("udp5201,udp")
    assert output.state(said("showvminfo-nat")) == "poweroff"
    assert output.state(said("showvminfo-running")) == "running"


def test_versions_and_links():
    assert output.version(said("version")) == (7, 2, 22)
    assert output.made_link(said("hostonlyif")) == "vboxnet0"


READERS: dict[str, tuple[str, Callable[[str], Any]]] = {
    "state": ("showvminfo-running", output.state),
    "version": ("version", output.version),
    "link": ("hostonlyif", output.made_link),
}


@pytest.mark.parametrize("case", READERS)
def test_what_is_cut_short_is_the_same_or_an_error(case: str):
    name, read = READERS[case]
    whole = said(name)
    for end in range(len(whole)):
        try:
            assert read(whole[:end]) == read(whole)
        except ValueError as error:
            assert str(error).startswith("VBoxManage did not report")


@given(st.text())
def test_whatever_is_printed_is_read_or_an_error(text: str):
    assert len(output.complaint(text.encode())) <= 300
    assert isinstance(output.pairs(text), dict)
    for _, read in READERS.values():
        try:
            read(text)
        except ValueError as error:
            assert str(error).startswith("VBoxManage did not report")
