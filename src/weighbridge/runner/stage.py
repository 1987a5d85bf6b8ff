"""The setting of one trial: its sites, their hosts and machines, and the network between them."""

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field

from weighbridge.linux.cpus import cpus_online
from weighbridge.linux.kernel_files import read_here
from weighbridge.meters.machines import Idle, Read
from weighbridge.meters.meter import Meter
from weighbridge.model.command import Command, ProcessDefaults, Running
from weighbridge.model.host import HERE, Group, Host, NetworkLink
from weighbridge.model.openings import Openings, StartTimes
from weighbridge.model.site import Site, SiteEntry
from weighbridge.model.study import Role
from weighbridge.model.workload import Endpoint


@dataclass(frozen=True, slots=True)
class StageMachine:
    """One machine: its CPUs, the roles on it, and the function that reads its files."""

    cpus: int
    roles: tuple[Role, ...]
    """Empty if it only has guests that contain sites; its disturbances still affect the trial."""
    read: Read = read_here
    hypervisors: Mapping[str, Group] = field(default_factory=dict)
    """The control groups of the hypervisors on it that contain the sites' hosts, by the place of their readings."""


@dataclass(frozen=True, slots=True)
class RoleSetup:
    """The setup of a role in a trial: its CPUs, whether it is in the environment, how its programs start."""

    cpus: int | None = None
    """The number of CPUs that its processes can use; None if unknown."""
    inside: bool = True
    process: ProcessDefaults = field(default_factory=ProcessDefaults)
    """The defaults with which its programs start in their userland."""


@dataclass(frozen=True, slots=True)
class DataDisks:
    """The disks that have the data of sites."""

    servers: tuple[Host, ...] = ()
    """The hosts with servers of the sites' storage, if they are not the sites' own."""
    written: tuple[Host, ...] = ()
    """All hosts of the run on which trials write: dirty pages of earlier trials are written first."""
    throttle: Callable[[], None] = lambda: None
    """Limits the disks to the speed at which the workload is measured, after its data are prepared."""


@dataclass(frozen=True, slots=True)
class Finish:
    """A command for the end of one site, with its files. ``role`` has a number if there are several sites."""

    role: str
    site: Site
    command: Command
    files: Mapping[str, bytes]
    modes: Mapping[str, int]
    files_digest: str


AtEnd = Callable[[Finish], None]


@dataclass(frozen=True, slots=True)
class Stage:
    """The sites and endpoints of one workload in one environment, with their machines and meters."""

    sites: Mapping[Role, Site]
    endpoints: Mapping[Role, Endpoint]
    machines: Mapping[str, StageMachine] = field(default_factory=dict)
    """The machines whose state flags the trial, by the name that hosts use: "host" is this machine."""
    parts: Mapping[Role, RoleSetup] = field(default_factory=dict)
    meters: Mapping[str, Meter] = field(default_factory=dict)
    further: tuple[Site, ...] = ()
    """The other sites in which the measured program runs at the same time."""
    open_site: Callable[[Openings], AbstractContextManager[Site]] | None = None
    """Opens one more site like the measured one, with the ports and the image of a request; it belongs to the
    caller."""
    start_on_host: Callable[[Command, SiteEntry], Running] | None = None
    """Starts the launcher on the measured site's host, or on this machine, with the words of a command."""
    prepared: set[tuple[str, ...]] = field(default_factory=set)
    """The preparations that were made: a site's name with the command. The first trial adds to it."""
    start_s: StartTimes = field(default_factory=dict)
    """The seconds to start and close a fresh site. The first trial adds to it."""
    data: DataDisks = field(default_factory=DataDisks)
    at_end: AtEnd = lambda _: None
    """Notes a command to run in the trial's sites before they are closed."""
    idle: Mapping[str, Idle] = field(default_factory=dict)
    """The use of each machine while no site runs; if it is empty, machines are not metered."""
    require_supporting_services: Callable[[], None] = lambda: None
    """Raises EnvironmentLost if a supporting service no longer runs as it was started."""
    own_cpu_limits: bool = False
    """Whether environments of the study differ in their CPU limits; the report then shows the throttled times."""
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
        """Return the setup of a role."""
        return self.parts.get(role, RoleSetup())

    def started(self, role: Role, command: Command) -> Command:
        """Return the command as a role's program is started in its userland."""
        return self.part(role).process.of(command)

    def sites_of(self, role: Role) -> tuple[Site, ...]:
        """Return the sites in which a role's program runs."""
        return (self.sites[role], *(self.further if role == self.measured else ()))

    @property
    def counted(self) -> bool:
        """Whether the machines' counters include everything that the sites do; if not, machines give no figures."""
        return all(site.counted for site in self.sites.values())

    @property
    def working(self) -> dict[str, StageMachine]:
        """The machines that sites are on."""
        return {name: machine for name, machine in self.machines.items() if machine.roles}

    def shares(self, machine: StageMachine) -> bool:
        """Return whether the roles on a machine share CPUs."""
        return sum(self.part(role).cpus or 0 for role in machine.roles) > machine.cpus

    @property
    def links(self) -> tuple[NetworkLink, ...]:
        """The cables with a rate, of hosts (each once) and of sites."""
        hosts = {site.host.name: site.host for site in self.sites.values()}
        readers = [read for host in hosts.values() if (read := host.capabilities.link) is not None]
        of_hosts = [link for read in readers if (link := read()) is not None]
        return (*of_hosts, *(link for site in self.sites.values() for link in site.links))


def machines_of(sites: Mapping[Role, Site], local_read: Read) -> dict[str, StageMachine]:
    """Return the machines with sites, and this one if it has guests with sites; ``local_read`` reads this one."""
    machines: dict[str, StageMachine] = {}
    cpus: dict[str, set[int]] = {}
    """The CPUs of all hosts of each machine: containers can have different CPUs."""
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
