"""The accelerator of guests on a host: KVM only if a guest booted with it."""

import errno
import os
from collections.abc import Mapping
from contextlib import nullcontext
from pathlib import Path
from typing import Literal

from weighbridge.errors import Unavailable
from weighbridge.features.guests import kernel, ramdisk
from weighbridge.features.guests.console import last_words
from weighbridge.features.guests.machine import Accelerator, QemuMachine
from weighbridge.linux import virtualisation
from weighbridge.linux.remedies import join_group_of
from weighbridge.linux.virtualisation import DEVICE
from weighbridge.model.command import Command, Completed
from weighbridge.model.host import Host, RunContext
from weighbridge.model.isolation import Layer
from weighbridge.model.plugin import Readiness

AcceleratorChoice = Literal["kvm", "tcg", "auto"]
LAYERS: Mapping[Accelerator, Layer] = {"kvm": Layer("QEMU, KVM"), "tcg": Layer("QEMU, TCG", emulated=True)}
PROVED = b"weighbridge: the guest runs"
"""The output of the first process of a guest that only proves that guests boot."""
EMULATED = 8.0
"""How many times longer programs take on an emulated CPU, roughly.

44 containers in an emulated guest opened and closed in 264 s while other programs ran. With 8, the forecast is 200 s.
"""
_TRIED_S = 10.0
_MEMORY = 256 * 2**20
_NOT_EVEN_ROOT = "give this container the device"


def readiness(choice: AcceleratorChoice, impossible: Readiness | None) -> Readiness:
    """Return what is known about an accelerator before a guest starts; ``impossible`` is the result of `no_kvm`.

    It is only not ready if KVM is requested and impossible.
    """
    if choice == "tcg":
        return Readiness(True, caveat="emulated")
    if impossible is None:
        otherwise = "left out or refused" if choice == "kvm" else "emulated"
        return Readiness(True, caveat=f"{otherwise} if no guest boots with KVM in the run")
    return impossible if choice == "kvm" else Readiness(True, f"no KVM: {impossible.detail}", caveat="emulated")


def no_kvm(device: Path = Path(DEVICE), cpuinfo: Path = Path("/proc/cpuinfo")) -> Readiness | None:
    """Return why no guest can boot with KVM on this machine; None if only a try can show.

    A device that opens is not sufficient: KVM without CPU support exists (PVM), but needs special kernels, not
    Debian's. The modules that use CPU support load only if its flags include vmx or svm; only x86 has such flags.
    """
    if device.exists() and (obstacle := virtualisation.lacking(device, cpuinfo)):
        return Readiness(False, obstacle, virtualisation.ELSEWHERE)
    try:
        os.close(os.open(device, os.O_RDWR | os.O_CLOEXEC))
    except FileNotFoundError:
        return Readiness(False, f"there is no {device}", virtualisation.ELSEWHERE)
    except PermissionError:
        root = os.geteuid() == 0
        return Readiness(False, f"this user cannot open {device}", _NOT_EVEN_ROOT if root else _let_in(device))
    except OSError as error:
        if error.errno in (errno.ENODEV, errno.ENXIO):
            return Readiness(False, f"{device} has no driver", virtualisation.ELSEWHERE)
        return None
    return None


def _let_in(device: Path) -> str:
    return " or ".join(text for text in (join_group_of(device), "run as root") if text)


def chosen(choice: AcceleratorChoice, host: Host, run: RunContext) -> tuple[Accelerator, str]:
    """Return the accelerator of a host's guests, and why it is not KVM if the choice was open.

    Raises Unavailable if KVM is requested and no guest boots with it.
    """
    if choice == "tcg":
        return "tcg", ""
    obstacle = run.share(f"kvm {host.name}", lambda: nullcontext((refusal(host, run),)))[0]
    if obstacle and choice == "kvm":
        raise Unavailable(f"no guest boots with KVM on host {host.name}: {obstacle}")
    return ("tcg", obstacle) if obstacle else ("kvm", "")


def refusal(host: Host, run: RunContext) -> str:
    """Return why no guest boots with KVM, by starting one; empty if it did. A device file is no proof."""
    guest_kernel = kernel.ensure(run.cache, run.say)
    disk = ramdisk.ensure(guest_kernel, run.cache, run.say)
    if host.run(Command(("test", "-e", DEVICE), 10)).returncode != 0:
        return f"there is no {DEVICE}"
    machine = QemuMachine("kvm", guest_kernel.image, disk, "kvm", 1, _MEMORY, arguments=("--prove",))
    return judged(host.run(Command(machine.argv(), _TRIED_S)))


def judged(completed: Completed) -> str:
    """Return why a guest did not prove that it runs; empty if it did."""
    if PROVED in completed.stderr:
        return ""
    console_tail = last_words(completed.stderr)
    if completed.timed_out:
        return f"it did not boot within {_TRIED_S:.0f} s{f': {console_tail}' if console_tail else ''}"
    return console_tail or f"QEMU exited with code {completed.returncode} and no message"
