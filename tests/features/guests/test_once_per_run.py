"""What opening a guest asks its host once per run: the workload ``boot`` times each opening."""

from contextlib import ExitStack
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from weighbridge.features.guests import disk, ramdisk, uml
from weighbridge.features.guests.environments import qemu
from weighbridge.features.guests.environments import uml as environment
from weighbridge.features.guests.environments.uml import UmlOptions
from weighbridge.features.guests.kernel import Kernel
from weighbridge.model.command import Command
from weighbridge.model.host import Limits, RunContext


class Host:
    """A host that counts the programs that it runs."""

    name, ran = "h", 0

    def program(self, path: Path) -> str:
        return str(path)

    def userland(self, _: object) -> str:
        return "/root-folder"

    def run(self, command: Command) -> Any:
        self.ran += 1
        return SimpleNamespace(returncode=0, text=str(2_000_000 + self.ran))


def request(tmp_path: Path) -> Any:
    run = RunContext("0123456789ab", tmp_path, tmp_path, ExitStack())
    userland = SimpleNamespace(layered="")
    limits = Limits(cpus=1, memory=2**28)
    return SimpleNamespace(run=run, host=Host(), name="s", title="s", userland=userland, limits=limits, storage=None)


def test_the_frequency_of_a_microvms_clock_is_measured_once_per_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(qemu.build, "ensure", lambda *_: tmp_path / "launcher")
    asked = request(tmp_path)
    assert [qemu._tsc_khz(asked) for _ in range(3)] == [2_000_001] * 3
    assert asked.host.ran == 1


def test_the_kernel_of_user_mode_linux_is_read_once_per_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    read = []

    def installed() -> Kernel:
        read.append(1)
        return Kernel("6.1", "x", Path("/usr/bin/linux.uml"), {})

    monkeypatch.setattr(uml, "installed", installed)
    monkeypatch.setattr(uml, "library", lambda *_: Path("/c/preload.so"))
    monkeypatch.setattr(ramdisk, "ensure", lambda *_: Path("/c/ramdisk"))
    monkeypatch.setattr(disk, "ensure", lambda *_: Path("/c/disk"))
    monkeypatch.setattr(environment, "reserved", lambda *_: ExitStack())
    monkeypatch.setattr(environment.data_disk, "of_site", lambda *_: None)
    monkeypatch.setattr(environment, "cpus_of", lambda *_: 1)
    asked, options = request(tmp_path), UmlOptions(network="none")
    for _ in range(3):
        environment._machine(options, asked, ExitStack())
    assert read == [1]
