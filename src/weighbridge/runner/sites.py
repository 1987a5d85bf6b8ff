"""The sites of a run: opened before the first trial, all but the measured ones frozen, closed at the end."""

import re
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field

from weighbridge import registry
from weighbridge.errors import Unavailable
from weighbridge.hosts.kernel import cpus_online, free_port
from weighbridge.hosts.local import LocalHost
from weighbridge.model.command import Command, Transport
from weighbridge.model.plugin import Endpoint
from weighbridge.model.site import Host, Limits, RunContext, Site, SiteRequest, Userland
from weighbridge.model.study import Arm, Cell, Role, Study
from weighbridge.runner.trial import Stage

OUTSIDE = "outside"
"""Where the roles are that the study does not put inside the environments: natively on the host."""


def limits_of(study: Study, role: Role) -> Limits:
    """The limits of a role's sites. Unavailable where the study pins to a CPU that is not here."""
    resources, online = study.file.resources, cpus_online()
    cpuset: str | None = None
    if resources.pin == "spread":
        cpuset = str(online[(0 if role != "client" else 1) % len(online)])
    elif resources.pin is not None:
        cpuset = resources.pin.get("client" if role == "client" else "server")
    for cpu in _cpus(cpuset):
        if cpu not in online:
            raise Unavailable(f"the study pins {role} to CPU {cpu}, but this machine has only {online}")
    period_us = round((resources.cpu_period or 0.1) * 1e6)
    return Limits(resources.cpus, resources.memory, cpuset, period_us)


def _cpus(cpuset: str | None) -> list[int]:
    found: list[int] = []
    for part in (cpuset or "").split(","):
        first, _, last = part.partition("-")
        found += range(int(first), int(last or first) + 1) if first else []
    return found


@dataclass(slots=True)
class Sites:
    """Every open site of a run, by (environment or "outside", role)."""

    study: Study
    run: RunContext
    userland: Userland
    _open: dict[tuple[str, Role], Site] = field(default_factory=dict)
    _ports: dict[str, dict[str, int]] = field(default_factory=dict)
    _awake: set[tuple[str, Role]] = field(default_factory=set)

    def open_all(self, stack: ExitStack) -> None:
        """Open every site that the study's workloads need, and freeze it. The stack closes them."""
        host = LocalHost(self.run.id)
        networked = dict.fromkeys(cell.workload for cell in self.study.cells if _networked(cell))
        for arm in self.study.arms:
            # each environment has ports of its own: a published port takes its number on the whole host
            self._ports[arm.name] = {name: self._port() for name in networked}
            for role in self._roles():
                self._open_one(stack, host, self._key(arm, role), arm)

    def _port(self) -> int:
        return free_port({port for ports in self._ports.values() for port in ports.values()})

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

    def _open_one(self, stack: ExitStack, host: Host, key: tuple[str, Role], arm: Arm) -> None:
        if key in self._open:
            return
        place, role = key
        inside = place != OUTSIDE
        kind = arm.kind if inside else "native"
        environment = registry.environments()[kind]
        request = SiteRequest(
            run=self.run,
            host=host,
            name=f"{len(self._open)}-{re.sub('[^A-Za-z0-9]+', '-', place).strip('-')}-{role}",
            role=role,
            userland=self.userland,
            limits=limits_of(self.study, role),
            ports=self._published(arm) if inside and role == "server" else (),
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
        server = sites.get("server", next(iter(sites.values())))
        endpoint = Endpoint(server.listen, server.address, self._ports[arm.name].get(cell.workload, 0))
        return Stage(sites, endpoint, len(cpus_online()))

    def facts(self) -> dict[str, dict[str, str]]:
        """What is in force in each site, by "environment/role"; the package database is compared between them."""
        found = {}
        for (place, role), site in self._open.items():
            site.thaw()
            done = site.run(Command(("sha256sum", "/var/lib/dpkg/status")))
            packages = " ".join(done.text.split()[:1]) if done.returncode == 0 else f"unreadable: {done.last_words}"
            found[f"{place}/{role}"] = {**site.facts(), "packages": packages}
            site.freeze()
        self._awake = set()
        return found


def _networked(cell: Cell) -> bool:
    return bool(registry.workloads()[cell.kind].transports)
