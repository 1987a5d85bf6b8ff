"""Which accelerator guests have on a host: KVM only where a guest came up under it."""

from collections.abc import Mapping
from contextlib import nullcontext
from typing import Literal

from weighbridge.errors import Unavailable
from weighbridge.guests import kernel, ramdisk
from weighbridge.guests.console import last_words
from weighbridge.guests.machine import Accelerator, Machine
from weighbridge.model.command import Command, Completed
from weighbridge.model.isolation import Layer
from weighbridge.model.site import Host, RunContext

Wanted = Literal["kvm", "tcg", "auto"]
LAYERS: Mapping[Accelerator, Layer] = {"kvm": Layer("QEMU, KVM"), "tcg": Layer("QEMU, TCG", emulated=True)}
DEVICE = "/dev/kvm"
PROVED = b"weighbridge: the guest runs"
"""What the first process of a guest prints that is only to show that it can."""
_TRIED_S = 10.0
_MEMORY = 256 * 2**20


def chosen(wanted: Wanted, host: Host, run: RunContext) -> tuple[Accelerator, str]:
    """The accelerator that guests have there, and why it is not KVM where that was not asked for.

    Raises Unavailable where KVM was asked for and no guest comes up under it.
    """
    if wanted == "tcg":
        return "tcg", ""
    why = run.share(f"kvm {host.name}", lambda: nullcontext((refusal(host, run),)))[0]
    if why and wanted == "kvm":
        raise Unavailable(f"no guest comes up under KVM on host {host.name}: {why}")
    return ("tcg", why) if why else ("kvm", "")


def refusal(host: Host, run: RunContext) -> str:
    """Why no guest comes up under KVM, found by starting one; empty where it did. A device file is no proof."""
    made = kernel.ensure(run.cache, run.say)
    disk = ramdisk.ensure(made, run.cache, run.say)
    if host.run(Command(("test", "-e", DEVICE), 10)).returncode != 0:
        return f"there is no {DEVICE}"
    machine = Machine("kvm", made.image, disk, "kvm", 1, _MEMORY, arguments=("--prove",))
    return judged(host.run(Command(machine.argv(), _TRIED_S)))


def judged(done: Completed) -> str:
    """Why a guest that was only to show that it runs did not."""
    if PROVED in done.stderr:
        return ""
    said = last_words(done.stderr)
    if done.timed_out:
        return f"it had not booted after {_TRIED_S:.0f} s{f': {said}' if said else ''}"
    return said or f"QEMU ended with exit code {done.returncode} and said nothing"
