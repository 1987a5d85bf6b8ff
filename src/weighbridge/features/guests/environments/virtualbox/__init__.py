"""The environment `virtualbox`: programs run in a VirtualBox machine that boots from the root filesystem."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal
from uuid import uuid4

from pydantic import Field

from weighbridge.engines.network_problems import FORWARDED_ONE_WAY, network_problems
from weighbridge.errors import Unavailable
from weighbridge.features.guests import data_disk, disk, kernel, medium
from weighbridge.features.guests.architecture import X86_64
from weighbridge.features.guests.environments.virtualbox import commands
from weighbridge.features.guests.environments.virtualbox.commands import (
    DISK_DRIVERS,
    NICS,
    DiskDescriptor,
    Nic,
    VirtualMachine,
)
from weighbridge.features.guests.environments.virtualbox.network import attachment
from weighbridge.features.guests.environments.virtualbox.site import (
    VirtualBox,
    facts_of,
    first_words,
    launcher_in,
    machine_of,
)
from weighbridge.features.guests.group import hypervisor_group
from weighbridge.features.guests.resources import (
    SMALLER,
    cpus_of,
    lacking_memory,
    memory_of,
    memory_problems,
    reserved,
)
from weighbridge.features.guests.site import GuestSite
from weighbridge.features.guests.virtualbox import FOLDERS, VirtualBoxTraces
from weighbridge.linux.packages import install_here
from weighbridge.linux.process import most_open_files
from weighbridge.linux.remedies import load_module
from weighbridge.model.command import Command
from weighbridge.model.environment import Environment, EnvironmentOptions, Needs
from weighbridge.model.isolation import Layer
from weighbridge.model.names import SafeName
from weighbridge.model.plugin import Readiness
from weighbridge.model.site import Site, SiteRequest

LAYER = Layer("VirtualBox")
_DRIVERS = ("crc32c_generic", "ext4", *DISK_DRIVERS, "tcp_diag", "udp_diag")
_DEVICE = Path("/dev/vboxdrv")


class VirtualboxOptions(EnvironmentOptions):
    """The machine's interface and network.

    ``network: bridge`` is a bridged adapter on a bridge of the run's own; with ``attach: interface`` the host's
    interface is a port of it; ``internal`` joins machines alone; ``nat`` is VirtualBox's address translation with
    forwarded ports; ``host-only`` is a network of machines and their host. Virtual CPUs and memory come from the
    study's ``resources``.
    """

    network: Annotated[
        Literal["bridge", "internal", "nat", "host-only", "none"],
        Field(
            description="bridge: created for the run; internal: only between machines; host-only: between machines "
            "and their "
            "host"
        ),
    ] = "bridge"
    attach: Annotated[Literal["interface"] | None, Field(description="Add the host's interface to the bridge")] = None
    nic: Annotated[Nic, Field(description="Network interface of the machine")] = "e1000"


class Virtualbox(Environment):
    """A machine with Debian's kernel, booted from a CD image of ours, without an init system."""

    kind = "virtualbox"
    group = "virtual machines"
    summary = "a VirtualBox machine, with a choice of networks and interfaces"
    cleanup: ClassVar = (VirtualBoxTraces(),)
    options = VirtualboxOptions
    mounts = frozenset({"folder"})
    shares_storage = False
    storage = "directory"
    opening_s = 6.0
    programs: ClassVar = (*kernel.PROGRAMS, *disk.PROGRAMS, *medium.PROGRAMS, "ip")
    architectures: ClassVar = (X86_64.name,)

    def needs_virtualisation(self, options: Any | None = None) -> bool:
        """Return True, because VirtualBox cannot emulate a CPU."""
        return True

    def unverified(self, options: Any | None = None) -> str:
        """Return what has not been tried on a machine that has VirtualBox."""
        return "never tested with a workload: machines were only created, started and removed"

    def opens_in_order(self, options: Any) -> str:
        """Return the same name for all options, because VirtualBox keeps all machines of a user in one list."""
        return "virtualbox"

    def check(self, options: Any, needs: Needs) -> list[str]:
        """Return what the machine's network does not reach, and which hosts have no disk made on this machine."""
        problems, both = [], "client" in needs.inside
        if not all(host.here for host in needs.hosts.values()):
            problems.append("its disk is created on this machine: put its roles on local, testbed or guest hosts")
        problems += memory_problems(needs)
        problems += network_problems(options, needs, hosts="testbed hosts", otherwise=", or network: nat")
        if needs.network and needs.separate_hosts and options.network in ("internal", "host-only"):
            problems.append(f"network: {options.network} cannot be reached from another host. Use nat")
        if needs.network and options.network == "internal" and not both:
            problems.append("network: internal connects only machines. Put the client inside, too")
        if needs.network and options.network == "nat" and both:
            problems.append("network: nat accepts connections only from outside the machine. Put the client outside")
        if needs.server_calls_client and options.network == "nat":
            problems.append(FORWARDED_ONE_WAY)
        return problems

    def ready(self, options: Any | None = None, needs: Needs | None = None) -> Readiness:
        """Return whether VirtualBox, its module and the programs for the boot medium are there, and enough memory."""
        if (lacking := medium.cannot_build()) is not None:
            return Readiness(False, *lacking)
        if not any((Path(folder) / "VBoxManage").exists() for folder in FOLDERS):
            remedy = (
                f"add the section contrib of Debian sid to the package sources, then {install_here(['VBoxManage'])}"
            )
            return Readiness(False, "VirtualBox is not installed", remedy)
        if not _DEVICE.exists():
            return Readiness(False, "VirtualBox's kernel module is not loaded", load_module("vboxdrv"))
        return (lacking_memory(needs) if needs is not None else None) or Readiness(True)

    @contextmanager
    def open(self, options: Any, request: SiteRequest) -> Iterator[Site]:
        """Start a machine whose hypervisor has its own control group, with all its threads."""
        if options.attach:
            request = replace(request, host=request.host.dedicated_host("ports"))
        with ExitStack() as stack:
            group, refused = hypervisor_group(stack, request)
            name = SafeName(f"virtualbox-{request.name}")
            folder = stack.enter_context(request.host.data_folder(request.run, name))
            box = VirtualBox(request.host, request.run, folder, group)
            stack.callback(box.close)
            joined, address = attachment(options, request, box)
            image = kernel.ensure(request.run.cache, request.run.say)
            memory = memory_of(request.limits)
            stack.enter_context(reserved(memory, request.host, request.run, SMALLER))
            machine = VirtualMachine(
                name=request.name,
                folder=str(folder),
                cpus=cpus_of(request.limits, request.host),
                memory=memory,
                medium=request.host.program(medium.ensure(image, request.run.cache, request.run.say)),
                disks=tuple(_disks(request, folder, stack)),
                port=f"{box.meeting}/port",
                console=str(folder / "console"),
                network=joined,
                nic=options.nic,
            )
            stack.enter_context(machine_of(box, machine))
            drivers = (*_DRIVERS, NICS[options.nic][1]) if joined else _DRIVERS
            words = first_words(request.name, machine, drivers, most_open_files())
            launcher = stack.enter_context(launcher_in(box, machine, request, words))
            notes = facts_of(box, machine, refused) | {
                "network": f"{options.network}, {options.nic}" if joined else "none",
                "kernel package": image.version,
            }
            if request.limits.memory is None:
                notes["not honoured: no limit of memory"] = f"a machine has a fixed size of {memory >> 20} MiB"
            own = joined.guest_address if joined else "127.0.0.1"
            site = GuestSite(request, launcher, group, (address, own), LAYER, notes, has_data=len(machine.disks) > 1)
            site.reached = request.reached if options.network == "nat" else {}
            try:
                yield site
            finally:  # frozen, it would not hear that it is to end
                site.thaw()


def _disks(request: SiteRequest, folder: Path, stack: ExitStack) -> Iterator[DiskDescriptor]:
    """Yield the descriptors of the userland's disk and, if the site has data, of a data disk."""
    image = disk.ensure(request.userland, request.run.cache, request.run.say)
    place = disk.place_on(request.host, image)
    yield _described(request, folder / "root.vmdk", place, image.stat().st_size, immutable=True)
    if data := data_disk.of_site(request, stack):
        yield _described(request, folder / "data.vmdk", data, data_disk.SIZE, immutable=False)


def _described(request: SiteRequest, file: Path, place: str, size: int, *, immutable: bool) -> DiskDescriptor:
    text = commands.descriptor(place, size, str(uuid4())).encode()
    completed = request.host.run(Command(("tee", str(file)), 20, stdin=text))
    if completed.returncode != 0:
        raise Unavailable(f"host {request.host.name}: {completed.last_words}")
    return DiskDescriptor(str(file), immutable)


PLUGIN = Virtualbox()
