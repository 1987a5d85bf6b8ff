"""QEMU: the userland as the disk of a guest, under KVM or emulated."""

import os
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field

from weighbridge.engines.network_problems import FORWARDED_ONE_WAY, network_problems
from weighbridge.errors import EnvironmentLost, Unavailable
from weighbridge.features.guests import accelerator, data_disk, disk, huge_pages, kernel, monitor, ramdisk, vcpus
from weighbridge.features.guests.accelerator import LAYERS, AcceleratorChoice, chosen
from weighbridge.features.guests.architecture import HOST
from weighbridge.features.guests.boot import booted
from weighbridge.features.guests.group import hypervisor_group
from weighbridge.features.guests.machine import DATA_DRIVE, CacheMode, Disk, DiskBus, MachineType, Nic, QemuMachine
from weighbridge.features.guests.network import Network, UserNetwork, tap_of
from weighbridge.features.guests.resources import (
    SMALLER,
    cpus_of,
    guests_of,
    lacking_memory,
    memory_of,
    memory_problems,
    own_cpus,
    reserved,
)
from weighbridge.features.guests.site import GuestSite
from weighbridge.launcher import build
from weighbridge.linux.process import most_open_files, mounted_by
from weighbridge.linux.remedies import load_module
from weighbridge.model.command import Command
from weighbridge.model.environment import Environment, EnvironmentOptions, Needs
from weighbridge.model.facts import DISK_CACHE, MEMORY_PAGES
from weighbridge.model.host import Group, Host
from weighbridge.model.plugin import Durability, Readiness
from weighbridge.model.site import Site, SiteRequest

_VHOST = "/dev/vhost-net"
_VIRTIO = ("virtio", "vhost")
"""The interfaces that can have several queues."""
_SOCKET = "qmp"
"""The name of QEMU's monitor socket, in the folder of the data disk."""
_LONGEST_SOCKET = 107
"""Bytes of a socket's path (unix(7))."""


class QemuOptions(EnvironmentOptions):
    """The guest's hardware and network.

    ``accelerator: auto`` is KVM if a guest really came up under it, else emulation (TCG), whose figures are the
    emulator's and not the hypervisor's: the report says which it was. ``network: bridge`` is a tap on a bridge of the
    run's own; with ``attach: interface`` the host's interface is a port of it; ``user`` is QEMU's own network
    stack with forwarded ports. ``vhost`` is a virtio interface whose packets the host's kernel carries. Virtual CPUs
    and memory come from the study's ``resources``; with ``pin: vcpus`` each virtual CPU is on one of the site's CPUs.
    ``machine: microvm`` has virtio devices alone, without PCI. A guest uses at most as many ``queues`` as it has
    virtual CPUs. With ``huge_pages`` its memory is in pages that the host has reserved (``vm.nr_hugepages``).
    """

    accelerator: Annotated[
        AcceleratorChoice, Field(description="auto: KVM if a guest boots with it, otherwise emulation (tcg)")
    ] = "auto"
    machine: Annotated[
        MachineType, Field(description="QEMU's machine: q35 (virt on ARM), or microvm, which has no PCI")
    ] = "standard"
    network: Annotated[
        Literal["bridge", "user", "none"],
        Field(description="A tap on a bridge created for the run, or QEMU's user network"),
    ] = "bridge"
    attach: Annotated[Literal["interface"] | None, Field(description="Add the host's interface to the bridge")] = None
    nic: Annotated[Nic, Field(description="The guest's network interface")] = "virtio"
    disk: Annotated[DiskBus, Field(description="How the guest's disks are attached")] = "virtio"
    cache: Annotated[CacheMode, Field(description="How the host caches the data disk; unsafe ignores flushes")] = (
        "writeback"
    )
    kernel: Annotated[
        str,
        Field(pattern=r"^linux-image-[a-z0-9][a-z0-9.+-]{0,80}$", description="Debian package of the guest's kernel"),
    ] = kernel.PACKAGE
    queues: Annotated[
        int, Field(ge=1, le=64, description="Number of queue pairs of its virtio interface (multiqueue)")
    ] = 1
    huge_pages: Annotated[
        bool, Field(description="Use huge pages that the host has reserved for the guest's memory")
    ] = False
    pin: Annotated[Literal["vcpus"] | None, Field(description="vcpus: pin each virtual CPU to its own CPU")] = None


class Qemu(Environment):
    """A guest with Debian's kernel, without firmware, boot loader and init system."""

    kind = "qemu"
    group = "virtual machines"
    summary = "a QEMU guest, with KVM or emulated, with a choice of devices, on a bridge or a user network"
    options = QemuOptions
    mounts = frozenset({"folder"})
    shares_storage = False
    storage = "directory"
    opening_s = 4.0
    programs: ClassVar = (HOST.program, *kernel.PROGRAMS, *disk.PROGRAMS, "ip")

    def build_s(self, options: QemuOptions, cache: Path) -> float:
        """Return the seconds to build its kernel."""
        return 0.0 if kernel.cached(cache, options.kernel) is not None else kernel.BUILD_S

    def disk_durability(self, options: QemuOptions) -> Durability:
        """Return that ``cache: unsafe`` acknowledges a flush and does nothing."""
        return "none" if options.cache == "unsafe" else "synchronous"

    def check(self, options: Any, needs: Needs) -> list[str]:
        """Return what the guest's network does not reach, and which hosts have no disk made on this machine."""
        problems = []
        if not all(host.here and not host.own_kernel for host in needs.hosts.values()):
            problems.append("its disk is created on this machine: put its roles on local or testbed hosts")
        problems += memory_problems(needs)
        problems += network_problems(options, needs, hosts="testbed hosts", otherwise=", or network: user")
        if needs.network and options.network == "user" and "client" in needs.inside:
            problems.append("network: user accepts connections only from outside the guest. Put the client outside")
        if needs.server_calls_client and options.network == "user":
            problems.append(FORWARDED_ONE_WAY)
        if options.disk == "ide" and not HOST.has_ide:
            problems.append(f"{HOST.name} machines have no IDE. Use disk: virtio")
        problems += _without_pci(options) if options.machine == "microvm" else []
        if options.nic == "vhost" and options.network != "bridge":
            problems.append("'nic: vhost' needs network: bridge")
        if options.queues > 1 and (options.network != "bridge" or options.nic not in _VIRTIO):
            problems.append("'queues' needs nic: virtio or vhost, on network: bridge")
        return problems

    def ready(self, options: Any | None = None, needs: Needs | None = None) -> Readiness:
        """Return whether a guest can be created and joined to its network, and has memory in a study.

        Only a guest can show that KVM works.
        """
        accelerated = accelerator.readiness("auto" if options is None else options.accelerator, accelerator.no_kvm())
        if not accelerated.ready:
            return accelerated
        if options is not None and options.nic == "vhost" and not Path(_VHOST).exists():
            return Readiness(False, f"there is no {_VHOST}", load_module("vhost_net"))
        if os.geteuid() != 0 and options is not None and options.network == "bridge":
            return Readiness(False, "only root can create bridges and taps", "run as root, or set network: user")
        if options is not None and needs is not None and (lacking := _without_memory(options, needs)) is not None:
            return lacking
        if os.geteuid() == 0:
            return accelerated
        for_root = ("network: bridge needs root",) if options is None else ()
        details = (accelerated.detail, *for_root, "only root can create its disk, which is not cached yet")
        return replace(accelerated, detail="; ".join(text for text in details if text))

    def variants(self) -> Mapping[str, Any]:
        """Return options by name: those that need a device of this machine's kernel."""
        return {"qemu, KVM": QemuOptions(accelerator="kvm"), "qemu, vhost": QemuOptions(nic="vhost")}

    @contextmanager
    def open(self, options: Any, request: SiteRequest) -> Iterator[Site]:
        """A guest in a control group of its own, which has every thread of the hypervisor."""
        if options.attach:
            request = replace(request, host=request.host.dedicated_host("ports"))
        with ExitStack() as stack:
            group, refused = hypervisor_group(stack, request)
            behind = request.role == "client" and not request.separate_hosts
            cpus = own_cpus(request.limits, request.host, behind_server=behind) if options.pin else None
            machine, notes = _machine(options, request, stack)
            launcher = stack.enter_context(booted(machine, request, group))
            if cpus is not None:
                notes |= _pinned(request, group, cpus)
            notes |= _cached(machine)
            notes |= _pages(machine, request.host, group)
            layer = LAYERS[machine.accelerator]
            notes |= {f"not honoured: {limit}": why for limit, why in refused.items()}
            site = GuestSite(
                request,
                launcher,
                group,
                _addresses(options, request, machine),
                layer,
                notes,
                has_data=len(machine.disks) > 1,
            )
            site.reached = request.reached if options.network == "user" else {}
            try:
                yield site
            finally:  # frozen, its launcher would not hear that it is to end
                site.thaw()


def _without_pci(options: Any) -> list[str]:
    """Return why a machine without PCI cannot have these devices."""
    if not HOST.has_microvm:
        return [f"QEMU has no machine: microvm for {HOST.name}. Use machine: standard"]
    problems = []
    if options.disk != "virtio":
        problems.append("machine: microvm has no PCI for disk: ide. Use disk: virtio")
    if options.network != "none" and options.nic not in _VIRTIO:
        problems.append(f"machine: microvm has no PCI for nic: {options.nic}. Use nic: virtio or vhost")
    return problems


def _without_memory(options: Any, needs: Needs) -> Readiness | None:
    if options.huge_pages:
        return huge_pages.lacking_here(memory_of(needs.resources), guests_of(needs))
    return lacking_memory(needs)


def _machine(options: Any, request: SiteRequest, stack: ExitStack) -> tuple[QemuMachine, dict[str, str]]:
    run, host = request.run, request.host
    accelerated, why = chosen(options.accelerator, host, run)
    guest_kernel = kernel.ensure(run.cache, run.say, options.kernel)
    root = Disk(disk.ensure(request.userland, run.cache, run.say), options.disk, read_only=True)
    memory = memory_of(request.limits)
    if options.huge_pages:
        huge_pages.require(memory, host)
    else:
        stack.enter_context(reserved(memory, host, run, SMALLER))
    data = tuple(_data(options, request, stack))
    machine = QemuMachine(
        name=mounted_by(run.id),
        kernel=guest_kernel.image,
        ramdisk=ramdisk.ensure(guest_kernel, run.cache, run.say),
        accelerator=accelerated,
        cpus=cpus_of(request.limits, host),
        memory=memory,
        disks=(root, *data),
        network=_network(options, request),
        nic=options.nic,
        queues=options.queues,
        huge_pages=options.huge_pages,
        machine_type=options.machine,
        tsc_khz=_tsc_khz(request) if options.machine == "microvm" and accelerated == "tcg" else 0,
        open_files=most_open_files(),
        monitor=next((socket for each in data if (socket := each.image.with_name(_SOCKET)) and _fits(socket)), None),
    )
    if lacking := [driver for driver in machine.modules() if driver in guest_kernel.lacking]:
        raise Unavailable(
            f"kernel: {options.kernel} {guest_kernel.version} has no driver {lacking[0]}. Choose another kernel"
        )
    notes = {
        "qemu": run.share(f"version of QEMU on {host.name}", lambda: nullcontext(_version(host))),
        "accelerator": accelerated + (f" (no KVM: {why})" if why and options.accelerator == "auto" else ""),
        **({"machine": options.machine} if options.machine != "standard" else {}),
        "virtual CPUs": str(machine.cpus),
        "memory": f"{machine.memory >> 20} MiB",
        "network": options.network if options.network == "none" else f"{options.network}, {options.nic}",
        "disk": options.disk,
        "kernel package": f"{options.kernel} {guest_kernel.version}"
        if options.kernel != kernel.PACKAGE
        else guest_kernel.version,
    }
    if machine.network is not None:
        notes |= machine.network.facts()
    if request.limits.memory is None:
        notes["not honoured: no limit of memory"] = f"a guest has a fixed size of {machine.memory >> 20} MiB"
    if machine.network and not machine.network.offloads and options.nic not in _VIRTIO:
        notes["not honoured: no offloads"] = f"{options.nic} splits packets that are larger than the MTU of its cable"
    return machine, notes


def _tsc_khz(request: SiteRequest) -> int:
    """Return the frequency of the host's time stamp counter, which an emulated CPU has, too. Raises Unavailable.

    A microvm without KVM has no other timer with which its kernel could measure it. The host measures it once per
    run, because it sleeps meanwhile, and the workload ``boot`` times what opens a guest.
    """
    key = f"ticks of {request.host.name}"
    return request.run.share(key, lambda: nullcontext(_measured_tsc_khz(request)))


def _measured_tsc_khz(request: SiteRequest) -> int:
    launcher = request.host.program(build.ensure(request.run.cache, request.run.say))
    completed = request.host.run(Command((launcher, "ticks"), 20))
    if completed.returncode != 0:
        raise Unavailable(f"host {request.host.name}: the frequency of its CPU's clock is unknown")
    return int(completed.text)


def _cached(machine: QemuMachine) -> dict[str, str]:
    """Return how the data disk is cached, as QEMU itself says; nothing if there is no such disk."""
    if machine.monitor is None:
        return {}
    try:
        mode = monitor.cache_mode(machine.monitor, DATA_DRIVE)
    except EnvironmentLost:  # on a host whose files this machine does not see
        return {}
    return {DISK_CACHE: mode} if mode else {}


def _pages(machine: QemuMachine, host: Host, group: Group | None) -> dict[str, str]:
    """Return the pages in which the guest's memory is, as the host's kernel says; without a group nobody looks."""
    notes = {"not metered: memory of the guest": huge_pages.NOT_METERED} if machine.huge_pages else {}
    pages = "" if group is None else huge_pages.in_use(host, group)
    return {**notes, MEMORY_PAGES: pages} if pages else notes


def _pinned(request: SiteRequest, group: Group | None, cpus: list[int]) -> dict[str, str]:
    if group is None:
        return {"not honoured: pin: vcpus": "the threads of the hypervisor are not visible in a control group"}
    vcpus.pin(request.host, group, cpus)
    return {"virtual CPUs": vcpus.words(cpus)}


def _fits(socket: Path) -> bool:
    return len(os.fsencode(socket)) <= _LONGEST_SOCKET


def _version(host: Host) -> str:
    return (
        host.run(Command((HOST.program, "--version"), 20)).text.splitlines()[0].removeprefix("QEMU emulator version ")
    )


def _network(options: Any, request: SiteRequest) -> Network | None:
    if options.network == "none":
        return None
    if options.network == "user":
        return UserNetwork(_outside(request), request.ports)
    return tap_of(request, attached=bool(options.attach))


def _outside(request: SiteRequest) -> str:
    return request.host.address if request.separate_hosts else "127.0.0.1"


def _addresses(options: Any, request: SiteRequest, machine: QemuMachine) -> tuple[str, str]:
    """Return where the other role reaches the guest, and where its servers bind."""
    if machine.network is None:
        return "127.0.0.1", "127.0.0.1"
    own = machine.network.guest_address
    return (_outside(request) if options.network == "user" else own), own


def _data(options: Any, request: SiteRequest, stack: ExitStack) -> Iterator[Disk]:
    """Return the guest's own disk for the site's data, in a folder of the host's disk."""
    if data := data_disk.of_site(request, stack):
        yield Disk(Path(data), options.disk, options.cache)


PLUGIN = Qemu()
