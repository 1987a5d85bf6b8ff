"""The sites of a run: opened before the first trial, all but the measured ones frozen, closed at the end."""

import re
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from statistics import median
from typing import TypeVar

from weighbridge import registry
from weighbridge.errors import Unavailable
from weighbridge.facts.path import NetworkPath, probe, reached
from weighbridge.hosts.kernel import cpus_in, cpus_online
from weighbridge.meters.opened import OpenMeters
from weighbridge.model.command import Command, Transport
from weighbridge.model.plugin import Endpoint
from weighbridge.model.site import Host, Limits, Link, RunContext, Site, SiteRequest, Userland
from weighbridge.model.study import Arm, Cell, Role, Study
from weighbridge.runner.hosts import open_hosts
from weighbridge.runner.stage import Machine, Stage

OUTSIDE = "outside"
"""Where the roles are that the study does not put inside the environments: natively on the host."""
_ALLOWED = "ulimit -n; cat /proc/sys/net/core/somaxconn"
REACHED_S = 15.0
"""How long the path between two sites may take to come up: an overlay network learns of its members by gossip."""
Found = TypeVar("Found")


def limits_of(study: Study, role: Role, host: Host) -> Limits:
    """The limits of a role's sites on a host. Unavailable where the study pins to a CPU that is not there."""
    resources, online = study.file.resources, host.cpus_online()
    cpuset = host.cpuset
    if resources.pin == "spread":
        cpuset = str(online[(0 if role != "client" else 1) % len(online)])
    elif resources.pin is not None:
        cpuset = resources.pin.get("client" if role == "client" else "server", cpuset)
    for cpu in cpus_in(cpuset or ""):
        if cpu not in online:
            raise Unavailable(f"the study pins {role} to CPU {cpu}, but host {host.name} has only {online}")
    period_us = round((resources.cpu_period or 0.1) * 1e6)
    return Limits(resources.cpus, resources.memory, cpuset, period_us)


@dataclass(slots=True)
class Sites:
    """Every open site of a run, by (environment or "outside", role)."""

    study: Study
    run: RunContext
    userland: Userland
    meters: OpenMeters
    hosts: Mapping[str, Host] = field(default_factory=dict)
    _open: dict[tuple[str, Role], Site] = field(default_factory=dict)
    _paths: dict[str, NetworkPath] = field(default_factory=dict)
    _ports: dict[str, dict[str, int]] = field(default_factory=dict)
    _start_cpu_s: dict[tuple[str, Role], float] = field(default_factory=dict)
    _awake: set[tuple[str, Role]] = field(default_factory=set)
    _prepared: dict[tuple[str, Role], set[tuple[str, ...]]] = field(default_factory=dict)

    def open_all(self, stack: ExitStack) -> None:
        """Open every site that the study's workloads need, and freeze it. The stack closes them."""
        self.hosts = open_hosts(self.study, self.run)
        networked = dict.fromkeys(cell.workload for cell in self.study.cells if _networked(cell))
        server_host = self._host("server")
        for arm in self.study.arms:
            # each environment has ports of its own: a published port takes its number on the whole host
            ports = self._ports[arm.name] = {}
            for name in networked:
                ports[name] = server_host.free_ports(self._taken())
            for role in self._roles():
                self._open_one(stack, self._key(arm, role), arm)
        for cell in [cell for cell in self.study.cells if "udp" in registry.workloads()[cell.kind].transports][:1]:
            for arm in self.study.arms:
                self._paths[arm.name] = self._tried(arm, cell, "datagram", probe)
        for cell in [cell for cell in self.study.cells if registry.workloads()[cell.kind].load][:1]:
            for arm in self.study.arms:
                self._tried(arm, cell, "connection", reached)

    def _host(self, role: Role) -> Host:
        return self.hosts[self.study.host_of(role)]

    def _apart(self) -> bool:
        return self._host("server") is not self._host("client")

    def _taken(self) -> set[int]:
        return {port for ports in self._ports.values() for port in ports.values()}

    def _published(self, arm: Arm) -> tuple[tuple[Transport, int], ...]:
        """Every port on which clients reach the servers of an environment."""
        found: dict[tuple[Transport, int], None] = {}
        for cell in self.study.cells:
            workload, port = registry.workloads()[cell.kind], self._ports[arm.name].get(cell.workload, 0)
            for transport in workload.transports:
                found[transport, port] = None
                if workload.has_data_port:
                    found[transport, port + 1] = None
        return tuple(found)

    def _open_one(self, stack: ExitStack, key: tuple[str, Role], arm: Arm) -> None:
        if key in self._open:
            return
        place, role = key
        inside, host = place != OUTSIDE, self._host(role)
        kind = arm.kind if inside else "native"
        environment = registry.environments()[kind]
        request = SiteRequest(
            run=self.run,
            host=host,
            name=f"{len(self._open)}-{re.sub('[^A-Za-z0-9]+', '-', place).strip('-')}-{role}",
            role=role,
            userland=self.userland,
            limits=limits_of(self.study, role, host),
            ports=self._published(arm) if inside and role == "server" else (),
            environment=place,
            apart=self._apart(),
            data=role != "client" and any(_needs_data(cell) for cell in self.study.cells),
        )
        self.run.say(f"opening {place} ({role})")
        options = arm.options if inside else environment.options()
        site = stack.enter_context(environment.open(options, request))
        self._open[key] = site
        site.freeze()

    def _roles(self) -> list[Role]:
        needed = {role for cell in self.study.cells for role in registry.workloads()[cell.kind].roles}
        return ["server", "client"] if "client" in needed else ["server"]

    def _key(self, arm: Arm, role: Role) -> tuple[str, Role]:
        if role == "solo":  # it is what the environment is measured with, so it is always inside
            role = "server" if "server" in self.study.file.inside else "client"
            return arm.name, role if role in self._roles() else "server"
        return (arm.name if role in self.study.file.inside else OUTSIDE), role

    def stage(self, arm: Arm, cell: Cell) -> Stage:
        """The thawed sites for one workload in one environment; all others are frozen."""
        keys = {role: self._key(arm, role) for role in registry.workloads()[cell.kind].roles}
        wanted = set(keys.values())
        for key in self._awake - wanted:
            self._open[key].freeze()
        for key in wanted - self._awake:
            self._open[key].thaw()
        self._awake = wanted
        sites: Mapping[Role, Site] = {role: self._open[key] for role, key in keys.items()}
        for host in {site.host.name: site.host for site in sites.values()}.values():
            host.set_link(limited=cell.link != "none")
        hosts = {role: site.host.name for role, site in sites.items()}
        meters = self.meters.of({site.host.name: site.host for site in sites.values()}.values())
        starts = {role: self._start_cpu_s.get(key, 0.0) for role, key in keys.items()}
        prepared = self._prepared.setdefault(keys.get("server", next(iter(keys.values()))), set())
        cpus: dict[str, int] = {role: self._cpus(role, site) for role, site in sites.items()}
        inside = frozenset(role for role, (place, _) in keys.items() if place != OUTSIDE)
        return Stage(
            sites, self._endpoint(arm, cell, sites), _machines(sites), hosts, meters, starts, prepared, cpus, inside,
            _links(sites),
        )  # fmt: skip

    def _cpus(self, role: Role, site: Site) -> int:
        cpuset = limits_of(self.study, role, site.host).cpuset
        return len(cpus_in(cpuset) if cpuset else site.host.cpus_online())

    def _endpoint(self, arm: Arm, cell: Cell, sites: Mapping[Role, Site]) -> Endpoint:
        server = sites.get("server", next(iter(sites.values())))
        client = sites.get("client", server)
        port, path = self._ports[arm.name].get(cell.workload, 0), self._paths.get(arm.name)
        if path is None:
            return Endpoint(server.listen, server.address, port, client.address)
        return Endpoint(server.listen, server.address, port, path.client, path.udp_payload)

    def _tried(
        self, arm: Arm, cell: Cell, what: str, attempt: Callable[[Site, Site, Endpoint], Found | None]
    ) -> Found:
        """What an attempt finds between two roles: what cannot be reached is told now, and not in each trial.

        A server that takes no connection would also be told as one that broke under its load.
        """
        sites = {role: self._open[self._key(arm, role)] for role in registry.workloads()[cell.kind].roles}
        for site in sites.values():
            site.thaw()
        at = self._endpoint(arm, cell, sites)
        deadline = time.monotonic() + REACHED_S
        while not (found := attempt(sites["server"], sites["client"], at)):
            if time.monotonic() > deadline:
                raise Unavailable(
                    f"environment {arm.name}: no {what} from its client reaches its server at {at.address} "
                    f"(tried for {REACHED_S:.0f} s)"
                )
        for site in sites.values():
            site.freeze()
        return found

    def sizes(self) -> dict[str, str]:
        """The size of what each workload sends in each environment, by "ENVIRONMENT/WORKLOAD", where it has one."""
        found = {}
        for arm in self.study.arms:
            for cell in self.study.cells:
                workload, options = registry.workloads()[cell.kind], self.study.options(arm, cell)
                if not workload.transports:
                    continue
                sites = {role: self._open[self._key(arm, role)] for role in workload.roles}
                size = workload.packet_size(options, self._endpoint(arm, cell, sites))
                probed = " (probed)" if workload.wants_payload(options) else ""
                if size is not None:
                    found[f"{arm.name}/{cell.label}"] = f"{size} B{probed}"
        return found

    def links(self) -> dict[str, str]:
        """Workloads that are measured without the rate limit which the hosts' cables have."""
        limited = any(getattr(options, "link", None) is not None for options in self.study.file.hosts.values())
        without = [cell.workload for cell in self.study.cells if limited and cell.link == "none"]
        return {f"link of {name}": "no rate limit while it is measured" for name in without}

    def durabilities(self) -> dict[str, str]:
        """What a power cut leaves of each workload's data in each environment, by "ENVIRONMENT/WORKLOAD"."""
        pairs = [(arm, cell) for arm in self.study.arms for cell in self.study.cells]
        found = {
            f"{arm.name}/{cell.label}": registry.workloads()[cell.kind].durability(self.study.options(arm, cell))
            for arm, cell in pairs
        }
        return {place: durability for place, durability in found.items() if durability is not None}

    def facts(self) -> dict[str, dict[str, str]]:
        """What is in force in each site, by "environment/role"; the package database is compared between them."""
        found = {}
        for (place, role), site in self._open.items():
            site.thaw()
            done = site.run(Command(("sha256sum", "/var/lib/dpkg/status")))
            packages = " ".join(done.text.split()[:1]) if done.returncode == 0 else f"unreadable: {done.last_words}"
            start_s = self._start_cpu_s[place, role] = _start_cpu_s(site)
            asked = site.run(Command(("sh", "-c", _ALLOWED))).text.split()
            files, backlog = asked if len(asked) == 2 else ("unknown", "unknown")
            own = {
                "packages": packages,
                "CPU time of a start": f"{start_s * 1000:.1f} ms",
                "open files of a process": files,
                "backlog of a listener": f"{backlog} (net.core.somaxconn)",
            }
            found[f"{place}/{role}"] = {**site.facts(), **own}
            site.freeze()
        self._awake = set()
        return found


def _machines(sites: Mapping[Role, Site]) -> dict[str, Machine]:
    """The machines that sites are on; those of testbed hosts are this one."""
    found: dict[str, Machine] = {}
    for role, site in sites.items():
        away = site.host.kind == "ssh"
        name = f"host {site.host.name}" if away else "host"
        cpus = len(site.host.cpus_online() if away else cpus_online())
        others = found[name].roles if name in found else ()
        found[name] = Machine(cpus, (*others, role), site.host.read if away else None)
    return found


def _links(sites: Mapping[Role, Site]) -> tuple[Link, ...]:
    """The cables with a rate: of the hosts, each once, and of the sites."""
    hosts = {site.host.name: site.host for site in sites.values()}
    of_hosts = [link for host in hosts.values() if (link := host.link()) is not None]
    return (*of_hosts, *(link for site in sites.values() for link in site.links))


def _start_cpu_s(site: Site) -> float:
    """CPU seconds that starting a process takes in a site: the median of a few that do nothing."""
    costs = []
    for _ in range(5):
        before = site.meters().get("cpu_s", 0.0)
        site.run(Command(("true",)))
        costs.append(max(0.0, site.meters().get("cpu_s", 0.0) - before))
    return median(costs)


def _needs_data(cell: Cell) -> bool:
    return registry.workloads()[cell.kind].needs_data(cell.options)


def _networked(cell: Cell) -> bool:
    return bool(registry.workloads()[cell.kind].transports)
