"""Guests of hypervisors that work only with KVM and have virtio devices alone: Firecracker and Cloud Hypervisor.

They boot the kernel and the disk of ``qemu``, and their launcher calls this machine over a vsock device.
"""

import os
import re
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field

from weighbridge.engines.network_problems import NO_NETWORK
from weighbridge.features.guests import accelerator, data_disk, disk, kernel, ramdisk, vsock
from weighbridge.features.guests.architecture import KNOWN
from weighbridge.features.guests.boot import booted
from weighbridge.features.guests.group import hypervisor_group
from weighbridge.features.guests.network import Tap, tap_of
from weighbridge.features.guests.resources import (
    SMALLER,
    cpus_of,
    lacking_memory,
    memory_of,
    memory_problems,
    reserved,
)
from weighbridge.features.guests.site import GuestSite
from weighbridge.features.guests.words import words
from weighbridge.linux.process import most_open_files, mounted_by, output, which
from weighbridge.model.environment import Environment, EnvironmentOptions, Needs
from weighbridge.model.facts import DISK_CACHE
from weighbridge.model.isolation import Layer
from weighbridge.model.names import SafeName
from weighbridge.model.plugin import Readiness
from weighbridge.model.site import Site, SiteRequest

_DRIVERS = ("virtio_blk", "crc32c_generic", "ext4", vsock.DRIVER, "tcp_diag", "udp_diag")
_VERSION = re.compile(r"\bv(\d+\.\d+\S*)")


@dataclass(frozen=True, slots=True)
class Hypervisor:
    """A hypervisor: its name, its program, the lowest version that works, and the page with its releases."""

    name: str
    program: str
    lowest: tuple[int, int]
    releases: str
    most_cpus: int
    """The largest number of virtual CPUs of a guest."""

    def version(self) -> str:
        """Return the version of the installed program; "" if it reports none."""
        version = _VERSION.search(output((self.program, "--version")) or "")
        return version[1] if version else ""

    def lacking(self) -> Readiness | None:
        """Return why the program cannot be used; None if it can."""
        remedy = f"install release {self.lowest[0]}.{self.lowest[1]} or later from {self.releases}"
        if which(self.program) is None:
            return Readiness(False, f"{self.program} is not installed", remedy)
        version = self.version()
        if tuple(map(int, re.findall(r"\d+", version)[:2])) < self.lowest:
            return Readiness(False, f"{self.program} {version or 'without a version'} is too old", remedy)
        return None


@dataclass(frozen=True, slots=True)
class KvmMachine(ABC):
    """A guest: its hardware, its kernel, and the arguments of its first process."""

    name: str
    """The name of the run's mounts in the guest."""
    folder: Path
    """The folder for the hypervisor's sockets and files."""
    kernel: Path
    ramdisk: Path
    cpus: int
    memory: int
    """Bytes of its RAM."""
    root: Path
    """The image of the disk with its root folder, which is read-only."""
    data: Path | None = None
    """The image of its data disk."""
    network: Tap | None = None
    open_files: int = 1024
    window: ClassVar[int] = 0
    hypervisor: ClassVar[Hypervisor]
    bus: ClassVar[str]
    """The driver of the virtio devices' bus."""

    @property
    def vsock(self) -> Path:
        """Return the path of the vsock device's socket."""
        return self.folder / "vsock"

    @abstractmethod
    def argv(self) -> tuple[str, ...]:
        """Return the hypervisor's argument list. Its stdout is the console. Raises Unavailable for a path."""

    def configuration(self) -> tuple[Path, str] | None:
        """Return the file that the arguments name, and its content; None without one."""
        return None

    def command_line(self, *options: str, init: tuple[str, ...] = ()) -> str:
        """Return the kernel's command line, with the arguments of its first process after the dashes."""
        disks = ("/dev/vda", *(() if self.data is None else ("/dev/vdb",)))
        modules = (self.bus, *_DRIVERS, *(() if self.network is None else ("virtio_net",)))
        arguments = words(self.name, modules, disks, self.network, self.open_files)
        return " ".join((*options, "quiet", "panic=-1", "--", *arguments, "--vsock", str(vsock.PORT), *init))


class KvmOptions(EnvironmentOptions):
    """The guest's network. Virtual CPUs and memory come from the study's ``resources``.

    ``network: bridge`` is a tap on a bridge of the run's own, which needs root.
    """

    network: Annotated[Literal["bridge", "none"], Field(description="A tap on a bridge created for the run")] = (
        "bridge"
    )


class KvmEnvironment(Environment):
    """A guest with Debian's kernel, without firmware, boot loader and init system."""

    group = "virtual machines"
    options = KvmOptions
    mounts = frozenset({"folder"})
    shares_storage = False
    storage = "directory"
    opening_s = 2.0
    programs: ClassVar = (*kernel.PROGRAMS, *disk.PROGRAMS, "ip")
    architectures: ClassVar = tuple(KNOWN)
    machine: ClassVar[type[KvmMachine]]

    def needs_virtualisation(self, options: Any | None = None) -> bool:
        """Return True, because these hypervisors cannot emulate a CPU."""
        return True

    def unverified(self, options: Any | None = None) -> str:
        """Return that no guest was booted, because no machine with usable KVM was available."""
        return "started with all its options, but no guest has booted in it yet"

    def build_s(self, options: KvmOptions, cache: Path) -> float:
        """Return the seconds to build its kernel."""
        return 0.0 if kernel.cached(cache) is not None else kernel.BUILD_S

    def check(self, options: Any, needs: Needs) -> list[str]:
        """Return what the guest's network does not reach, and which hosts have no disk made on this machine."""
        problems = []
        if not all(host.here and not host.own_kernel for host in needs.hosts.values()):
            problems.append("its disk is created on this machine: put its roles on local or testbed hosts")
        problems += memory_problems(needs)
        if needs.network and options.network == "none":
            problems.append(NO_NETWORK)
        if needs.network and options.network == "bridge" and needs.separate_hosts:
            problems.append("its bridge cannot be reached from another host: put both roles on one host")
        return problems

    def ready(self, options: Any | None = None, needs: Needs | None = None) -> Readiness:
        """Return whether its program, KVM, this user's rights and the memory suffice; only a guest can show that."""
        if lacking := self.machine.hypervisor.lacking() or accelerator.no_kvm():
            return lacking
        if os.geteuid() != 0 and options is not None and options.network == "bridge":
            return Readiness(False, "only root can create bridges and taps", "run as root, or set network: none")
        if needs is not None and (lacking := lacking_memory(needs)):
            return lacking
        return accelerator.readiness("kvm", None)

    @contextmanager
    def open(self, options: Any, request: SiteRequest) -> Iterator[Site]:
        """A guest in a control group of its own, which has every thread of the hypervisor."""
        with ExitStack() as stack:
            group, refused = hypervisor_group(stack, request)
            machine, notes = self._machine(options, request, stack)
            if (configuration := machine.configuration()) is not None:
                configuration[0].write_text(configuration[1])
            launcher = stack.enter_context(booted(machine, request, group))
            notes |= {f"not honoured: {limit}": why for limit, why in refused.items()}
            own = "127.0.0.1" if machine.network is None else machine.network.guest_address
            has_data, layer = machine.data is not None, Layer(machine.hypervisor.name)
            site = GuestSite(request, launcher, group, (own, own), layer, notes, has_data=has_data)
            try:
                yield site
            finally:  # frozen, its launcher would not hear that it is to end
                site.thaw()

    def _machine(self, options: Any, request: SiteRequest, stack: ExitStack) -> tuple[KvmMachine, dict[str, str]]:
        run, host, hypervisor = request.run, request.host, self.machine.hypervisor
        guest_kernel = kernel.ensure(run.cache, run.say)
        root = disk.ensure(request.userland, run.cache, run.say)
        memory, allowed = memory_of(request.limits), cpus_of(request.limits, host)
        stack.enter_context(reserved(memory, host, run, SMALLER))
        data = data_disk.of_site(request, stack)
        machine = self.machine(
            name=mounted_by(run.id),
            folder=stack.enter_context(host.data_folder(run, SafeName(f"{self.kind}-{request.name}"))),
            kernel=guest_kernel.image,
            ramdisk=ramdisk.ensure(guest_kernel, run.cache, run.say),
            cpus=min(allowed, hypervisor.most_cpus),
            memory=memory,
            root=root,
            data=None if data is None else Path(data),
            network=None if options.network == "none" else tap_of(request, attached=False, made_first=True),
            open_files=most_open_files(),
        )
        notes = {
            hypervisor.program: run.share(
                f"version of {hypervisor.program}", lambda: nullcontext(hypervisor.version())
            ),
            "virtual CPUs": str(machine.cpus),
            "memory": f"{memory >> 20} MiB",
            "network": "none" if machine.network is None else "bridge, virtio",
            "kernel package": guest_kernel.version,
        }
        if machine.data is not None:
            notes[DISK_CACHE] = "writeback"
        if allowed > machine.cpus:
            notes["not honoured: CPUs"] = f"{hypervisor.name} has at most {machine.cpus} virtual CPUs, not {allowed}"
        if request.limits.memory is None:
            notes["not honoured: no limit of memory"] = f"a guest has a fixed size of {memory >> 20} MiB"
        return machine, notes
