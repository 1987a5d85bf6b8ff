"""Firecracker and Cloud Hypervisor: a guest as their documentation describes it, what they say, and what is refused.

Firecracker 1.17 and Cloud Hypervisor 54, built from their sources, wrote the outputs on a machine where KVM boots no
guest. ``source`` in the files with options says where these are from.
"""

import json
import os
import socket
from contextlib import ExitStack, nullcontext
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from sentences import assert_sentence, raises_sentence
from weighbridge import registry
from weighbridge.errors import Unavailable
from weighbridge.features.guests import accelerator, kvm_guest, vsock
from weighbridge.features.guests.architecture import X86_64
from weighbridge.features.guests.console import last_words
from weighbridge.features.guests.environments import cloud_hypervisor
from weighbridge.features.guests.environments.cloud_hypervisor import CloudHypervisorMachine
from weighbridge.features.guests.environments.firecracker import FirecrackerMachine
from weighbridge.features.guests.kernel import DRIVERS, Kernel
from weighbridge.features.guests.kvm_guest import KvmEnvironment, KvmMachine, KvmOptions
from weighbridge.features.guests.network import Tap
from weighbridge.model.environment import Needs
from weighbridge.model.host import HostTraits, Limits, RunContext
from weighbridge.model.plugin import Readiness
from weighbridge.model.study import Resources

DATA = Path(__file__).parent / "data"
MIB = 2**20
TAP = Tap("wb-abcdef-p0", "wb-abcdef-b0", "198.19.202.2", "198.19.202.1", 1500, made_first=True)
PLAIN: dict[str, Any] = {
    "name": "weighbridge-x", "folder": Path("/d/own"), "kernel": Path("/c/vmlinux"), "ramdisk": Path("/c/ramdisk"),
    "cpus": 2, "memory": 512 * MIB, "root": Path("/c/disk.ext4"),
}  # fmt: skip
FULL = {**PLAIN, "data": Path("/d/data.ext4"), "network": TAP}
KINDS = ("firecracker", "cloud-hypervisor")
MACHINES: tuple[type[KvmMachine], ...] = (FirecrackerMachine, CloudHypervisorMachine)


@pytest.fixture(autouse=True)
def _x86(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cloud_hypervisor, "HOST", X86_64)


def environment(kind: str) -> KvmEnvironment:
    found = registry.environments()[kind]
    assert isinstance(found, KvmEnvironment)
    return found


def captured(name: str) -> Any:
    return json.loads((DATA / name).read_text())


# -- the guest -----------------------------------------------------------------------------------------------------


def test_firecracker_is_given_a_file_with_the_guest():
    machine = FirecrackerMachine(**FULL)
    file, content = machine.configuration()
    assert machine.argv() == ("firecracker", "--no-api", "--level", "Error", "--config-file", str(file))
    assert content + "\n" == (DATA / "firecracker/guest.json").read_text()


@pytest.mark.parametrize("given", [PLAIN, FULL])
def test_the_file_is_what_firecrackers_description_of_its_api_allows(given: dict[str, Any]):
    _, content = FirecrackerMachine(**given).configuration()
    Draft202012Validator(captured("firecracker/schema.json")).validate(json.loads(content))


def test_cloud_hypervisor_is_given_arguments_alone():
    machine = CloudHypervisorMachine(**FULL)
    assert [*machine.argv()] == (DATA / "cloud-hypervisor/arguments.txt").read_text().splitlines()
    assert machine.configuration() is None


@pytest.mark.parametrize("given", [PLAIN, FULL])
def test_cloud_hypervisor_has_every_option_and_key(given: dict[str, Any]):
    known, option, seen = captured("cloud-hypervisor/options.json"), "", set()
    for word in CloudHypervisorMachine(**given).argv()[1:]:
        if word in known:
            option = word
        elif (keys := known[option]) is not None:
            assert {part.partition("=")[0] for part in word.split(",")} <= {*keys}, word
        seen.add(option)
    assert seen == {*known} - {"source"} - (set() if "network" in given else {"--net"})


@pytest.mark.parametrize("machine", MACHINES)
def test_the_first_process_gets_every_word_and_finds_its_drivers(machine: type[KvmMachine]):
    """Linux gives it no more than 32. Older releases of Firecracker append a word for each device."""
    options, _, init = machine(**FULL).command_line().partition(" -- ")
    words = init.split()
    assert "panic=-1" in options and len(words) + len(["block"] * 2 + ["net", "vsock"]) < 32
    modules = words[words.index("--modules") + 1].split(",")
    assert {*modules} <= {*DRIVERS} and modules[0] == machine.bus and modules[-1] == "virtio_net"
    assert words[words.index("--vsock") + 1] == str(vsock.PORT)
    alone = machine(**PLAIN).command_line()
    assert "--data" not in alone and "--address" not in alone and "virtio_net" not in alone


@pytest.mark.parametrize("field", ["root", "data", "folder"])
def test_a_path_that_is_no_value_of_an_option_is_refused(field: str):
    with raises_sentence(Unavailable):
        replace(CloudHypervisorMachine(**FULL), **{field: Path("/a,b/x")}).argv()


def test_more_processors_than_firecracker_has_are_not_had(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    for module in (kvm_guest.disk, kvm_guest.ramdisk):
        monkeypatch.setattr(module, "ensure", lambda *_: Path("/c/file"))
    monkeypatch.setattr(kvm_guest.kernel, "ensure", lambda *_: Kernel("6.1", "6.1.1-1", Path("/c/vmlinux"), {}))
    monkeypatch.setattr(kvm_guest, "reserved", lambda *_: nullcontext())
    monkeypatch.setattr(kvm_guest, "cpus_of", lambda *_: 40)
    versions = iter(["Firecracker v1.16.1\n\n"])  # it is asked once per run: the workload boot times each opening
    monkeypatch.setattr(kvm_guest, "output", lambda _: next(versions))
    asked: Any = SimpleNamespace(
        run=RunContext("0123456789ab", tmp_path, tmp_path, ExitStack()),
        host=SimpleNamespace(data_folder=lambda *_: nullcontext(tmp_path)),
        name="s", userland=None, storage=None, limits=Limits(cpus=40),
    )  # fmt: skip
    for _ in range(2):
        machine, notes = environment("firecracker")._machine(KvmOptions(network="none"), asked, ExitStack())
    assert (machine.cpus, notes["virtual CPUs"], notes["firecracker"]) == (32, "32", "1.16.1")
    assert_sentence(notes["not honoured: CPUs"])


# -- what they say -------------------------------------------------------------------------------------------------


FAILURES = sorted(
    f"{kind}/{file.stem}" for kind in KINDS for file in (DATA / kind).glob("*.txt") if file.stem != "arguments"
)


@pytest.mark.parametrize("name", FAILURES)
def test_why_a_hypervisor_starts_no_guest_is_one_sentence(name: str):
    assert_sentence(last_words((DATA / f"{name}.txt").read_bytes()))


# -- readiness -----------------------------------------------------------------------------------------------------


VERSIONS = {"firecracker": "Firecracker v1.16.1\n\n", "cloud-hypervisor": "cloud-hypervisor v53.0\n"}
OLD = {"firecracker": "Firecracker v1.7.0\n", "cloud-hypervisor": "cloud-hypervisor v41.0.0-41.0.120.g4ea35aaf\n"}


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Set what this machine has: a program, the version that it reports, KVM, and this user."""

    def have(version: str | None, no_kvm: Readiness | None = None, user: int = 0) -> None:
        monkeypatch.setattr(kvm_guest, "which", lambda name: None if version is None else f"/usr/bin/{name}")
        monkeypatch.setattr(kvm_guest, "output", lambda _: version)
        monkeypatch.setattr(accelerator, "no_kvm", lambda: no_kvm)
        monkeypatch.setattr(os, "geteuid", lambda: user)

    return have


@pytest.mark.parametrize("kind", KINDS)
def test_a_program_that_is_missing_or_too_old_is_named(machine: Any, kind: str):
    for version in (None, OLD[kind], ""):
        machine(version)
        state = environment(kind).ready(KvmOptions())
        assert not state.ready
        assert_sentence(f"{state.detail}: {state.remedy}")


@pytest.mark.parametrize("kind", KINDS)
def test_without_kvm_there_is_no_guest_and_with_it_perhaps(machine: Any, kind: str):
    no_kvm = Readiness(False, "there is no /dev/kvm", "use another machine")
    machine(VERSIONS[kind], no_kvm)
    assert environment(kind).ready(KvmOptions()) == no_kvm
    machine(VERSIONS[kind])
    state = environment(kind).ready(KvmOptions(), Needs())
    assert state.ready
    assert_sentence(state.caveat)
    assert environment(kind).needs_virtualisation() and environment(kind).unverified()


@pytest.mark.parametrize("kind", KINDS)
def test_a_bridge_takes_root_and_a_guest_takes_memory(machine: Any, kind: str):
    machine(VERSIONS[kind], user=65534)
    assert environment(kind).ready(KvmOptions(network="none")).ready and environment(kind).ready().ready
    state = environment(kind).ready(KvmOptions())
    assert not state.ready and state.remedy == "run as root, or set network: none"
    machine(VERSIONS[kind])
    large = Needs(resources=Resources.model_validate({"memory": "921600GiB"}))
    assert environment(kind).ready(KvmOptions(), large).detail.startswith("a guest with 943718400 MiB does not fit")


def test_what_a_guest_cannot_reach_is_refused():
    plugin = environment("firecracker")
    assert plugin.check(KvmOptions(), Needs(network=True)) == []
    for needs, options in (
        (Needs(network=True), KvmOptions(network="none")),
        (Needs(network=True, separate_hosts=True), KvmOptions()),
        (Needs(hosts={"guest": HostTraits(here=True, own_kernel=True)}), KvmOptions()),
    ):
        (why,) = plugin.check(options, needs)
        assert_sentence(why)


# -- the stream ----------------------------------------------------------------------------------------------------


class Hypervisor:
    """A process that runs until it is told to end."""

    code: int | None = None

    def poll(self) -> int | None:
        return self.code


def test_a_guests_call_is_the_stream_and_no_socket_is_left(tmp_path: Path):
    device, running = tmp_path / "vsock", Hypervisor()
    with vsock.listening(device) as listener:
        device.touch()  # as the hypervisor makes its own end
        with socket.socket(socket.AF_UNIX) as call:
            call.connect(f"{device}_{vsock.PORT}")
            stream = vsock.answered(listener, running, 5)  # type: ignore[arg-type]
            assert stream is not None
            call.sendall(bytes(range(256)))
            assert stream.receive(5) == bytes(range(256))
            stream.send(b"back")
            assert call.recv(9) == b"back"
    assert [*tmp_path.iterdir()] == []


def test_nobody_waits_for_the_guest_of_a_hypervisor_that_has_ended(tmp_path: Path):
    ended = Hypervisor()
    ended.code = 1
    with vsock.listening(tmp_path / "vsock") as listener:
        assert vsock.answered(listener, ended, 60) is None  # type: ignore[arg-type]
        assert vsock.answered(listener, Hypervisor(), 0) is None  # type: ignore[arg-type]


def test_a_folder_whose_path_is_too_long_for_a_socket_is_refused(tmp_path: Path):
    folder = tmp_path / ("x" * 120)
    folder.mkdir()
    with pytest.raises(Unavailable, match=r"no socket can be created at .*: AF_UNIX path too long"):
        vsock.listening(folder / "vsock").__enter__()
    assert [*folder.iterdir()] == []
