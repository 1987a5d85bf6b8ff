"""Hosts that are QEMU guests, created for one run and reached through an agent on a virtio-serial port.

A guest ends together with Weighbridge. Its disks are in the run's folder in the cache, which ``weighbridge clean``
removes.
"""

import contextlib
import time
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path
from typing import Any

from weighbridge.errors import EnvironmentLost, Unavailable
from weighbridge.features.guests import disk, monitor, system, vcpus
from weighbridge.features.guests.console import last_words
from weighbridge.features.guests.hosts.guest.machine import Slots, cpus_of, folder_of, machine_of, started
from weighbridge.features.guests.hosts.guest.options import GuestOptions
from weighbridge.features.guests.hosts.guest.xen import hypervisor_facts, layers_of, set_up_xen
from weighbridge.features.guests.machine import DATA_DRIVE, QemuMachine
from weighbridge.hosts.local import LocalHost
from weighbridge.hosts.remote.channel import Channel
from weighbridge.hosts.remote.forward import Forward
from weighbridge.hosts.remote.host import AgentHost
from weighbridge.hosts.remote.processes import RemoteSocket
from weighbridge.hosts.remote.start import start_agent
from weighbridge.hosts.switch import Switch, SwitchedHost, host_group, switch_for, without_offloads
from weighbridge.linux.cgroups import Cgroup
from weighbridge.linux.process import Process
from weighbridge.model.command import Command
from weighbridge.model.host import Capabilities, DiskSpeed, Host, RunContext
from weighbridge.model.userland import Userland

_SET_UP = """set -e
hostname "$1"
printf '127.0.0.1 localhost %s\\n' "$1" > /etc/hosts
: > /etc/resolv.conf
mkdir -p /run/lock
date --set "@$2" > /dev/null
echo 1 > /proc/sys/net/ipv6/conf/all/disable_ipv6 || true
shift 2
[ $# = 0 ] || modprobe --all "$@"
"""


def set_up(host: Host, options: GuestOptions) -> None:
    """Set a guest host's name and clock, load its modules and start Xen's services.

    Raises Unavailable with the failed command.
    """
    # its real-time clock only has full seconds
    words = ("set-up", f"wb-{host.name}", f"{time.time():.3f}", *system.modules(options.system))
    completed = host.run(Command(("sh", "-c", _SET_UP, *words), 120))
    if completed.returncode != 0:
        raise Unavailable(f"host {host.name} cannot be set up: {completed.last_words}")
    if options.hypervisor:
        set_up_xen(host)


READY_S = 180.0
"""The seconds for booting a guest host, which needs about ten if emulated on an idle machine."""
_DATA = "/var/cache/weighbridge"
"""The mount point of its second disk (KEPT in ``features/guests/source/init.c``)."""
_ENGINE = f"{_DATA}/engine"
_REMOVE_ENGINE = """
for at in $(cut -d" " -f5 /proc/self/mountinfo | sort -r)  # what is inside of another comes first
do case $at in "$1"/*) umount "$at";; esac
done
exec rm -rf --one-file-system "$1"
"""
"""Also removes a killed engine: root folders of its containers and the root filesystem in a layer are mounts."""
_PLUG = 'mkdir -p "$2" && exec mount -t ext4 -o ro,noload,noatime "$1" "$2"'
_TOGETHER_S = 0.5


class GuestHost(SwitchedHost, AgentHost):
    """A QEMU guest as a host. Implements ``DisposableHost`` and ``Power``."""

    data = _DATA
    options: GuestOptions

    def __init__(
        self, name: str, options: GuestOptions, run: RunContext, hello: Mapping[str, Any], channel: Channel,
        address: str, switch: Switch, process: Process, machine: QemuMachine, group: Cgroup,
    ) -> None:  # fmt: skip
        super().__init__(name, run, hello, channel, (address, "eth0"))
        self.layers = layers_of(machine)
        self._group = group
        self.options = options
        self.switch = switch
        self.limited = False
        self._within = self.run
        self._process = process
        self._speed: DiskSpeed | None = None
        self._machine = machine
        self._forwards: dict[str, Forward] = {}
        self._slots = Slots(folder_of(machine))

    @property
    def capabilities(self) -> Capabilities:
        """Return the host's capabilities: most of those that a host can have."""
        has_cable = self.options.link is not None
        return Capabilities(
            disposable=self, link=self.link if has_cable else None, limit_link=self.set_link if has_cable else None,
            clock=self.clock, guest_disk=self.disk,
            image_layer=self.userland, hypervisor=self._group, limit_disk=self.set_disk_speed, power=self,
        )  # fmt: skip

    def dedicated_host(self, purpose: str) -> "GuestHost":
        """Return one more guest, with the same hardware and cable."""
        name = f"{self.name}-{purpose}"
        return self._run.share(f"host {self.name} {purpose}", lambda: guest_host(name, self.options, self._run))

    def _unpacked(self, userland: Userland) -> Path:
        """Return the root filesystem's path in the guest: two are mounted from a disk, later ones are copied."""
        image, device = disk.ensure(userland, self._run.cache, self._run.say), None
        with contextlib.suppress(Unavailable):
            device = self.disk(image)
        if device is None:
            return super()._unpacked(userland)
        root = f"/run/userlands/{userland.digest[:16]}"
        completed = self.run(Command(("sh", "-c", _PLUG, "plug", device, root), 60))
        if completed.returncode != 0:
            raise Unavailable(f"host {self.name}: the root filesystem cannot be mounted: {completed.last_words}")
        return Path(root)

    def disk(self, image: Path) -> str:
        """Return the device to which a disk image is copied. Raises Unavailable if all devices are in use."""
        return self._slots.device_of(image, self.name)

    @contextmanager
    def engine_folder(self) -> Iterator[str]:
        """Yield the engine's folder on the host's second disk, which is removed at the end."""
        try:
            yield _ENGINE
        finally:
            with contextlib.suppress(EnvironmentLost):
                completed = self.run(Command(("sh", "-c", _REMOVE_ENGINE, "remove", _ENGINE), 300))
                if completed.returncode != 0:
                    self._run.say(f"host {self.name}: an engine's folder cannot be removed: {completed.last_words}")

    def reach(self, path: str) -> Path | None:
        """Return a socket in the run's folder that leads to one in the guest; None until a process listens there."""
        try:
            RemoteSocket(self._channel, path).close()
        except OSError:
            return None
        local_socket = self._run.state / f"{self.address.rpartition('.')[2]}-{Path(path).name}"
        if path not in self._forwards:
            self._forwards[path] = Forward(self._channel, local_socket, path)
        return local_socket

    def set_disk_speed(self, speed: DiskSpeed | None) -> None:
        """Set or remove QEMU's throttle of the data disk."""
        if speed != self._speed and self._machine.monitor is not None:
            monitor.set_disk_speed(self._machine.monitor, DATA_DRIVE, speed)
            self._speed = speed

    def facts(self) -> Mapping[str, str]:
        """Return the guest's fingerprint, as for this machine, and its hardware."""
        machine, options = self._machine, self.options
        common_facts = super().facts()
        return {
            **common_facts,
            # without the arguments of its first process
            "kernel command line": common_facts["kernel command line"].partition(" -- ")[0],
            "kind": "guest: a QEMU guest on this machine, with its own kernel",
            "accelerator": machine.accelerator,
            "virtual CPUs": vcpus.words(cpus_of(options))
            if options.pin
            else f"{machine.cpus} on CPUs {options.cpus}"
            if options.cpus
            else str(machine.cpus),
            "memory of the guest": f"{machine.memory >> 20} MiB",
            **({"write cache of the data disk": options.write_cache} if options.write_cache != "kept" else {}),
            **hypervisor_facts(machine),
            **self._cable_facts(),
        }

    def switch_off(self) -> None:
        """End the guest at once, like a power cut."""
        for forward in self._forwards.values():
            forward.close()
        self._forwards.clear()
        self._process.stop()

    def cut(self) -> None:
        """Kill QEMU, and lose the content of its disk's write cache."""
        self._group.kill()
        self.switch_off()

    def restored(self) -> AbstractContextManager["GuestHost"]:
        """Start the same machine with the same disk again; it ends before this host's own context does."""
        return _booted(self.name, self.options, self._run, self.address, self.switch, self._machine)


@contextmanager
def guest_host(name: str, options: GuestOptions, run: RunContext) -> Iterator[GuestHost]:
    """Start a guest as a host, and end it with everything in it. Raises Unavailable if it does not boot."""
    run.say(f"starting host {name}, a QEMU guest")
    switch = switch_for(run, name, options.cpus)
    address, _ = switch.next_host()
    with ExitStack() as stack:
        machine = machine_of(name, options, run, address, stack)
        yield stack.enter_context(_booted(name, options, run, address, switch, machine))


@contextmanager
def _booted(
    name: str, options: GuestOptions, run: RunContext, address: str, switch: Switch, machine: QemuMachine
) -> Iterator[GuestHost]:
    with ExitStack() as stack:
        group = host_group(stack, run, name, "guest", options.cpus)
        process, near = stack.enter_context(started(machine, options, run, switch, group))

        def why() -> str:
            ended = process.wait(_TOGETHER_S)
            cpu_s = group.meters().get("cpu_s", 0.0)  # 0 means that it waits, the elapsed time that its kernel hangs
            console_tail = last_words(process.stop().stderr)
            state = "ended" if ended else f"does not answer after {cpu_s:.0f} s of CPU time"
            return f"its guest {state}{f': {console_tail}' if console_tail else ''}"

        switch.join(address, options.mtu, process, lambda: f"host {name}: {why()}")
        channel, hello = start_agent(name, near, READY_S, lambda _: f"does not boot: {why()}", why)
        stack.callback(channel.close)
        host = GuestHost(name, options, run, hello, channel, address, switch, process, machine, group)
        stack.callback(host.switch_off)
        _set_up(host)
        if options.pin:
            vcpus.pin(LocalHost(run.id), group, cpus_of(options))
        yield host


def _set_up(host: GuestHost) -> None:
    set_up(host, host.options)
    if not host.options.has_offloads:
        host.switch.without_offloads(host.address)
        without_offloads(host, 1)
    if host.options.link is not None:
        host.set_link(limited=True)
