"""Where one trial takes place: its sites, their hosts and machines, and what is between them."""

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field

from weighbridge.linux.cpus import cpus_online
from weighbridge.meters.machines import Idle, Read, read_here
from weighbridge.meters.meter import Meter
from weighbridge.model.command import Command, ProcessDefaults
from weighbridge.model.host import HERE, Group, Host, NetworkLink
from weighbridge.model.site import Site
from weighbridge.model.study import Role
from weighbridge.model.workload import Endpoint


@dataclass(frozen=True, slots=True)
class StageMachine:
    """One machine: how many CPUs it has, which roles are on it, and who reads its files."""

    cpus: int
    roles: tuple[Role, ...]
    """Empty where it only has guests that sites are in: what befalls it befalls the trial."""
    read: Read = read_here
    hypervisors: Mapping[str, Group] = field(default_factory=dict)
    """The control groups on it of the hypervisors that hosts of the sites are in, by the place of their readings."""


@dataclass(frozen=True, slots=True)
class RoleSetup:
    """How a role takes part in a trial: its CPUs, whether it is in the environment, how its programs start."""

    cpus: int | None = None
    """The CPUs on which its processes may run; None: not known."""
    inside: bool = True
    """Whether it is in the environment."""
    process: ProcessDefaults = field(default_factory=ProcessDefaults)
    """What its programs are started with in their userland."""


@dataclass(frozen=True, slots=True)
class DataDisks:
    """The disks that have the data of sites."""

    servers: tuple[Host, ...] = ()
    """The hosts on which servers of the sites' storage are, where these are not the sites' own."""
    written: tuple[Host, ...] = ()
    """The hosts, all of the run's, on which trials write: what an earlier one left to be written is written first."""
    throttle: Callable[[], None] = lambda: None
    """Limits them to the speed at which the workload is measured: what it starts from is there."""


@dataclass(frozen=True, slots=True)
class Finish:
    """A command for the end of one site, and the files with their modes that it may read there.

    ``role``: whose site it is, with its number where there are several.
    """

    role: str
    site: Site
    command: Command
    files: Mapping[str, bytes]
    modes: Mapping[str, int]
    files_digest: str
    """A digest of the files."""


AtEnd = Callable[[Finish], None]


@dataclass(frozen=True, slots=True)
class Stage:
    """Where the roles of one workload are in one environment, on which hosts, and the meters of hosts by name."""

    sites: Mapping[Role, Site]
    endpoints: Mapping[Role, Endpoint]
    machines: Mapping[str, StageMachine] = field(default_factory=dict)
    """Those whose state flags the trial, as hosts name them: "host" is this one, which testbed hosts share."""
    parts: Mapping[Role, RoleSetup] = field(default_factory=dict)
    meters: Mapping[str, Meter] = field(default_factory=dict)
    further: tuple[Site, ...] = ()
    """The sites beside the measured one in which its program runs too, at the same time."""
    open_site: Callable[[], AbstractContextManager[Site]] | None = None
    """Opens one more site like the measured one, which is the caller's."""
    prepared: set[tuple[str, ...]] = field(default_factory=set)
    """The sites' names, each with a command that has made there what trials start from: added to by the first."""
    data: DataDisks = field(default_factory=DataDisks)
    at_end: AtEnd = lambda _: None
    """Takes what is run in its sites before these are closed."""
    idle: Mapping[str, Idle] = field(default_factory=dict)
    """What each machine does while no site runs; empty where nobody looked, and then machines are not metered."""
    require_supporting_services: Callable[[], None] = lambda: None
    """Raises EnvironmentLost if a supporting service no longer runs as it was started."""
    own_cpu_limits: bool = False
    """Whether environments of the study differ in their CPU limits: then how these held programs back is told."""
    polled: bool = False
    """Whether the idle CPUs of this machine poll: a hypervisor's share of CPU time is then partly theirs."""

    @property
    def measured(self) -> Role:
        """The role whose program is measured."""
        return list(self.sites)[-1]

    @property
    def hosts(self) -> dict[Role, str]:
        """The name of each role's host."""
        return {role: site.host.name for role, site in self.sites.items()}

    def part(self, role: Role) -> RoleSetup:
        """What a role has beside its sites."""
        return self.parts.get(role, RoleSetup())

    def started(self, role: Role, command: Command) -> Command:
        """Return the command as a role's program is started in its userland."""
        return self.part(role).process.of(command)

    def sites_of(self, role: Role) -> tuple[Site, ...]:
        """The sites in which a role's program runs."""
        return (self.sites[role], *(self.further if role == self.measured else ()))

    @property
    def counted(self) -> bool:
        """Whether the machines' counters have all that the sites do: else no figure of a whole machine is one."""
        return all(site.counted for site in self.sites.values())

    @property
    def working(self) -> dict[str, StageMachine]:
        """The machines that sites are on."""
        return {name: machine for name, machine in self.machines.items() if machine.roles}

    def shares(self, machine: StageMachine) -> bool:
        """Whether the roles on a machine share CPUs."""
        return sum(self.part(role).cpus or 0 for role in machine.roles) > machine.cpus

    @property
    def links(self) -> tuple[NetworkLink, ...]:
        """The cables with a rate: of the hosts, each once, and of the sites."""
        hosts = {site.host.name: site.host for site in self.sites.values()}
        cables = [cable for host in hosts.values() if (cable := host.capabilities.cable) is not None]
        of_hosts = [link for cable in cables if (link := cable.link()) is not None]
        return (*of_hosts, *(link for site in self.sites.values() for link in site.links))


def machines_of(sites: Mapping[Role, Site], local_read: Read) -> dict[str, StageMachine]:
    """The machines that sites are on, and this one where sites are in guests on it; ``local_read`` reads this one."""
    machines: dict[str, StageMachine] = {}
    cpus: dict[str, set[int]] = {}
    """Those of all its hosts: containers may have some each."""
    groups = ((site.host.name, site.host.capabilities.hypervisor) for site in sites.values())
    hypervisors = {f"hypervisor of host {name}": group for name, group in groups if group is not None}
    for role, site in sites.items():
        name, mine = site.host.machine, site.host.machine == HERE
        cpus[name] = cpus.get(name, {*cpus_online()} if mine else set()) | {*site.host.cpus_online()}
        others, read = (machines[name].roles, machines[name].read) if name in machines else ((), site.host.read)
        read = local_read if mine else read
        machines[name] = StageMachine(len(cpus[name]), (*others, role), read, hypervisors if mine else {})
    if hypervisors and HERE not in machines:
        machines[HERE] = StageMachine(len(cpus_online()), (), local_read, hypervisors)
    return machines
