"""The machine of a guest host: its options for QEMU, its files on this machine, and its start."""

import socket
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from weighbridge.errors import Unavailable
from weighbridge.features.guests import data_disk, disk, ramdisk, system, volatile_disk
from weighbridge.features.guests.accelerator import chosen
from weighbridge.features.guests.hosts.guest.options import GuestOptions
from weighbridge.features.guests.machine import CacheMode, Disk, QemuMachine
from weighbridge.features.guests.network import Tap
from weighbridge.features.guests.resources import reserved
from weighbridge.hosts.agent.frames import BOOT
from weighbridge.hosts.agent.operations import machine as this_machine
from weighbridge.hosts.local import LocalHost, remove_engine_folder
from weighbridge.hosts.switch import BRIDGE, NOWHERE, Switch, port_of
from weighbridge.launcher.within import within
from weighbridge.linux import cpus
from weighbridge.linux.cgroups import Cgroup
from weighbridge.linux.deletion import OwnFolder
from weighbridge.linux.process import Process, most_open_files, mounted_by
from weighbridge.model.command import Command
from weighbridge.model.host import RunContext
from weighbridge.model.once import Once
from weighbridge.model.quantity import cpus_in

_SLOTS = {"/dev/vdc": "slot-0", "/dev/vdd": "slot-1"}
"""The devices in the guest, and the files here."""


def make_slots(folder: Path, size: int) -> list[Path]:
    """Make the sparse files of empty disks of ``size`` bytes, in the order of their devices."""
    files = [folder / name for name in _SLOTS.values()]
    for slot in files:
        with slot.open("wb") as file:
            file.truncate(size)
    return files


class Slots:
    """Empty disks that a host has from its start; a file system is copied into one at its first use.

    Their files are in ``folder``.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._free = dict(_SLOTS)
        self._taken = Once()

    def device_of(self, image: Path, host: str) -> str:
        """Return the device of a file system, copied to it at first use. Raises Unavailable if all are in use."""
        return self._taken.get(image, lambda: self._copied(image, host))

    def _copied(self, image: Path, host: str) -> str:
        try:
            device, name = self._free.popitem()
        except KeyError:
            raise Unavailable(
                f"host {host} can have at most {len(_SLOTS)} disks for guests and root filesystems: use fewer"
            ) from None
        disk.copy_into(self._folder / name, image)
        return device


_DATA_BYTES = 64 * 2**30
"""The size of the sparse disk for root filesystems, data and engines."""


def machine_of(name: str, options: GuestOptions, run: RunContext, address: str, stack: ExitStack) -> QemuMachine:
    """Return a guest host's machine, with its memory and disks, which ``stack`` releases. Raises Unavailable."""
    local = LocalHost(run.id)
    stack.enter_context(reserved(options.memory, local, run))
    accelerator, _ = chosen(options.accelerator, local, run)
    guest_system = system.ensure(run.cache, BOOT, run.say, options.system)
    own_folder = OwnFolder.of(run.cache / "engines", run.id, name)
    folder = own_folder.path
    folder.mkdir(parents=True, exist_ok=True)
    stack.callback(remove_engine_folder, own_folder)
    data = folder / "data.ext4"
    data_disk.make(local, str(data), _DATA_BYTES)
    served_at = None if options.write_cache == "kept" else run.state / f"{name}.nbd"
    cache: CacheMode = "none" if served_at is None and data_disk.passes_cache(data) else "writeback"
    slots = make_slots(folder, _DATA_BYTES)
    words = ("-I", "-S", "-u", system.AGENT, "resident", run.id, name, this_machine())
    return QemuMachine(
        name=mounted_by(run.id),
        kernel=guest_system.kernel.image,
        ramdisk=ramdisk.ensure(guest_system.kernel, run.cache, run.say),
        accelerator=accelerator,
        cpus=len(cpus_of(options)),
        memory=options.memory,
        disks=(
            Disk(guest_system.disk, temporary=True),
            Disk(data, cache=cache, socket=served_at),
            *(Disk(each, cache=cache) for each in slots),
        ),
        network=Tap(port_of(address), BRIDGE, address, NOWHERE, options.mtu),
        open_files=most_open_files(),
        arguments=("--system", ",".join((system.PROGRAM, *words))),
        monitor=run.state / f"{name}.qmp",
        hypervisor=guest_system.xen if options.hypervisor else None,
    )


def cpus_of(options: GuestOptions) -> list[int]:
    """Return the CPUs of this machine that the guest uses."""
    return sorted({*cpus_in(options.cpus)}) if options.cpus else cpus.cpus_online()


@contextmanager
def started(
    machine: QemuMachine, options: GuestOptions, run: RunContext, switch: Switch, group: Cgroup
) -> Iterator[tuple[Process, socket.socket]]:
    """Start QEMU in a control group, on all of its CPUs; yield it and our end of its stream. Both end with us.

    Otherwise the guest would end when its stream does.
    """
    local, data = LocalHost(run.id), machine.disks[1]
    joins = ("setpriv", "--pdeathsig", "KILL", "--", *within(local, run, group))
    with ExitStack() as stack:
        if data.socket is not None:
            stack.enter_context(volatile_disk.served(local, data.image, data.socket, options.write_cache, joins))
        near, far = socket.socketpair()
        command = Command((*joins, *switch.enter, "env", f"TMPDIR={folder_of(machine)}", *machine.argv()))
        with far:
            process = Process(command, env=local.variables, talk=far.fileno())
        stack.callback(process.stop)
        yield process, near


def folder_of(machine: QemuMachine) -> Path:
    """Return the folder of its data disk, which also has the unnamed file for writes to the system disk."""
    return machine.disks[1].image.parent
