"""Which accelerator guests have on a host: KVM only where a guest came up under it."""

import errno
import os
from collections.abc import Mapping
from contextlib import nullcontext
from pathlib import Path
from typing import Literal

from weighbridge.errors import Unavailable
from weighbridge.guests import kernel, ramdisk
from weighbridge.guests.console import last_words
from weighbridge.guests.machine import Accelerator, QemuMachine
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
"""What the first process of a guest prints that is only to show that it can."""
_TRIED_S = 10.0
_MEMORY = 256 * 2**20
_NOT_EVEN_ROOT = "give this container the device"


def readiness(choice: AcceleratorChoice, impossible: Readiness | None) -> Readiness:
    """Return what is known of an accelerator before a guest is started; ``impossible`` is what `no_kvm` returned.

    Not ready is only KVM that was asked for and that is impossible.
    """
    if choice == "tcg":
        return Readiness(True, caveat="emulated")
    if impossible is None:
        otherwise = "left out or refused" if choice == "kvm" else "emulated"
        return Readiness(True, caveat=f"{otherwise} if no guest boots with KVM in the run")
    return impossible if choice == "kvm" else Readiness(True, f"no KVM: {impossible.detail}", caveat="emulated")


def no_kvm(device: Path = Path(DEVICE), cpuinfo: Path = Path("/proc/cpuinfo")) -> Readiness | None:
    """Return why no guest can come up under KVM on this machine; None where only starting one can tell.

    A device that opens is not enough: there is a KVM without the CPU's help (PVM), for kernels that are made for it,
    and Debian's is none. The modules that use the CPU's help load only where its flags say vmx or svm; x86 alone has
    such flags.
    """
    if device.exists() and (why := virtualisation.lacking(device, cpuinfo)):
        return Readiness(False, why, virtualisation.ELSEWHERE)
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
    """Return the accelerator of a host's guests, and why it is not KVM where the choice was left open.

    Raises Unavailable where KVM was asked for and no guest comes up under it.
    """
    if choice == "tcg":
        return "tcg", ""
    why = run.share(f"kvm {host.name}", lambda: nullcontext((refusal(host, run),)))[0]
    if why and choice == "kvm":
        raise Unavailable(f"no guest boots with KVM on host {host.name}: {why}")
    return ("tcg", why) if why else ("kvm", "")


def refusal(host: Host, run: RunContext) -> str:
    """Why no guest comes up under KVM, found by starting one; empty where it did. A device file is no proof."""
    guest_kernel = kernel.ensure(run.cache, run.say)
    disk = ramdisk.ensure(guest_kernel, run.cache, run.say)
    if host.run(Command(("test", "-e", DEVICE), 10)).returncode != 0:
        return f"there is no {DEVICE}"
    machine = QemuMachine("kvm", guest_kernel.image, disk, "kvm", 1, _MEMORY, arguments=("--prove",))
    return judged(host.run(Command(machine.argv(), _TRIED_S)))


def judged(completed: Completed) -> str:
    """Return why a guest did not prove that it runs; empty where it did."""
    if PROVED in completed.stderr:
        return ""
    console_tail = last_words(completed.stderr)
    if completed.timed_out:
        return f"it did not boot within {_TRIED_S:.0f} s{f': {console_tail}' if console_tail else ''}"
    return console_tail or f"QEMU exited with code {completed.returncode} and no message"
