"""What is known of KVM before a guest is started under it."""

import errno
import os
from pathlib import Path

import pytest

from weighbridge.features.guests import accelerator
from weighbridge.features.guests.accelerator import AcceleratorChoice, no_kvm, readiness
from weighbridge.model.plugin import Readiness

INTEL = "processor\t: 0\nflags\t\t: fpu vme de pse vmx ssse3 hypervisor\nvmx flags\t: vnmi ept\n"
AMD = "processor\t: 0\nflags\t\t: fpu vme de pse svm ssse3\n"
PVM = "processor\t: 0\nflags\t\t: fpu vme de pse ssse3 hypervisor\nbugs\t\t: vmscape\n"
ARM = "processor\t: 0\nFeatures\t: fp asimd evtstrm aes\n"
IMPOSSIBLE = Readiness(False, "the CPU has neither vmx nor svm", "use another machine")


@pytest.fixture
def device(tmp_path: Path) -> Path:
    """A file that opens."""
    made = tmp_path / "kvm"
    made.touch()
    return made


def cpuinfo(folder: Path, text: str) -> Path:
    made = folder / "cpuinfo"
    made.write_text(text)
    return made


@pytest.mark.parametrize("text", [INTEL, AMD, ARM, ""])
def test_where_the_cpu_may_help_only_a_guest_can_tell(device: Path, tmp_path: Path, text: str):
    assert no_kvm(device, cpuinfo(tmp_path, text)) is None


def test_a_file_that_cannot_be_read_says_nothing_of_the_cpu(device: Path, tmp_path: Path):
    assert no_kvm(device, tmp_path / "none") is None


@pytest.mark.parametrize("text", [PVM, PVM + "vmx flags\t: vnmi ept\n"])
def test_a_device_that_opens_is_not_enough(device: Path, tmp_path: Path, text: str):
    found = no_kvm(device, cpuinfo(tmp_path, text))
    assert found is not None and not found.ready and found.remedy
    assert found.detail == "the CPU has neither vmx nor svm"


def test_no_device(tmp_path: Path):
    found = no_kvm(tmp_path / "none", cpuinfo(tmp_path, INTEL))
    assert found is not None and found.detail == f"there is no {tmp_path / 'none'}"


@pytest.mark.parametrize(
    ("number", "user", "detail", "remedy"),
    [
        (errno.EACCES, 1000, "this user cannot open {device}", "run as root"),
        (errno.EPERM, 0, "this user cannot open {device}", "give this container the device"),
        (errno.ENODEV, 0, "{device} has no driver", "use a machine with hardware virtualisation"),
    ],
)
def test_a_device_that_does_not_open(
    device: Path, monkeypatch: pytest.MonkeyPatch, number: int, user: int, detail: str, remedy: str
):
    def refused(*_: object) -> int:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(accelerator.os, "open", refused)
    monkeypatch.setattr(accelerator.os, "geteuid", lambda: user)
    found = no_kvm(device, cpuinfo(device.parent, INTEL))
    assert found is not None and not found.ready
    assert found.detail == detail.format(device=device) and found.remedy.startswith(remedy)


def test_what_is_not_known_to_be_impossible_is_not_refused(device: Path, tmp_path: Path, monkeypatch):
    def busy(*_: object) -> int:
        raise OSError(errno.EBUSY, os.strerror(errno.EBUSY))

    monkeypatch.setattr(accelerator.os, "open", busy)
    assert no_kvm(device, tmp_path / "none") is None


@pytest.mark.parametrize(
    ("wanted", "impossible", "ready", "caveat"),
    [
        ("kvm", IMPOSSIBLE, False, ""),
        ("kvm", None, True, "left out or refused if no guest boots with KVM in the run"),
        ("auto", IMPOSSIBLE, True, "emulated"),
        ("auto", None, True, "emulated if no guest boots with KVM in the run"),
        ("tcg", IMPOSSIBLE, True, "emulated"),
        ("tcg", None, True, "emulated"),
    ],
)
def test_only_kvm_that_was_asked_for_is_refused(
    wanted: AcceleratorChoice, impossible: Readiness | None, ready: bool, caveat: str
):
    found = readiness(wanted, impossible)
    assert (found.ready, found.caveat) == (ready, caveat)


def test_why_it_will_be_emulated():
    assert readiness("auto", IMPOSSIBLE).detail == "no KVM: the CPU has neither vmx nor svm"
