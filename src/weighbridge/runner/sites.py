"""The sites of a run: opened before the first trial, all but the measured ones frozen, closed at the end."""

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, TypeVar

from weighbridge import registry
from weighbridge.errors import EnvironmentLost, Unavailable
from weighbridge.facts.connection import connection
from weighbridge.facts.path import DatagramPath, probe
from weighbridge.facts.site import about_site, layers_of_site
from weighbridge.meters.machines import Read, read_here
from weighbridge.meters.opened import OpenMeters
from weighbridge.model.command import Transport
from weighbridge.model.decisions import LeftOut
from weighbridge.model.facts import NetworkPath, layers_json
from weighbridge.model.host import Host, RunContext
from weighbridge.model.isolation import OUTSIDE
from weighbridge.model.site import Mount, Neighbourhood, Site, SiteRequest
from weighbridge.model.study import Arm, Cell, Role, Study
from weighbridge.model.userland import Userlands
from weighbridge.model.workload import Endpoint
from weighbridge.runner import companions, site_needs
from weighbridge.runner.finishing import Finishing
from weighbridge.runner.left_out import measured
from weighbridge.runner.limits import cpus_of, limits_of
from weighbridge.runner.machine_use import reader_of
from weighbridge.runner.open_hosts import open_hosts
from weighbridge.runner.room import Room, Written, written
from weighbridge.runner.site_needs import PortKey, first_over, port_key, published_ports, roles_of, transports_of
from weighbridge.runner.site_requests import Key, SiteRequests
from weighbridge.runner.stage import Stage, below, links_of, machines_of
from weighbridge.runner.storage import require_in_force, set_disk_speed, site_storage, storage_facts, writes

REACHED_S = 15.0
"""How long the path between two sites may take to come up: an overlay network learns of its members by gossip."""
Found = TypeVar("Found")


@dataclass(slots=True)
class Sites:
    """Every open site of a run. An environment has one of each role for the clients of each host."""

    study: Study
    run: RunContext
    userlands: Userlands
    meters: OpenMeters
    here: Read = read_here
    """Reads the files of this machine; ``polled``: whose idle CPUs poll."""
    polled: bool = False
    may_leave_out: bool = False
    """Whether an optional environment that cannot be opened is left out: as long as nothing is measured."""
    left_out: list[LeftOut] = field(default_factory=list)
    """Those that were; ``study`` is without them from then on."""
    hosts: Mapping[str, Host] = field(default_factory=dict)
    _open: dict[Key, Site] = field(default_factory=dict)
    _stacks: dict[str, ExitStack] = field(default_factory=dict)
    """What closes the sites of each environment."""
    _payloads: dict[tuple[str, str], DatagramPath] = field(default_factory=dict)
    _paths: dict[tuple[str, str], NetworkPath] = field(default_factory=dict)
    """By environment and host of the client, as the other one."""
    _ports: dict[tuple[str, str], dict[PortKey, int]] = field(default_factory=dict)
    neighbourhood: Neighbourhood | None = None  # once the companions are ready
    _further: dict[Key, list[Site]] = field(default_factory=dict)
    """Those beside the open one of a key, for workloads that run in several at a time."""
    _awake: set[Key] = field(default_factory=set)
    _mounts: dict[Key, list[Mount]] = field(default_factory=dict)
    _prepared: dict[Key, set[tuple[str, ...]]] = field(default_factory=dict)
    _requests: SiteRequests = field(default_factory=SiteRequests)
    _room: Room = field(default_factory=Room)
    finishing: Finishing = field(default_factory=Finishing)

    def open_all(self, stack: ExitStack) -> None:
        """Open every site that the study's workloads need, and freeze it. The stack closes them.

        Raises Unavailable or EnvironmentLost, which leave out an environment that may be missing.
        """
        self.hosts = open_hosts(self.study, self.run)
        if self.study.file.companions:
            self.neighbourhood = companions.start(self.study, self.run, self._host("server"))
        for cell in self.study.cells:
            for arm in self.study.arms_of(cell):
                if transports_of(self.study, arm, cell):
                    # each environment has ports of its own: a published port takes its number on the whole host
                    ports = self._ports.setdefault((arm.name, cell.client), {})
                    if (whose := port_key(cell)) not in ports:
                        taken = site_needs.taken_ports(self.study, self._ports.values())
                        ports[whose] = self._host("server").free_ports(taken)
        for arm in self.study.arms:
            self._open_arm(stack, arm)
        over: dict[tuple[str, str], tuple[Transport, Arm, Cell]] = {}
        for place, arm, cell in first_over(self.study, "udp"):
            over[place] = "udp", arm, cell
            if arm in self.study.arms:  # it was not left out for the clients of another host
                with self._leaving_out(arm):
                    self._payloads[place] = self._wait_until_reachable(arm, cell, "datagram", probe)
        over |= {place: ("tcp", arm, cell) for place, arm, cell in first_over(self.study, "tcp")}
        for place, (transport, arm, cell) in over.items():  # a path that is not known is not measured
            if arm in self.study.arms:
                with self._leaving_out(arm):
                    attempt = partial(connection, transport=transport)
                    self._paths[place] = self._wait_until_reachable(arm, cell, "connection", attempt)

    def _open_arm(self, stack: ExitStack, arm: Arm) -> None:
        cells = [cell for cell in self.study.cells if arm in self.study.arms_of(cell)]
        keys = [self._key(arm, role, cell.client) for cell in cells for role in roles_of(cell)]
        for key in keys:
            if key[0] == OUTSIDE:  # it is of every environment
                self._open_one(stack, key, arm)
        own = self._stacks[arm.name] = stack.enter_context(ExitStack())
        with self._leaving_out(arm):
            for key in keys:
                self._open_one(own, key, arm)
            for cell in cells:
                if cell.sites > 1:
                    self._open_further(own, self._key(arm, "solo", cell.client), cell.sites - 1)

    @contextmanager
    def _leaving_out(self, arm: Arm) -> Iterator[None]:
        """Leave an optional environment out where something cannot be had of it, and close what it opened."""
        try:
            yield
        except (Unavailable, EnvironmentLost) as error:
            if not (self.may_leave_out and arm.optional):
                raise
            self._stacks.pop(arm.name).close()
            every: tuple[dict[Any, Any], ...] = self._open, self._further, self._ports, self._payloads, self._paths
            for noted in every:
                for where in [each for each in noted if each[0] == arm.name]:
                    del noted[where]
            self.left_out.append(LeftOut(environment=arm.name, kind=arm.kind, why=str(error)))
            self.study = measured(self.study, self.left_out)

    def paths(self) -> dict[str, str]:
        """The path of each environment as JSON (`model.facts.NetworkPath`), by "ENVIRONMENT@CLIENT'S HOST"."""
        return {f"{name}@{client}": path.model_dump_json() for (name, client), path in self._paths.items()}

    def _host(self, role: Role, client: str = "") -> Host:
        return self.hosts[(client or self.study.client_hosts[0]) if role == "client" else self.study.server_host]

    def _open_one(self, stack: ExitStack, key: Key, arm: Arm) -> None:
        if key in self._open:
            return
        place, role, client = key
        inside, host, ports = place != OUTSIDE, self._host(role, client), self._ports.get((arm.name, client), {})
        environment = registry.environments()[arm.kind] if inside else registry.the_host()
        storage = site_storage(environment, arm.options if inside else None, self.study, role, self.hosts)
        request = SiteRequest(
            run=self.run,
            host=host,
            name=self._requests.name(key),
            role=role,
            userland=self.userlands.of(role, place),
            limits=limits_of(self.study, role, host),
            ports=published_ports(self.study, arm, ports) if inside and role == "server" else (),
            environment=place,
            apart=self._host("server") is not self._host("client", client),
            storage=storage,
            companions=self.neighbourhood if inside else None,
        )
        apart = f", client on {client}" if len(self.study.client_hosts) > 1 else ""
        self.run.say(f"starting {place} ({role}{apart})")
        options = arm.options if inside else environment.options()
        site = stack.enter_context(self._requests.open(key, environment, options, request))
        self._open[key] = site
        if storage is not None:
            self._mounts[key] = storage.mounts
            require_in_force(storage.mounts, site)
            asked = Written() if role == "client" else written(self.study, arm)
            stack.callback(self._room.claim(site, storage, asked))
        site.freeze()

    def _open_further(self, stack: ExitStack, key: Key, number: int) -> None:
        further = self._further.setdefault(key, [])
        while len(further) < number:
            self.run.say(f"starting {key[0]} ({len(further) + 2} of {number + 1})")
            site = stack.enter_context(self._requests.open_sharing(key))
            further.append(site)
            site.freeze()

    def _at(self, key: Key) -> list[Site]:
        """All sites of a key: the further ones stand beside the first, and wake and rest with it."""
        return [self._open[key], *self._further.get(key, ())]

    def _key(self, arm: Arm, role: Role, client: str) -> Key:
        client = client or next((host for host in self.study.client_hosts if self._has_clients(arm, host)), "")
        if role == "solo":  # it is what the environment is measured with, so it is always inside
            inside = "server" in self.study.file.inside or not self._has_clients(arm, client)
            return arm.name, "server" if inside else "client", client
        return (arm.name if role in self.study.file.inside else OUTSIDE), role, client

    def _has_clients(self, arm: Arm, host: str) -> bool:
        return any(arm in self.study.arms_of(cell) for cell in self.study.cells if cell.client == host)

    def stage(self, arm: Arm, cell: Cell) -> Stage:
        """The thawed sites for one workload in one environment; all others are frozen."""
        keys = {role: self._key(arm, role, cell.client) for role in roles_of(cell)}
        measured, wanted = roles_of(cell)[-1], set(keys.values())
        for site in [site for key in self._awake - wanted for site in self._at(key)]:
            site.freeze()
        for site in [site for key in wanted - self._awake for site in self._at(key)]:
            site.thaw()
        self._awake = wanted
        sites: Mapping[Role, Site] = {role: self._open[key] for role, key in keys.items()}
        for host in {site.host.name: site.host for site in sites.values()}.values():
            host.set_link(limited=cell.link != "none")
        keeper = keys.get("server", keys[measured])
        keepers = [*(site.host for site in self._at(keeper)), *self._storage_servers(wanted)]
        set_disk_speed(keepers, None)
        hosts = {role: site.host.name for role, site in sites.items()}
        meters = self.meters.of({site.host.name: site.host for site in sites.values()}.values())
        cpus: dict[str, int] = {role: cpus_of(self.study, role, site) for role, site in sites.items()}
        inside = frozenset(role for role, (place, _, _) in keys.items() if place != OUTSIDE)
        return Stage(
            sites, self._endpoints(arm, cell, sites), machines_of(sites, self.here), hosts, meters,
            self._prepared.setdefault(keeper, set()), cpus, inside, links_of(sites), polled=self.polled,
            open_site=partial(self._requests.open_beside, keys[measured]), below=below(sites, self.here),
            storage_servers=self._storage_servers(wanted), further=tuple(self._at(keys[measured])[1 : cell.sites]),
            written=self._written() if writes(self.study) else (),
            hold_back=partial(set_disk_speed, keepers, cell.disk_speed), at_end=self.finishing.of(arm.name),
            process={role: self.userlands.of(role, keys[role][0]).process for role in sites},
        )  # fmt: skip

    def _storage_servers(self, keys: Iterable[Key]) -> tuple[Host, ...]:
        mounts = [mount for key in keys for mount in self._mounts.get(key, ())]
        return tuple({host.name: host for mount in mounts for host in mount.servers}.values())

    def _written(self) -> tuple[Host, ...]:
        return (*(site.host for site in self._open.values()), *self._storage_servers(self._open))

    def _endpoints(self, arm: Arm, cell: Cell, sites: Mapping[Role, Site]) -> dict[Role, Endpoint]:
        server = sites.get("server", next(iter(sites.values())))
        client, where = sites.get("client", server), (arm.name, cell.client)
        port = site_needs.port_of(cell, self._ports.get(where, {}))
        at = Endpoint(server.listen, server.address, port, client.address)
        if (payload := self._payloads.get(where)) is not None:
            at = replace(at, client=payload.client, udp_payload=payload.udp_payload)
        ports = {"client": server.reached.get(port, port)}
        return {role: replace(at, port=ports.get(role, port)) for role in sites}

    def _wait_until_reachable(
        self, arm: Arm, cell: Cell, what: str, attempt: Callable[[Site, Site, Mapping[Role, Endpoint]], Found | None]
    ) -> Found:
        """Give what an attempt finds between two roles. In a trial an unreachable server would count as broken."""
        sites = self._sites(arm, cell)
        with ExitStack() as awake:
            for site in sites.values():
                site.thaw()
                awake.callback(site.freeze)
            at = self._endpoints(arm, cell, sites)
            deadline = time.monotonic() + REACHED_S
            while not (found := attempt(sites["server"], sites["client"], at)):
                if time.monotonic() > deadline:
                    raise site_needs.unreached(arm.name, what, at["client"], REACHED_S)
        return found

    def _sites(self, arm: Arm, cell: Cell) -> dict[Role, Site]:
        return {role: self._open[self._key(arm, role, cell.client)] for role in roles_of(cell)}

    def endpoint_of(self, arm: Arm, cell: Cell) -> Endpoint:
        """Where a workload's measured role is in an environment."""
        return [*self._endpoints(arm, cell, self._sites(arm, cell)).values()][-1]

    def layers(self) -> dict[str, str]:
        """The hypervisors of each site that is in some, as JSON (`weighbridge.model.isolation.SiteLayers`)."""
        return {name: layers_json(layers_of_site(site)) for name, _, site in self._named() if site.layers}

    def readers(self) -> dict[str, Read]:
        """Who reads the files of each machine that sites are on."""
        return {site.host.machine: reader_of(site.host, self.here) for site in self._open.values()}

    def rest(self) -> None:
        """Freeze every site."""
        for site in [site for key in self._awake for site in self._at(key)]:
            site.freeze()
        self._awake = set()

    def facts(self) -> dict[str, dict[str, str]]:
        """What is in force in each site, by "environment/role" ("environment/role@HOST" of clients on a host)."""
        found = {}
        for key, (name, role, site) in zip(self._open, self._named(), strict=True):
            site.thaw()
            limits = limits_of(self.study, role, site.host)
            stored = storage_facts(self._mounts.get(key, ()), site, limits) | companions.way(self.study, key[0])
            # unless it has others, as it then says
            found[name] = {"limits": str(limits), **site.facts(), **about_site(site), **stored}
            site.freeze()
        self._awake = set()
        return found

    def _named(self) -> list[tuple[str, Role, Site]]:
        several = len({client for _, _, client in self._open}) > 1
        return [
            (f"{place}/{role}" + (f"@{client}" if several else ""), role, site)
            for (place, role, client), site in self._open.items()
        ]
