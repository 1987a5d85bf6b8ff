"""Facts as a run stores them: their keys, and models of structured facts. Pure: `weighbridge.facts` collects them."""

from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter

from weighbridge.model.command import Transport
from weighbridge.model.isolation import SiteLayers

KERNEL = "version: kernel"
"""The release of the kernel that a site's programs use: a guest's, gVisor's, or the host's."""
USERLAND = "userland"
"""The digest of the archive from which a site's root folder was made."""
PROCESSES = "processes of a site"
"""The limit of processes in a site, by its control group and the groups above."""
FIRST_PROCESS = "first process"
"""The name of the process with the number 1 in a site: a launcher, an init, or the machine's own."""
OUTERMOST_GROUP = "outermost control group"
"""The outermost control group of a site, which competes for CPUs with the other outermost groups."""
LIMITS_ABOVE = "limits of the groups above"
"""The limits of the control groups above a site, for example of a user's slice."""
ROUTE_TO_SUPPORTING_SERVICES = "way to the companions"
"""The fact of a site with its route to the supporting services."""
CPU_LIMIT, MEMORY_LIMIT = "CPU limit in force", "memory limit in force"
"""The limits of a site by its own control groups and those above: "1 CPU, in each 100 ms", "256 MiB", "none"."""
QUALITY_OF_SERVICE = "quality of service"
"""A pod's quality of service: on a busy node, Guaranteed pods get a larger share of the CPUs."""
ADDED_CONTAINERS = "containers added"
"""The names of containers that a cluster added to a pod, such as a mesh's, which are on the network path; or "none".
"""
OPEN_FILES = "open files of a process"
"""The number of files that a process of the site can have open."""
SHARED_MEMORY = "size of /dev/shm"
"""The size of /dev/shm: a program that needs more fails with "No space left on device", or with SIGBUS."""
SHARED = "/dev/shm"  # noqa: S108 - of a site
MEMORY_FOLDERS = {SHARED: SHARED_MEMORY, "/tmp": "size of /tmp"}  # noqa: S108 - of a site
"""The folders of a site that are in memory -> the fact of their size."""
ULIMIT = "ulimit"
"""The beginning of facts about limits of a site's processes (setrlimit(2)): ``ulimit: stack size``."""
SYSCTL = "sysctl"
"""The beginning of facts about kernel settings that a study requests: ``sysctl net.core.somaxconn``."""
VARIABLES = "variables of the study"
"""The variables that a study sets in any environment, with their values in a site's first process; or "none"."""
ASKED_FOR = "asked for by the study"
"""The fact that names the facts of a site whose values the study sets: their difference is the study's question."""
NETWORK_DRIVER = "network driver"
DISK_DRIVER = "disk driver"
"""The drivers of a guest's kernel for its network interface and for its data disk."""
NETWORK_QUEUES = "network queues"
"""The number of receive queues of a guest's network interface, from the guest's own kernel."""
MEMORY_PAGES = "memory pages"
"""The kind of memory pages that a hypervisor uses for its guest, from the host's kernel: "ordinary", "huge: 512 MiB
of them".
"""
DISK_CACHE = "disk cache"
"""The host's cache mode for a guest's data disk, from the hypervisor: QEMU's ``cache`` mode."""
DATA_FILE_SYSTEM = "storage: file system"
"""The type of the file system with a site's data, from its own mount table."""
GVISOR_PLATFORM = "gVisor: platform"
GVISOR_NETWORK = "gVisor: network stack"
GVISOR_FILES = "gVisor: direct file access"
GVISOR_LAYERS = "gVisor: own layers"
"""How a gVisor sandbox serves its container: values of runsc's flags from the command line of its process."""
RUNTIME, RUNTIME_PROGRAM, RUNTIME_SUPERVISOR = "runtime", "runtime program", "runtime supervisor"
"""The OCI runtime that made a container with its version, its program, and the parent of the first process.

The parent is containerd's shim, or conmon. It notes the program.
"""
SECCOMP = "seccomp"
"""The kernel's system-call filter for a site's programs: "off", "strict" or "filter"."""
CAPABILITIES = "capabilities"
"""The capabilities in force in a site, by name; "all", "none"."""
NEW_PRIVILEGES = "new privileges"
"""Whether set-user-id can give a program more privileges: "allowed" or "never" (no_new_privs)."""
APPARMOR = "AppArmor profile"
"""The AppArmor profile of a site, or "unconfined"; absent if the kernel has no AppArmor."""
NAMESPACES = "namespaces"
"""The namespaces that a site does not share with its host."""
SECCOMP_FILTERS = "seccomp filters"
"""The number of filters that each system call of a site's programs passes."""
BOUNDING_SET = "capabilities that a program can gain"
"""The capabilities that a program of a site can have at most, by name; "all", "none"."""
USER_MAP, GROUP_MAP = "users of the site", "groups of the site"
"""The users and groups of a site as its host sees them: "as on the host", "0 is 1000", "0-9 are 100000-100009"."""
ROOT_MOUNT = "root of the site"
"""The file system of a site's root folder with its restrictions: "ext4, read-only"."""
MOUNTS = "mounts of the site"
"""The number of mounts that a site's programs see."""
ADDITIONAL_RULES = "additional rules"
"""The number of rules that a study adds to a sandbox's own."""
OUTSIDE_WRITES = "writing outside of the policy"
"""The answer to a trial: "refused: Permission denied", "allowed"."""
SHARED_MEMORY_WRITES = "writing to shared memory"
"""The answer to a trial: "refused: Permission denied", "allowed"."""
OUTSIDE_CONNECTIONS = "connecting to a program outside"
"""The answer to a trial: "refused: Connection refused", "allowed"."""
NOT_COVERED = "not covered"
"""The beginning of facts about the parts of the policy that a sandbox does not cover: ``not covered: network``."""
CONFINEMENT = (SECCOMP, CAPABILITIES, NEW_PRIVILEGES, APPARMOR, NAMESPACES)
"""How the kernel confines a site's programs, from the site's own /proc."""
ASKED_CONFINEMENT = "confinement that was asked for"
"""The fact that names the facts of `CONFINEMENT` which an environment's kind and options cause: its cost."""


def confinement_of_container(*, filtered: bool) -> dict[str, str]:
    """Return the facts of `CONFINEMENT` for an engine's container, with a system-call filter if ``filtered``.

    Each has the value that must be in force, or "" if any value belongs to the kind.
    """
    return {**dict.fromkeys((CAPABILITIES, APPARMOR, NAMESPACES), ""), **({SECCOMP: "filter"} if filtered else {})}


IO_URING = "io_uring"
"""Whether a site's programs can use io_uring: "allowed", "refused (ERROR, CAUSE)", "refused (ERROR)", or "not known
(ERROR)" after an error with another cause."""
IO_URING_ALLOWED = "allowed"
IO_URING_REFUSED = "refused"
"""The beginning of the fact if it is refused."""
BRIDGE_NETFILTER = "bridge netfilter"
"""Whether frames that a bridge of the host forwards pass its packet filter: "on", "off", "not in this kernel"."""
CONNECTION_TRACKING = "connection tracking"
"""Whether the host's packet filter tracks connections: "off" with NOTRACK rules, else "on"."""
FILTER_RULES = "further rules of the packet filter"
"""The number of rules on the host, before all others, that match no traffic of the study."""
OFFLOADS = "offloads of its interface"
"""Which of TSO, GSO, GRO and checksum offloads are on at a container's interface; "none"."""
VXLAN_OFFLOADS = "VXLAN offload of the host"
"""Whether the host's interface accepts VXLAN packets that are larger than its MTU: "on", "off"."""

UNPRIVILEGED = "unprivileged"
IN_NAMESPACE = "unprivileged in a user namespace"
"""The user of programs that do not run as root.

In a user namespace, files of other users and groups belong to the overflow user, so a write to one can fail
that a container allows.
"""
IDLE_CPUS = "idle CPUs"
"""The key of the fact."""
HALT, POLL = "halt", "poll"
"""The values of the fact; in older runs, more text follows."""


def idle_code(value: str) -> str:
    """Return the code that the fact begins with."""
    return next((code for code in (HALT, POLL) if value.startswith(code)), value)


HOST_DIFFERENCES = "host differences"
"""The scope of the facts: a difference -> a `HostDifference` as JSON; in older runs, a sentence."""


class HostDifference(BaseModel):
    """A difference between hosts: in a ``fact`` with its value on each host, in a clock, or in shared CPUs.

    ``beside`` lists other runs that measured on this machine at the same time, with their run directories ("" if
    unknown).
    """

    model_config = ConfigDict(frozen=True)
    kind: Literal["fact", "clock", "shared-cpus", "beside"]
    fact: str = ""
    values: tuple[tuple[str, str], ...] = ()
    """Pairs of host and value (for shared CPUs, of host and machine, or none), or of run and directory."""
    host: str = ""
    ahead_s: float = 0.0
    """How many seconds the clock of ``host`` is ahead of this machine's."""


_LAYERS: TypeAdapter[SiteLayers] = TypeAdapter(SiteLayers)


def layers_json(site: SiteLayers) -> str:
    """Return a site's layers as a run stores them."""
    return _LAYERS.dump_json(site).decode()


def layers_of(stored: str) -> SiteLayers:
    """Return the layers that are stored in a text. Raises ValueError if it is something else."""
    return _LAYERS.validate_json(stored, strict=True)


InterfaceKind = Literal["loopback", "bridge", "veth", "tap", "other"]
Translation = Literal["none", "source", "destination", "source and destination", "proxy"]
"""The addresses that differ between the server's and the client's end of a connection.

``proxy`` means that a program in between ends the client's connection and makes its own to the server.
"""


class Interface(BaseModel):
    """A network interface that the traffic crosses. ``mtu`` is in bytes; ``place`` is a role, or ``host NAME``.

    ``offloads`` lists which of TSO, GSO and GRO are on; None if unreadable.
    """

    model_config = ConfigDict(frozen=True)
    place: str
    name: str
    kind: InterfaceKind
    mtu: Annotated[int, Field(ge=0)]
    offloads: tuple[str, ...] | None = None


class NetworkPath(BaseModel):
    """How a client reaches a server in one environment, from probes of that path.

    ``interfaces`` carried the probe's bytes, the client's side first. ``mss`` is the size in bytes of the TCP
    segments that the client's kernel sends, ``mss_back`` the server's; None for UDP. ``routers`` is the number of
    routers.

    ``hooks`` are the netfilter chains of the hosts (``nat OUTPUT``) whose counters rose during the probe, ``rules``
    is the number of their rules whose counters rose; None if unreadable. ``unseen_rules`` is the number of rules
    without counters (nftables), which can have matched unnoticed. ``uncertain`` means that other traffic was so heavy
    that ``interfaces`` lists all possible interfaces of one end.
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
        """Whether it stays on the loopback interface."""
        return all(each.kind == "loopback" for each in self.interfaces)

    @property
    def segmentation(self) -> bool | None:
        """Whether packets larger than the MTU pass its interfaces (TSO and GSO); None if unknown."""
        offloads = [each.offloads for each in self.interfaces if each.offloads is not None]
        return all({"tso", "gso"} <= {*on} for on in offloads) if offloads else None

    @property
    def mtu(self) -> int | None:
        """The smallest MTU of its interfaces, in bytes; None if none is known."""
        return min((each.mtu for each in self.interfaces), default=None)


@dataclass(frozen=True, slots=True)
class InterruptRate:
    """The number of interrupts per second of a CPU by a device."""

    number: int
    device: str
    cpu: int
    per_s: float
