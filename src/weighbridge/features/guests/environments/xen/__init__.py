"""The environment `xen`: programs run in a Xen domain that boots from the root filesystem.

Its host must be Xen's first domain.
"""

import contextlib
import itertools
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field

from weighbridge.engines.network_problems import network_problems
from weighbridge.errors import EnvironmentLost, Unavailable
from weighbridge.features.guests import data_disk, disk, kernel, ramdisk
from weighbridge.features.guests.architecture import X86_64
from weighbridge.features.guests.environments.xen import console
from weighbridge.features.guests.environments.xen.domain import (
    WORDS,
    Domain,
    DomainInterface,
    DomainType,
    info_of,
    is_ending,
    memory_of_xen,
    reason_of,
    use_of,
)
from weighbridge.features.guests.resources import cpus_of, memory_of, memory_problems
from weighbridge.features.guests.site import GuestSite
from weighbridge.features.guests.xen_domains import CAPABILITIES, FIRST_DOMAIN, WITHIN_FIRST, XenDomains, name_of
from weighbridge.hosts.bridge import bridge_for
from weighbridge.launcher.launch import Launcher
from weighbridge.linux.packages import install_here, install_on
from weighbridge.linux.process import environment_of, most_open_files
from weighbridge.model.command import Command
from weighbridge.model.environment import Environment, EnvironmentOptions, Needs
from weighbridge.model.host import Host, Limits
from weighbridge.model.isolation import Layer
from weighbridge.model.plugin import Readiness
from weighbridge.model.site import Site, SiteRequest

READY_S, EMULATED_READY_S = 120.0, 600.0
"""The time limit for a domain to come up, in seconds. If Xen itself is emulated, that can take minutes."""
_DEVICE_MODEL = "/usr/libexec/xen-qemu-system-i386"
_ANSWER_S, _TOGETHER_S = 60.0, 5.0
_END_S = 120.0
"""The time limit for xl to end a domain. It waits for each device, which takes a minute if Xen is emulated."""
_JOIN = Path(__file__).with_name("join.sh")
_FIXED = (
    "give the first domain a fixed amount of memory (in /etc/default/grub "
    'GRUB_CMDLINE_XEN_DEFAULT="dom0_mem=2G,max:2G", then update-grub and reboot)'
)
"""Else it has all memory, and gives some of it for each domain: native would be measured on a smaller machine."""


def _to_run_xen() -> str:
    return f"{install_here(['xl'])}, {_FIXED}"


class XenOptions(EnvironmentOptions):
    """What kind of domain it is, and how it is reached.

    ``type: pv`` is paravirtualised, ``pvh`` has the processor's virtualisation and Xen's own devices, ``hvm`` also an
    emulated machine beside them. ``network: bridge`` is an interface on a bridge of the run's own, of which with
    ``attach: interface`` the host's interface is a port. Virtual CPUs and memory come from the study's ``resources``.
    """

    type: Annotated[DomainType, Field(description="Domain type")] = "pvh"
    network: Annotated[
        Literal["bridge", "none"], Field(description="An interface on a bridge created for the run, or none")
    ] = "bridge"
    attach: Annotated[Literal["interface"] | None, Field(description="Add the host's interface to the bridge")] = None


class XenSite(GuestSite):
    """A running domain. Implements ``Site``. What its drivers cost the host's own domain is not metered."""

    counted = False

    def __init__(self, request: SiteRequest, launcher: Launcher, domain: Domain, notes: Mapping[str, str]) -> None:
        own = domain.interface.guest_address if domain.interface else "127.0.0.1"
        layer = Layer(f"Xen {WORDS[domain.type]}")
        has_data = len(domain.disks) > 1
        super().__init__(request, launcher, None, (own, own), layer, notes, has_data=has_data)
        self.layers = (*(each for each in request.host.layers if each != WITHIN_FIRST), layer)
        self._domain = domain

    def freeze(self) -> None:
        """Pause the domain even if no program is left, because its kernel would continue to write to the disk."""
        if not self._frozen:
            if self._has_data:
                self.run(Command(("sync",), _ANSWER_S))
            self._pause()
            self._frozen = True

    def _pause(self) -> None:
        _xl(self.host, "pause", self._domain.name)

    def _resume(self) -> None:
        _xl(self.host, "unpause", self._domain.name)

    def meters(self) -> Mapping[str, float]:
        """Return the CPU time of the domain's virtual CPUs, to a tenth of a second, and its memory."""
        return use_of(_listed(self.host), self._domain.name)

    def memory(self) -> Mapping[str, int]:
        """Return Xen's own memory: no domain gets any of the first domain's."""
        return memory_of_xen(_xl(self.host, "info"))

    def scope(self) -> Mapping[str, str]:
        """Return no files, because none on the host shows the use of a domain."""
        return {}


class Xen(Environment):
    """A domain with Debian's kernel, whose first process is ours; the launcher is on its console."""

    kind = "xen"
    group = "virtual machines"
    summary = "a Xen domain (PV, PVH or HVM), on a bridge"
    cleanup: ClassVar = (XenDomains(),)
    options = XenOptions
    mounts = frozenset({"folder"})
    shares_storage = False
    storage = "directory"
    opening_s = 3.0
    programs: ClassVar = ("xl", "xenstore-read", *kernel.PROGRAMS, *disk.PROGRAMS, "ip")
    architectures: ClassVar = (X86_64.name,)

    def opens_in_order(self, options: Any) -> str:
        """Return the same name for all options, because ``xl`` creates one domain at a time."""
        return "xen"

    def check(self, options: Any, needs: Needs) -> list[str]:
        """Return what the domain's network does not reach, and which hosts are not Xen's first domain."""
        problems = []
        if not all(host.here and (host.own_kernel or host.this_machine) for host in needs.hosts.values()):
            problems.append(
                "its host must be Xen's first domain: put its roles on guest hosts ('hypervisor: xen') or local"
            )
        return [*problems, *memory_problems(needs), *network_problems(options, needs, hosts="guest hosts")]

    def ready(self, options: Any | None = None, needs: Needs | None = None) -> Readiness:
        """Return whether this machine is Xen's first domain and, for an HVM domain, has its device emulator."""
        with contextlib.suppress(OSError):
            if FIRST_DOMAIN in Path(CAPABILITIES).read_bytes():
                if options is not None and options.type == "hvm" and not Path(_DEVICE_MODEL).exists():
                    return Readiness(False, f"there is no {_DEVICE_MODEL}", install_here([Path(_DEVICE_MODEL).name]))
                return Readiness(True)
        return Readiness(False, "this machine is not Xen's first domain", _to_run_xen())

    def variants(self) -> Mapping[str, Any]:
        """Return options by name: those that need a program of their own."""
        return {"xen, HVM": XenOptions(type="hvm")}

    def needs_virtualisation(self, options: Any | None = None) -> bool:
        """Return whether it does: PV domains do not, and Xen hides the CPU's from its first domain."""
        return (options is None or options.type != "pv") and not Path(CAPABILITIES).exists()

    def unverified(self, options: Any | None = None) -> str:
        """Return what has not been tried outside of an emulated machine."""
        return "tested only on an emulated machine (PV, PVH and HVM domains)"

    @contextmanager
    def open(self, options: Any, request: SiteRequest) -> Iterator[Site]:
        """A domain, which ends with the program that holds it on the host."""
        if options.attach:
            request = replace(request, host=request.host.dedicated_host("ports"))
        _require_xen(options, request.host)
        with ExitStack() as stack:
            domain, notes = _domain(options, request, stack)
            launcher = stack.enter_context(_launcher(domain, request))
            site = XenSite(request, launcher, domain, notes)
            try:
                yield site
            finally:  # paused, its launcher would not hear that it is to end
                with contextlib.suppress(EnvironmentLost, Unavailable):
                    site.thaw()


def _require_xen(options: Any, host: Host) -> None:
    try:
        first = FIRST_DOMAIN in host.read(CAPABILITIES)
    except OSError:
        first = False
    if not first:
        raise Unavailable(
            f"host {host.name} is not Xen's first domain: use a guest host with 'hypervisor: xen', or make it one: "
            f"{_to_run_xen()}"
        )
    if options.type == "hvm" and host.run(Command(("test", "-x", _DEVICE_MODEL), 10)).returncode != 0:
        remedy = install_on(host, [Path(_DEVICE_MODEL).name])
        raise Unavailable(f"host {host.name} has no {_DEVICE_MODEL}: {remedy}")


def _domain(options: Any, request: SiteRequest, stack: ExitStack) -> tuple[Domain, dict[str, str]]:
    run, host = request.run, request.host
    info = info_of(_xl(host, "info"))
    guest_kernel = kernel.ensure(run.cache, run.say)
    root = disk.place_on(host, disk.ensure(request.userland, run.cache, run.say))
    data = data_disk.of_site(request, stack)
    cpus = cpus_of(request.limits, host)
    domain = Domain(
        name=name_of(run.id, next(run.share("numbers of domains", lambda: nullcontext(itertools.count(1))))),
        type=options.type,
        kernel=host.program(guest_kernel.compressed if options.type == "hvm" else guest_kernel.image),
        ramdisk=host.program(ramdisk.ensure(guest_kernel, run.cache, run.say)),
        vcpus=cpus,
        memory=memory_of(request.limits),
        disks=(root, data) if data else (root,),
        script=host.program(_JOIN),
        interface=_interface(options, request),
        cpus=request.limits.cpuset,
        cap=_cap(request.limits, cpus),
        emulated=any(layer.emulated for layer in host.layers),
        open_files=most_open_files(),
    )
    _require_memory(domain, info, host)
    notes = {
        "xen": f"{info.get('xen_version', 'unknown')}, scheduler {info.get('xen_scheduler', 'unknown')}",
        "domain": WORDS[domain.type],
        "virtual CPUs": str(domain.vcpus),
        "memory": f"{domain.memory >> 20} MiB",
        "network": options.network,
        "kernel package": guest_kernel.version,
        "metered": "the domain's virtual CPUs, without the CPU time that its drivers use in the host's own domain",
        "not metered: CPU time of all who worked": "the host's kernel does not account for "
        "domains, so the report has no CPU cost",
    }
    if domain.interface is not None and not domain.interface.offloads:
        notes["offloads"] = "off (the domain's own kernel can still merge received packets, GRO)"
    if request.limits.memory is None:
        notes["not honoured: no limit of memory"] = f"a domain has a fixed size of {domain.memory >> 20} MiB"
    return domain, notes


def _cap(limits: Limits, vcpus: int) -> int | None:
    """Return Xen's cap in percent of a CPU; None if the limit is that of whole virtual CPUs."""
    return None if limits.cpus is None or limits.cpus >= vcpus else max(1, round(100 * limits.cpus))


def _require_memory(domain: Domain, info: Mapping[str, str], host: Host) -> None:
    """Raise Unavailable if Xen's free memory is too little: the first domain is not made to give some up."""
    free = int(info.get("free_memory", 0)) << 20
    if domain.memory > free:
        raise Unavailable(
            f"a domain with {domain.memory >> 20} MiB does not fit on host {host.name}, where Xen has {free >> 20} "
            f"MiB free. Set a smaller limit (resources: memory), or {_FIXED}"
        )


def _interface(options: Any, request: SiteRequest) -> DomainInterface | None:
    if options.network == "none":
        return None
    bridge = bridge_for(request, attached=bool(options.attach))
    disposable = request.host.capabilities.disposable
    offloads = disposable is None or not options.attach or disposable.offloads
    return DomainInterface(bridge.next_port(), bridge, bridge.next_address(), offloads)


@contextmanager
def _launcher(domain: Domain, request: SiteRequest) -> Iterator[Launcher]:
    host, run = request.host, request.run
    text, started_at = Path(console.__file__).read_text(), time.monotonic()
    argv = (*domain.creator, host.python, "-I", "-S", "-c", text, domain.name, domain.config())
    process, stream = host.talk(Command(argv))

    def why() -> str:
        ended = process.wait(_TOGETHER_S) or (is_ending(_listed(host), domain.name) and process.wait(_END_S))
        reason = reason_of(process.stop().stderr)
        silent = f"does not answer, {time.monotonic() - started_at:.0f} s after its start"
        return f"its domain {'ended' if ended else silent}{f': {reason}' if reason else ''}"

    try:
        ready_s = EMULATED_READY_S if domain.emulated else READY_S
        with Launcher(stream, request.title, why, environment_of(run.id), ready_s) as launcher:
            yield launcher
    finally:
        with contextlib.suppress(EnvironmentLost):
            process.wait(_END_S)
            process.stop()
            if use_of(_listed(host), domain.name):
                host.run(Command(("xl", "destroy", domain.name), _END_S))


def _listed(host: Host) -> str:
    return host.run(Command(("xl", "list"), _ANSWER_S)).text


def _xl(host: Host, *words: str) -> str:
    completed = host.run(Command(("xl", *words), _ANSWER_S))
    if completed.returncode != 0:
        raise Unavailable(f"host {host.name}: xl {words[0]}: {completed.last_words}")
    return completed.text


PLUGIN = Xen()
