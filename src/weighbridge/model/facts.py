"""Facts of sites, hosts and networks as a run keeps them: their keys, and models of those that are more than a text.

Pure: `weighbridge.facts` finds them out.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter

from weighbridge.model.command import Transport
from weighbridge.model.isolation import SiteLayers

KERNEL = "version: kernel"
"""Release of the kernel that a site's programs call: a guest's own, gVisor's, else the host's."""
USERLAND = "userland"
"""The digest of the archive that a site's root folder was made of."""
PROCESSES = "processes of a site"
"""How many processes there may be in it, by its control group and those above."""
FIRST_PROCESS = "first process"
"""The name of the process with the number 1, as a site sees it: its launcher's, an init's, or the machine's own."""
OUTERMOST_GROUP = "outermost control group"
"""In which it competes for CPUs: the kernel divides them among these first."""
LIMITS_ABOVE = "limits of the groups above"
"""What a user's slice, say, leaves to it: beside its own limits."""
CPU_LIMIT, MEMORY_LIMIT = "CPU limit in force", "memory limit in force"
"""What the control groups of a site say, its own and those above: "1 CPU, in each 100 ms", "256 MiB", "none"."""
QUALITY_OF_SERVICE = "quality of service"
"""Of a pod, by its requests and limits: on a busy node a Guaranteed one has a larger share of the CPUs."""
ADDED_CONTAINERS = "containers added"
"""The names of those that a cluster has added to a pod: a mesh's are on the path of its network. Or "none"."""
OPEN_FILES = "open files of a process"
"""How many files a process of the site may have open."""
SHARED_MEMORY = "size of /dev/shm"
"""What it holds: a program that needs more fails with "No space left on device", or ends by SIGBUS."""
SHARED = "/dev/shm"  # noqa: S108 - of a site
MEMORY_FOLDERS = {SHARED: SHARED_MEMORY, "/tmp": "size of /tmp"}  # noqa: S108 - of a site
"""Folders of a site that are in memory -> the fact of their size."""
ULIMIT = "ulimit"
"""The beginning of facts about limits of a site's processes (setrlimit(2)): ``ulimit: stack size``."""
SYSCTL = "sysctl"
"""The beginning of facts about settings of the kernel that a study asks for: ``sysctl net.core.somaxconn``."""
VARIABLES = "variables of the study"
"""Those that a study gives some environment, as the first process of a site has them; "none"."""
ASKED_FOR = "asked for by the study"
"""The fact that names those facts of a site whose values the study gave: their difference is its question."""
NETWORK_DRIVER = "network driver"
DISK_DRIVER = "disk driver"
"""The drivers that a guest's kernel has for its interface, and for the disk of its data."""
NETWORK_QUEUES = "network queues"
"""How many a guest's interface has for packets that arrive, by the guest's own kernel."""
MEMORY_PAGES = "memory pages"
"""Which a hypervisor has for its guest: "ordinary", "huge: 512 MiB of them"; as the host's kernel says it."""
DISK_CACHE = "disk cache"
"""How the host caches a guest's data disk, as the hypervisor says it: QEMU's ``cache`` mode."""
DATA_FILE_SYSTEM = "storage: file system"
"""The kind of file system on which a site's data is, by its own mount table."""
GVISOR_PLATFORM = "gVisor: platform"
GVISOR_NETWORK = "gVisor: network stack"
GVISOR_FILES = "gVisor: direct file access"
GVISOR_LAYERS = "gVisor: own layers"
"""How a sandbox of gVisor's serves its container, by the command line of its process: values of runsc's flags."""
SECCOMP = "seccomp"
"""The filter of system calls that the kernel has for a site's programs: "off", "strict" or "filter"."""
CAPABILITIES = "capabilities"
"""Those in force in a site, by name; "all", "none"."""
NEW_PRIVILEGES = "new privileges"
"""Whether a program may get more by set-user-id: "allowed" or "never" (no_new_privs)."""
APPARMOR = "AppArmor profile"
"""Under which a site is, "unconfined"; absent where the kernel has no AppArmor."""
NAMESPACES = "namespaces"
"""Those that a site has of its own, and not its host's."""
CONFINEMENT = (SECCOMP, CAPABILITIES, NEW_PRIVILEGES, APPARMOR, NAMESPACES)
"""How the kernel confines a site's programs, as the site's own /proc says."""
ASKED_CONFINEMENT = "confinement that was asked for"
"""The fact that names those of `CONFINEMENT` which an environment has by its kind and options: they are its cost."""


def confinement_of_container(*, filtered: bool) -> dict[str, str]:
    """What an engine's container has of `CONFINEMENT` by its kind: a filter too where it is to be ``filtered``.

    Each with the value that must be in force; "" where any is its own.
    """
    return {**dict.fromkeys((CAPABILITIES, APPARMOR, NAMESPACES), ""), **({SECCOMP: "filter"} if filtered else {})}


BRIDGE_NETFILTER = "bridge netfilter"
"""Whether frames that a bridge of the host forwards pass its packet filter: "on", "off", "not in this kernel"."""
CONNECTION_TRACKING = "connection tracking"
"""Whether the host's packet filter tracks connections: "off" with NOTRACK rules, else "on"."""
FILTER_RULES = "further rules of the packet filter"
"""How many rules that match nothing a study has on the host, in front of all others."""
OFFLOADS = "offloads of its interface"
"""Those of TSO, GSO, GRO and checksums that are on at a container's interface; "none"."""
VXLAN_OFFLOADS = "VXLAN offload of the host"
"""Whether its interface takes VXLAN packets that are larger than its MTU: "on", "off"."""

UNPRIVILEGED = "unprivileged"
IN_NAMESPACE = "unprivileged in a user namespace"
"""Whom programs run as that are not root's.

There files of other users and groups are nobody's, so that a write to one may fail that a container allows.
"""
IDLE_CPUS = "idle CPUs"
"""The key of the fact."""
HALT, POLL = "halt", "poll"
"""Its values; in older runs words follow."""


def idle_code(value: str) -> str:
    """Return the code that the fact begins with."""
    return next((code for code in (HALT, POLL) if value.startswith(code)), value)


HOST_DIFFERENCES = "host differences"
"""Scope of the facts: what differs -> a `HostDifference` as JSON; of older runs a sentence."""


class HostDifference(BaseModel):
    """One difference: of a ``fact`` with its value on each host, of a host's clock, or that hosts share CPUs.

    ``beside``: other runs measured on this machine meanwhile; each with its run directory, "" where not known.
    """

    model_config = ConfigDict(frozen=True)
    kind: Literal["fact", "clock", "shared-cpus", "beside"]
    fact: str = ""
    values: tuple[tuple[str, str], ...] = ()
    """Host and value, of CPUs their machine (none: all hosts share this machine's); or run and directory."""
    host: str = ""
    ahead_s: float = 0.0
    """By how many seconds the clock of ``host`` is ahead of this machine's."""


_LAYERS: TypeAdapter[SiteLayers] = TypeAdapter(SiteLayers)


def layers_json(site: SiteLayers) -> str:
    """A site's layers as a run keeps them."""
    return _LAYERS.dump_json(site).decode()


def layers_of(stored: str) -> SiteLayers:
    """The layers that are kept as ``stored``. Raises ValueError where it is something else."""
    return _LAYERS.validate_json(stored, strict=True)


InterfaceKind = Literal["loopback", "bridge", "veth", "tap", "other"]
Translation = Literal["none", "source", "destination", "source and destination", "proxy"]
"""Whose address is another one at the server's end of a connection than at the client's.

``proxy``: a program in between ends the client's connection and makes one of its own to the server.
"""


class Interface(BaseModel):
    """A network interface that the traffic crosses. ``mtu`` is in bytes; ``place`` is a role, or ``host NAME``.

    ``offloads`` are those of TSO, GSO and GRO that are on; None where they could not be read.
    """

    model_config = ConfigDict(frozen=True)
    place: str
    name: str
    kind: InterfaceKind
    mtu: Annotated[int, Field(ge=0)]
    offloads: tuple[str, ...] | None = None


class NetworkPath(BaseModel):
    """How a client reaches a server in one environment, from probes of that very path.

    ``interfaces`` carried the probe's bytes, the client's side first. ``mss`` is the size in bytes of the segments
    that the client's kernel sends on a TCP connection, ``mss_back`` the server's; None for UDP. ``routers`` is how
    many forward the packets. ``hooks`` are the netfilter chains of the hosts (``nat OUTPUT``) whose counters rose
    during the probe, ``rules`` how many of their rules did; None where they could not be read. ``unseen_rules``: how
    many rules the hosts have that count nothing (nftables), so that nobody can tell whether they were crossed.
    ``uncertain``: others sent so much at an end that all of its interfaces are named that may have carried it.
    """

    model_config = ConfigDict(frozen=True)
    transport: Transport
    interfaces: tuple[Interface, ...]
    mss: int | None = None
    mss_back: int | None = None
    routers: int | None = None
    translation: Translation = "none"
    hooks: tuple[str, ...] | None = None
    rules: int | None = None
    unseen_rules: int = 0
    uncertain: bool = False

    @property
    def loopback(self) -> bool:
        """Whether it does not leave the loopback interface."""
        return all(each.kind == "loopback" for each in self.interfaces)

    @property
    def segmentation(self) -> bool | None:
        """Whether packets larger than the MTU go to its interfaces (TSO and GSO); None where that is not known."""
        offloads = [each.offloads for each in self.interfaces if each.offloads is not None]
        return all({"tso", "gso"} <= {*on} for on in offloads) if offloads else None

    @property
    def mtu(self) -> int | None:
        """The smallest MTU of its interfaces, in bytes; None where none is known."""
        return min((each.mtu for each in self.interfaces), default=None)


InterruptCounts = Mapping[tuple[int, str, int], int]
"""By the number of the interrupt, its device and the CPU: how often, since the machine was started."""


@dataclass(frozen=True, slots=True)
class InterruptRate:
    """How often a device interrupted a CPU in a second."""

    number: int
    device: str
    cpu: int
    per_s: float


def interrupts_of(text: str) -> InterruptCounts:
    """Read /proc/interrupts: the rows that have a number, which are devices'. Others are the CPUs' own."""
    head, *rows = text.splitlines() or [""]
    cpus = [int(name) for name in re.findall(r"\bCPU(\d{1,6})\b", head)]
    interrupt_counts: dict[tuple[int, str, int], int] = {}
    for row in rows:
        number, _, rest = row.partition(":")
        counts = rest.split(maxsplit=len(cpus))
        if not number.strip().isdecimal() or len(counts) != len(cpus) + 1 or not all(map(str.isdecimal, counts[:-1])):
            continue
        device = re.split(r"\s{2,}", counts[-1].strip())[-1]
        interrupt_counts |= {
            (int(number), device, cpu): int(count) for cpu, count in zip(cpus, counts[:-1], strict=True)
        }
    return interrupt_counts


def interrupt_rates(
    before: InterruptCounts, after: InterruptCounts, seconds: float, least_per_s: float
) -> tuple[InterruptRate, ...]:
    """Give which came more often than that between two readings, the most frequent first."""
    rates = [
        InterruptRate(*where, (count - before[where]) / seconds) for where, count in after.items() if where in before
    ]
    return tuple(sorted((each for each in rates if each.per_s >= least_per_s), key=lambda each: -each.per_s))
