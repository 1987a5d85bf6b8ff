"""Where one trial takes place: its sites, their hosts and machines, and what is between them."""

from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field

from weighbridge.linux.cpus import cpus_online
from weighbridge.meters.machines import Idle, Read, read_here
from weighbridge.meters.meter import Meter
from weighbridge.model.command import Command, ProcessDefaults
from weighbridge.model.host import HERE, Group, Host, Link
from weighbridge.model.site import Site
from weighbridge.model.study import Role
from weighbridge.model.workload import Endpoint
from weighbridge.runner.finishing import AtEnd


@dataclass(frozen=True, slots=True)
class Machine:
    """One machine: how many CPUs it has, which roles are on it, and who reads its files."""

    cpus: int
    roles: tuple[Role, ...]
    read: Read = read_here
    hypervisors: Mapping[str, Group] = field(default_factory=dict)
    """The control groups on it of the hypervisors that hosts of the sites are in, by the place of their readings."""


@dataclass(frozen=True, slots=True)
class Stage:
    """Where the roles of one workload are in one environment, on which hosts, and the meters of hosts by name."""

    sites: Mapping[Role, Site]
    endpoints: Mapping[Role, Endpoint]
    machines: Mapping[str, Machine]
    """The machines that the sites are on: "host" is this one, which testbed hosts share, "host NAME" another."""
    hosts: Mapping[Role, str] = field(default_factory=dict)
    meters: Mapping[str, Meter] = field(default_factory=dict)
    prepared: set[tuple[str, ...]] = field(default_factory=set)
    """The sites' names, each with a command that has made there what trials start from: added to by the first."""
    cpus: Mapping[str, int] = field(default_factory=dict)
    """The CPUs on which the processes of each site may run."""
    inside: frozenset[Role] = frozenset({"server", "client", "solo"})
    """The roles that are in the environment."""
    links: tuple[Link, ...] = ()
    """The cables with a rate, of the sites and of their hosts."""
    below: Mapping[str, Machine] = field(default_factory=dict)
    """This machine, where no site is on it but their hosts are guests on it: what befalls it befalls the trial."""
    idle: Mapping[str, Idle] = field(default_factory=dict)
    """What each machine does while no site runs; empty where nobody looked, and then machines are not metered."""

    open_site: Callable[[], AbstractContextManager[Site]] | None = None
    """Opens one more site like the measured one, which is the caller's."""
    further: tuple[Site, ...] = ()
    """The sites beside the measured one in which its program runs too, at the same time."""
    storage_servers: tuple[Host, ...] = ()
    """The hosts on which servers of the sites' storage are, where these are not the sites' own."""
    written: tuple[Host, ...] = ()
    """The hosts, all of the run's, on which trials write: what an earlier one left to be written is written first."""
    hold_back: Callable[[], None] = lambda: None
    """Limits the disks of the data to the speed at which the workload is measured: what it starts from is there."""
    at_end: AtEnd = lambda _: None
    """Takes what is run in its sites before these are closed."""
    process: Mapping[Role, ProcessDefaults] = field(default_factory=dict)
    """What the programs of each role are started with in their userland."""
    polled: bool = False
    """Whether the idle CPUs of this machine poll: a hypervisor's share of CPU time is then partly theirs."""

    @property
    def measured(self) -> Role:
        """The role whose program is measured."""
        return list(self.sites)[-1]

    def started(self, role: Role, command: Command) -> Command:
        """Return the command as a role's program is started in its userland."""
        return self.process.get(role, ProcessDefaults()).of(command)

    def sites_of(self, role: Role) -> tuple[Site, ...]:
        """The sites in which a role's program runs."""
        return (self.sites[role], *(self.further if role == self.measured else ()))

    def counters(self) -> dict[Role, Mapping[str, float]]:
        """The counters of each role's sites, added up (`Site.meters`); ``throttled_s`` is their mean."""
        found: dict[Role, Mapping[str, float]] = {}
        for role in self.sites:
            total: Counter[str] = Counter()
            for site in self.sites_of(role):
                total.update(site.meters())
            held_s = (
                {"throttled_s": total["throttled_s"] / len(self.sites_of(role))} if "throttled_s" in total else {}
            )
            found[role] = {**total, **held_s}
        return found

    @property
    def counted(self) -> bool:
        """Whether the machines' counters have all that the sites do: else no figure of a whole machine is one."""
        return all(site.counted for site in self.sites.values())

    @property
    def watched(self) -> Mapping[str, Machine]:
        """The machines whose state flags the trial."""
        return {**self.machines, **self.below}

    def shares(self, machine: Machine) -> bool:
        """Whether the roles on a machine share CPUs."""
        return sum(self.cpus.get(role, 0) for role in machine.roles) > machine.cpus


def links_of(sites: Mapping[Role, Site]) -> tuple[Link, ...]:
    """The cables with a rate: of the hosts, each once, and of the sites."""
    hosts = {site.host.name: site.host for site in sites.values()}
    of_hosts = [link for host in hosts.values() if (link := host.link()) is not None]
    return (*of_hosts, *(link for site in sites.values() for link in site.links))


def machines_of(sites: Mapping[Role, Site], here: Read) -> dict[str, Machine]:
    """The machines that sites are on; ``here`` reads the files of this one."""
    found: dict[str, Machine] = {}
    hypervisors = _hypervisors(sites)
    for role, site in sites.items():
        name, mine = site.host.machine, site.host.machine == HERE
        cpus = len(cpus_online() if mine else site.host.cpus_online())
        others = found[name].roles if name in found else ()
        read = here if mine else site.host.read
        found[name] = Machine(cpus, (*others, role), read, hypervisors if mine else {})
    return found


def below(sites: Mapping[Role, Site], here: Read) -> dict[str, Machine]:
    """This machine, where it is none of those but has guests that sites are in."""
    hypervisors = _hypervisors(sites)
    if not hypervisors or any(site.host.machine == HERE for site in sites.values()):
        return {}
    return {HERE: Machine(len(cpus_online()), (), here, hypervisors)}


def _hypervisors(sites: Mapping[Role, Site]) -> dict[str, Group]:
    hosts = (site.host for site in sites.values())
    return {f"hypervisor of host {host.name}": host.hypervisor for host in hosts if host.hypervisor is not None}
