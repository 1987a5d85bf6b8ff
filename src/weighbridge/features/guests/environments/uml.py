"""User-mode Linux: the userland in a guest whose kernel is an ordinary program, without KVM and without emulation."""

import os
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field

from weighbridge.engines.network_problems import NO_NETWORK, network_problems
from weighbridge.errors import Unavailable
from weighbridge.features.guests import data_disk, disk, ramdisk, uml
from weighbridge.features.guests.architecture import X86_64
from weighbridge.features.guests.boot import booted
from weighbridge.features.guests.group import hypervisor_group
from weighbridge.features.guests.network import tap_of
from weighbridge.features.guests.resources import (
    SMALLER,
    cpus_of,
    guests_of,
    lacking_memory,
    memory_of,
    memory_problems,
    reserved,
)
from weighbridge.features.guests.site import GuestSite
from weighbridge.features.guests.uml import UmlMachine
from weighbridge.linux.process import most_open_files, mounted_by
from weighbridge.model.environment import Environment, EnvironmentOptions, Needs
from weighbridge.model.facts import DISK_CACHE
from weighbridge.model.isolation import Layer
from weighbridge.model.plugin import Durability, Readiness
from weighbridge.model.site import Site, SiteRequest

LAYER = Layer("user-mode Linux")
_NO_NETWORK = "network: none cannot carry this workload: use network: bridge, as root (weigh: --in uml-bridge)"
_LONGEST_NAME = 63
"""Bytes of a guest's name (arch/um/os-Linux/umid.c)."""
_UNSAFE = frozenset(' \t\n"\\,')
"""Characters that the command line of a kernel cannot have in a path."""


class UmlOptions(EnvironmentOptions):
    """The guest's root filesystem and network. It has one processor; its memory comes from the study's ``resources``.

    ``root: disk`` is the same disk as in ``qemu``; only root can create it. With ``root: folder`` the guest's kernel
    reads the root filesystem in its folder on the host (hostfs). This needs no root, and works with this machine's
    own programs. The guest's disk driver acknowledges a flush and does nothing (Linux 6.1). With
    ``cache: writethrough`` data is safe all the same, because the host syncs each write. ``network: bridge`` is a tap
    on a bridge of the run's own, which needs root; with ``attach: interface`` the host's interface is a port of it.
    """

    root: Annotated[
        Literal["disk", "folder"],
        Field(description="The root filesystem: a disk image, or the folder on the host (hostfs)"),
    ] = "disk"
    cache: Annotated[
        Literal["writethrough", "unsafe"],
        Field(description="How the host caches the data disk: it syncs each write, or ignores flushes"),
    ] = "writethrough"
    network: Annotated[Literal["bridge", "none"], Field(description="A tap on a bridge created for the run")] = (
        "bridge"
    )
    attach: Annotated[Literal["interface"] | None, Field(description="Add the host's interface to the bridge")] = None


class Uml(Environment):
    """A guest of user-mode Linux with the kernel that the distribution packages, without an init system."""

    kind = "uml"
    group = "virtual machines"
    summary = "user-mode Linux, a second kernel with one processor that needs neither KVM nor emulation"
    options = UmlOptions
    mounts = frozenset({"folder"})
    shares_storage = False
    shares_root = True
    storage = "directory"
    opening_s = 2.0
    programs: ClassVar = (uml.PROGRAM, *disk.PROGRAMS, "ip")
    architectures: ClassVar = (X86_64.name,)

    def disk_durability(self, options: UmlOptions) -> Durability:
        """Return that ``cache: unsafe`` acknowledges a flush and does nothing."""
        return "none" if options.cache == "unsafe" else "synchronous"

    def check(self, options: Any, needs: Needs) -> list[str]:
        """Return what the guest's network does not reach, and why the guest cannot have its root filesystem."""
        problems = []
        if not all(host.here and not host.own_kernel for host in needs.hosts.values()):
            problems.append("its files are on this machine: put its roles on local or testbed hosts")
        if needs.of_this_machine and options.root == "disk":
            problems.append("no disk can be made of this machine's own root filesystem. Use root: folder")
        problems += memory_problems(needs)
        problems += network_problems(options, needs, hosts="testbed hosts")
        return [_NO_NETWORK if each == NO_NETWORK else each for each in problems]

    def ready(self, options: Any | None = None, needs: Needs | None = None) -> Readiness:
        """Return whether the kernel is complete, its memory has room, and this user can create disk and network."""
        try:
            uml.installed()
        except Unavailable as missing:
            return Readiness(False, str(missing), "reinstall it")
        memory, guests = (memory_of(needs.resources), guests_of(needs)) if needs is not None else (0, 1)
        if lacking := uml.without_room(memory, guests) or (lacking_memory(needs) if needs is not None else None):
            return lacking
        if os.geteuid() == 0:
            return Readiness(True)
        if options is not None and options.network == "bridge":
            return Readiness(False, "only root can create bridges and taps", "run as root, or set network: none")
        if options is not None and options.root == "folder":
            return Readiness(True)
        for_root = "network: bridge needs root; " if options is None else ""
        return Readiness(True, f"{for_root}only root can create its disk, which is not cached yet (or root: folder)")

    def weighed_in(self) -> Mapping[str, Mapping[str, Any]]:
        """Return the guest without a network, which works for every user, and the one that a server can use."""
        return {"uml": {"root": "folder", "network": "none"}, "uml-bridge": {"root": "folder"}}

    @contextmanager
    def open(self, options: Any, request: SiteRequest) -> Iterator[Site]:
        """A guest in a control group of its own, which has the kernel and every process of the guest."""
        if options.attach:
            request = replace(request, host=request.host.dedicated_host("ports"))
        with ExitStack() as stack:
            group, refused = hypervisor_group(stack, request)
            machine, notes = _machine(options, request, stack)
            launcher = stack.enter_context(booted(machine, request, group, machine.sealed(as_root=request.host.root)))
            notes |= {f"not honoured: {limit}": why for limit, why in refused.items()}
            own = "127.0.0.1" if machine.network is None else machine.network.guest_address
            has_data = machine.data is not None
            site = UmlSite(request, launcher, group, (own, own), LAYER, notes, has_data=has_data)
            try:
                yield site
            finally:  # frozen, its launcher would not hear that it is to end
                site.thaw()


class UmlSite(GuestSite):
    """A guest of user-mode Linux."""

    def guest_meters(self) -> Mapping[str, float]:
        """Return its own CPU time. Its kernel does not see that others have the CPU, so its steal is always 0."""
        return {name: value for name, value in super().guest_meters().items() if name != "guest_steal_s"}


def _machine(options: Any, request: SiteRequest, stack: ExitStack) -> tuple[UmlMachine, dict[str, str]]:
    run, host, userland = request.run, request.host, request.userland
    guest_kernel = run.share("kernel of user-mode Linux", lambda: nullcontext(uml.installed()))
    memory = memory_of(request.limits)
    stack.enter_context(reserved(memory, host, run, SMALLER))
    of_folder = options.root == "folder"
    root = Path(host.userland(userland)) if of_folder else disk.ensure(userland, run.cache, run.say)
    data = data_disk.of_site(request, stack)
    machine = UmlMachine(
        name=mounted_by(run.id),
        site=f"uml-{request.name}"[:_LONGEST_NAME],
        ramdisk=ramdisk.ensure(guest_kernel, run.cache, run.say),
        library=uml.library(run.cache, run.say),
        memory=memory,
        root=root,
        of_folder=of_folder,
        layered=userland.layered,
        data=None if data is None else Path(data),
        synced=options.cache == "writethrough",
        network=None
        if options.network == "none"
        else tap_of(request, attached=bool(options.attach), made_first=True),
        open_files=most_open_files(),
    )
    for path in (machine.root, machine.layered, machine.data or ""):
        if unusable := _UNSAFE & {*str(path)}:
            raise Unavailable(
                f"user-mode Linux cannot use the path {path} because it contains {min(unusable)!r}: move it"
            )
    notes = {
        "virtual CPUs": "1",
        "memory": f"{memory >> 20} MiB",
        "network": "bridge, vector" if machine.network is not None else "none",
        "root filesystem": "folder of the host (hostfs)" if of_folder else "disk",
        "not covered: files of the host": "the guest's root can read them (hostfs), but not write to them",
    }
    if machine.data is not None:
        notes[DISK_CACHE] = options.cache
    if (cpus := cpus_of(request.limits, host)) > 1:
        notes["not honoured: CPUs"] = f"user-mode Linux has one processor, not {cpus}"
    if request.limits.memory is None:
        notes["not honoured: no limit of memory"] = f"a guest has a fixed size of {memory >> 20} MiB"
    return machine, notes


PLUGIN = Uml()
