"""Opens the sites of a run before its first trial, freezes all but the measured ones, and closes them at the end."""

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain, count
from typing import Any, Generic, TypeVar

from weighbridge import registry
from weighbridge.engines.docker import engine_of
from weighbridge.engines.supporting_services import start_supporting_services
from weighbridge.errors import EnvironmentLost, Unavailable
from weighbridge.facts.io_uring import about_io_uring
from weighbridge.facts.site import about_site, layers_of_site
from weighbridge.facts.surroundings import about_sysctls, about_variables
from weighbridge.launcher import build
from weighbridge.launcher.within import within
from weighbridge.linux import process
from weighbridge.linux.kernel_files import read_here
from weighbridge.linux.memory_room import mib
from weighbridge.linux.process import environment_of
from weighbridge.meters.machines import Read, reader_of
from weighbridge.meters.opened import OpenMeters
from weighbridge.model.command import Command, HostProcess
from weighbridge.model.decisions import LeftOut
from weighbridge.model.environment import Environment
from weighbridge.model.facts import (
    ASKED_CONFINEMENT,
    ASKED_FOR,
    IO_URING,
    IO_URING_ALLOWED,
    IO_URING_REFUSED,
    OPEN_FILES,
    PROCESSES,
    ROUTE_TO_SUPPORTING_SERVICES,
    SHARED_MEMORY,
    SYSCTL,
    layers_json,
)
from weighbridge.model.host import Host, Limits, RunContext
from weighbridge.model.host_kind import HostOptions
from weighbridge.model.isolation import OUTSIDE
from weighbridge.model.names import SafeName
from weighbridge.model.openings import Openings, StartTimes
from weighbridge.model.quantity import cpus_in
from weighbridge.model.setup import SetupStep
from weighbridge.model.site import Mount, Neighbourhood, Site, SiteEntry, SiteRequest, SiteStorage
from weighbridge.model.study import Arm, Cell, Resources, Role, Study
from weighbridge.model.timing import Timing
from weighbridge.model.userland import Userlands
from weighbridge.model.workload import Endpoint
from weighbridge.runner.outputs import why_unmeasured_failed
from weighbridge.runner.parallel import in_groups, openers
from weighbridge.runner.planned import without_left_out
from weighbridge.runner.pollers import Pollers
from weighbridge.runner.room import DiskBudget, DiskWrites, written
from weighbridge.runner.routes import Routes, first_over, fresh_ports, published_ports
from weighbridge.runner.same_machine import name_machines
from weighbridge.runner.stage import AtEnd, DataDisks, Finish, RoleSetup, Stage, machines_of
from weighbridge.runner.storage import require_in_force, set_disk_speed, site_storage, storage_facts, writes
from weighbridge.store.run import RunStore

CLEANUP = "cleanup"
"""The scope of facts about failed steps at the end of a run: "ENVIRONMENT/ROLE" -> reason."""
_MANAGED, _OPTIONAL = "managed", "optional "
"""The order of pods, and the beginning of the orders of environments that can be left out."""
_LIKE_IT = Openings()
SiteId = tuple[str, Role, str]
"""Identifies a site: its environment or "outside", its role, and the host of its clients."""
Opened = TypeVar("Opened")


@dataclass(slots=True, eq=False)
class OpenSite:
    """An open site with its request and the sites that belong to it."""

    environment: Environment
    options: Any
    request: SiteRequest
    site: Site
    further: list[Site] = field(default_factory=list)
    """The other sites of workloads that run in several at a time; they are thawed and frozen with ``site``."""
    prepared: set[tuple[str, ...]] = field(default_factory=set)
    """The preparations in the site (`weighbridge.runner.stage.Stage.prepared`)."""
    start_s: StartTimes = field(default_factory=dict)
    """The seconds to start and close a site like it (`weighbridge.runner.stage.Stage.start_s`)."""
    awake: bool = True

    @classmethod
    def open(cls, stack: ExitStack, environment: Environment, options: Any, request: SiteRequest) -> "OpenSite":
        """Open a site, which the stack closes. Raises Unavailable, EnvironmentLost."""
        return cls(environment, options, request, stack.enter_context(environment.open(options, request)))

    @property
    def mounts(self) -> list[Mount]:
        """The opened mounts of its storage."""
        return self.request.storage.mounts if self.request.storage is not None else []

    def open_fresh(
        self, name: SafeName, openings: Openings = _LIKE_IT, *, share_storage: bool = False
    ) -> AbstractContextManager[Site]:
        """Open another site like it, which belongs to the caller.

        It has the image of ``openings``, and publishes that number of free ports of the host, to which nothing
        listens, if its environment publishes ports.
        """
        storage = self.request.storage
        if share_storage and storage is not None and storage.mounts:  # which this site closes
            storage = SiteStorage(storage.kind, lambda _, mount=storage.mounts[0]: nullcontext(mount))  # type: ignore[misc]
        request = replace(
            self.request,
            name=name,
            ports=fresh_ports(self.site.host, openings.ports),
            joined_site=self.request.name,
            storage=storage,
            image_files=openings.image_files,
        )
        return self.environment.open(self.options, request)

    def start_on_host(self, command: Command, entry: SiteEntry) -> HostProcess:
        """Start the launcher with the words of a command on the machine that an entry names: usually its host.

        Raises Unavailable, EnvironmentLost.

        It never starts a file of the root filesystem, which can be a stranger's and must not run outside of the site.
        """
        host, run = self.site.host, self.request.run
        launcher = build.ensure(run.cache, run.say)
        if entry.here:
            command = replace(command, argv=(str(launcher), *command.argv))
            return process.Process(command, env=environment_of(run.id))
        argv = within(host, run, entry.group, host.program(launcher), *command.argv)
        return host.start(replace(command, argv=argv))

    def wake(self) -> None:
        """Thaw its sites."""
        if not self.awake:
            for site in (self.site, *self.further):
                site.thaw()
            self.awake = True

    def rest(self) -> None:
        """Freeze its sites."""
        if self.awake:
            for site in (self.site, *self.further):
                site.freeze()
            self.awake = False


@dataclass(slots=True, eq=False)
class _Opening(Generic[Opened]):
    """A site that a thread opens, and how that ended."""

    arm: Arm
    """The environment that uses it: the only one if it is ``inside``, else the first one."""
    inside: bool
    order: str
    """Openings with the same name happen one after the other; "" has no order."""
    stack: ExitStack
    """Closes the site."""
    open: Callable[[ExitStack], Opened]
    opened: Opened | None = None
    error: Unavailable | EnvironmentLost | None = None
    """The reason why the environment is left out."""


@dataclass(slots=True)
class Finishing:
    """The commands that still have to run in open sites: each once, the last one first."""

    _due: dict[tuple[str, ...], tuple[str, Finish]] = field(default_factory=dict)

    def of(self, environment: str) -> AtEnd:
        """Return a function that notes a command to run at the end in a site of an environment."""
        return partial(self._note, environment)

    def _note(self, environment: str, finish: Finish) -> None:
        once = (finish.site.name, finish.files_digest, *finish.command.argv)
        self._due.setdefault(once, (f"{environment}/{finish.role}", finish))

    def run(self, store: RunStore, say: Callable[[str], None]) -> None:
        """Run all, before the sites are closed. A failure is reported and stored, and fails nothing else."""
        failed: dict[str, list[str]] = {}
        for place, finish in reversed(self._due.values()):
            if why := _failure(finish):
                say(f"{place}: cleanup failed, but all measurements are kept: {why}")
                failed.setdefault(place, []).append(why)
        self._due.clear()
        if failed:
            store.add_facts(CLEANUP, {place: "; ".join(why) for place, why in failed.items()})


def _failure(finish: Finish) -> str:
    try:
        finish.site.thaw()
        for path, data in finish.files.items():  # another workload can have written there since
            finish.site.put(path, data, finish.modes[path])
        completed = finish.site.run(finish.command)
    except (EnvironmentLost, Unavailable, OSError) as error:
        return str(error)
    return why_unmeasured_failed(completed) if completed.returncode != 0 or completed.timed_out else ""


@dataclass(slots=True)
class Sites:
    """Every open site of a run. An environment has one per role and per host with clients."""

    study: Study
    run: RunContext
    userlands: Userlands
    meters: OpenMeters
    pollers: Pollers | None = None
    timing: Timing = field(default_factory=Timing)
    may_leave_out: bool = False
    """Whether an optional environment that cannot be opened is left out, which ends with the first trial."""
    left_out: list[LeftOut] = field(default_factory=list)
    """The environments that were left out; ``study`` no longer has them."""
    hosts: Mapping[str, Host] = field(default_factory=dict)
    neighbourhood: Neighbourhood | None = None  # once the supporting services are ready
    routes: Routes = field(default_factory=Routes)
    finishing: Finishing = field(default_factory=Finishing)
    _open: dict[SiteId, OpenSite] = field(default_factory=dict)
    _stacks: dict[str, ExitStack] = field(default_factory=dict)
    _disks: DiskBudget = field(default_factory=DiskBudget)
    _numbers: Iterator[int] = field(default_factory=count)

    def open_all(self, stack: ExitStack) -> None:
        """Open and freeze every site. Raises Unavailable, EnvironmentLost, if the environment cannot be left out."""
        self.hosts = open_hosts(self.study, self.run)
        if self.study.file.companions:
            engine = engine_of(self.run, self._host("server"))
            self.neighbourhood = start_supporting_services(self.run, engine, self.study.file.companions)
        self.routes.give_ports(self.study, self._host("server"))
        self._open_sites(stack)
        over_udp = first_over(self.study, "udp")
        for _, arm, cell in over_udp.values():
            if arm in self.study.arms:  # the clients of another host can have left it out
                with self._leaving_out(arm):
                    self.routes.find_payload(arm, cell, self._sites(arm, cell))
        for transport, arm, cell in (over_udp | first_over(self.study, "tcp")).values():
            if arm in self.study.arms:
                with self._leaving_out(arm):
                    self.routes.find_path(arm, cell, transport, self._sites(arm, cell))

    def _open_sites(self, stack: ExitStack) -> None:
        """Open a site for each role in each environment, and for each role outside of them, and their further sites.

        Environments that can be left out come last, those of one kind one after the other. So they never take memory,
        a disk or an engine from a required one, and of one kind it is always the same one that finds too little.
        """
        wanted: dict[SiteId, Arm] = {}
        for arm in self.study.arms:
            for cell in self._cells_of(arm):
                for role in roles_of(cell):
                    wanted.setdefault(self._key(arm, role, cell.client), arm)
        outside = {key: stack.enter_context(ExitStack()) for key in wanted if key[0] == OUTSIDE}
        self._stacks = {arm.name: ExitStack() for arm in self.study.arms}
        groups = in_groups(
            reversed(self.study.arms),
            lambda arm: next(
                filter(None, (self._own_order(key, arm) for key, its in wanted.items() if its is arm)), ""
            ),
        )
        stack.callback(self._close_environments, groups)
        openings: dict[SiteId, _Opening[OpenSite]] = {}
        for number, (key, arm) in enumerate(wanted.items(), 1):
            inside, order = key not in outside, self._order_of(key, arm)
            own = self._stacks[arm.name].enter_context(ExitStack()) if inside else outside[key]
            opened_by = partial(self._open_one, key, arm, self._name(key), number, len(wanted))
            openings[key] = _Opening(arm, inside, order, own, opened_by)
        for optional in (False, True):
            due = {key: each for key, each in openings.items() if each.order.startswith(_OPTIONAL) is optional}
            self._open_in_threads(due.values())
            self._open |= {key: each.opened for key, each in due.items() if each.opened is not None}
            self._leave_out_failed(due.values())
            self._open_further([arm for arm in self.study.arms if self._can_leave_out(arm) is optional])
        self._open = {key: self._open[key] for key in openings if key in self._open}

    def _close_environments(self, groups: Sequence[Sequence[Arm]]) -> None:
        """Close the sites in all environments that were not left out."""
        openers(self.run).close_all(
            [[self._stacks[arm.name] for arm in group if arm.name in self._stacks] for group in groups]
        )

    def _open_further(self, arms: Iterable[Arm]) -> None:
        """Open the other sites of workloads that run in several at a time."""
        openings: list[tuple[OpenSite, _Opening[Site]]] = []
        for arm in arms:
            numbers: Counter[SiteId] = Counter()
            for cell in self._cells_of(arm):
                numbers |= Counter({self._key(arm, "solo", cell.client): cell.sites - 1})
            for key, number in numbers.items():
                first, order = self._open[key], self._order_of(key, arm)
                for place in range(2, number + 2):
                    step = SetupStep("site", first.request.title, place, number + 1)
                    own = self._stacks[arm.name].enter_context(ExitStack())
                    opened_by = partial(self._open_another, first, self._name(key), step)
                    openings.append((first, _Opening(arm, True, order, own, opened_by)))
        self._open_in_threads([each for _, each in openings])
        for first, each in openings:
            if each.opened is not None:
                first.further.append(each.opened)
        self._leave_out_failed([each for _, each in openings])

    def _cells_of(self, arm: Arm) -> list[Cell]:
        return [cell for cell in self.study.cells if arm in self.study.arms_of(cell)]

    def _order_of(self, key: SiteId, arm: Arm) -> str:
        """Return the name that all sites share that open one after the other; "" for a site without an order."""
        order = self._own_order(key, arm)
        return f"{_OPTIONAL}{order or arm.kind}" if key[0] != OUTSIDE and self._can_leave_out(arm) else order

    def _own_order(self, key: SiteId, arm: Arm) -> str:
        """Return the same name, as if no environment could be left out."""
        place, role, client = key
        if self.study.file.hosts[self._host_name(role, client)].own_traits.managed:
            return _MANAGED
        return "" if place == OUTSIDE else registry.environments()[arm.kind].opens_in_order(arm.options)

    def _open_in_threads(self, openings: Iterable[_Opening[Opened]]) -> None:
        """Open sites at the same time. Raises Unavailable, EnvironmentLost, if the environment cannot be left out."""
        groups = in_groups(openings, lambda each: each.order)
        openers(self.run).run_all([partial(self._open_in_order, group) for group in groups])

    def _open_in_order(self, openings: Sequence[_Opening[Opened]]) -> None:
        for each in openings:
            if any(other.error for other in openings if other.arm is each.arm):
                continue
            try:
                with self.timing.environment(each.arm.name) if each.inside else nullcontext():
                    each.opened = each.open(each.stack)
            except (Unavailable, EnvironmentLost) as error:
                if not (each.inside and self._can_leave_out(each.arm)):
                    raise
                each.error = error

    def _leave_out_failed(self, openings: Collection[_Opening[Opened]]) -> None:
        for arm in self.study.arms:
            error = next((each.error for each in openings if each.arm is arm and each.error is not None), None)
            if error is not None:
                with self._leaving_out(arm):
                    raise error

    def _can_leave_out(self, arm: Arm) -> bool:
        return self.may_leave_out and arm.optional

    @contextmanager
    def _leaving_out(self, arm: Arm) -> Iterator[None]:
        """Leave out an optional environment if an error occurs in the body, and close what it opened."""
        try:
            yield
        except (Unavailable, EnvironmentLost) as error:
            if not self._can_leave_out(arm):
                raise
            self._stacks.pop(arm.name).close()
            self._open = {key: opened for key, opened in self._open.items() if key[0] != arm.name}
            self.routes.forget(arm.name)
            self.left_out.append(LeftOut(environment=arm.name, kind=arm.kind, why=str(error)))
            self.study = without_left_out(self.study, self.left_out)

    def _host_name(self, role: Role, client: str = "") -> str:
        return (client or self.study.client_hosts[0]) if role == "client" else self.study.server_host

    def _host(self, role: Role, client: str = "") -> Host:
        return self.hosts[self._host_name(role, client)]

    def _name(self, key: SiteId) -> SafeName:
        place, role, _ = key
        return site_name(next(self._numbers), place, role)

    def _open_one(self, key: SiteId, arm: Arm, name: SafeName, number: int, total: int, stack: ExitStack) -> OpenSite:
        place, role, client = key
        inside, host, ports = place != OUTSIDE, self._host(role, client), self.routes.ports(arm.name, client)
        environment, options = registry.environments()[arm.kind], arm.options
        if not inside:
            environment, options = registry.bare_host(self.study.file.hosts[self._host_name(role, client)].own_traits)
        storage = site_storage(environment, options, self.study, role, self.hosts)
        request = SiteRequest(
            run=self.run,
            host=host,
            name=name,
            role=role,
            userland=self.userlands.of(role, place),
            limits=limits_of(self.study.resources_of(place), role, host),
            ports=published_ports(self.study, arm, ports) if inside and role == "server" else (),
            networked=any(registry.workloads()[cell.kind].transports(cell.options) for cell in self.study.cells),
            environment=place,
            separate_hosts=self._host("server") is not self._host("client", client),
            storage=storage,
            shm_size=arm.shm_size if inside else None,
            sysctls=arm.sysctls if inside else {},
            supporting_services=self.neighbourhood if inside else None,
        )
        clients = client if len(self.study.client_hosts) > 1 else ""
        with self.run.during(SetupStep("site", request.title, number, total, clients)):
            opened = OpenSite.open(stack, environment, options, request)
            if storage is not None:
                require_in_force(storage.mounts, opened.site)
                demand = DiskWrites() if role == "client" else written(self.study, arm)
                stack.callback(self._disks.claim(opened.site, storage, demand))
            self._require_io_uring(key, arm, opened.site)
            if inside and (sizes := self._image_files(key, arm)):
                environment.make_images(options, request, sizes)
            opened.rest()
        return opened

    def _image_files(self, key: SiteId, arm: Arm) -> set[int]:
        """Return the bytes of additional files in the images of the sites that trials open like this one."""
        cells = [cell for cell in self._cells_of(arm) if key == self._key(arm, "solo", cell.client)]
        asked = [registry.workloads()[cell.kind].openings(self.study.options(arm, cell)) for cell in cells]
        return {each.image_files for each in asked if each is not None} - {0}

    def _require_io_uring(self, key: SiteId, arm: Arm, site: Site) -> None:
        """Raise Unavailable if a workload of this site needs io_uring, and its programs cannot use it."""
        needing = [
            cell.label
            for cell in self._cells_of(arm)
            if registry.workloads()[cell.kind].needs_io_uring(self.study.options(arm, cell))
            and key in (self._key(arm, role, cell.client) for role in roles_of(cell))
        ]
        if not needing:
            return
        state = about_io_uring(site, partial(self._launcher_on, site.host)).get(IO_URING, IO_URING_ALLOWED)
        if state.startswith(IO_URING_REFUSED):
            raise Unavailable(f"{needing[0]} needs io_uring, which is {state} in {site.title}")
        if state != IO_URING_ALLOWED:
            raise Unavailable(f"{needing[0]} needs io_uring, which failed in {site.title}; the cause is {state}")

    def _launcher_on(self, host: Host) -> str:
        """Return the launcher's path on a host; "" if it cannot be there."""
        try:
            return host.program(build.ensure(self.run.cache, self.run.say))
        except Unavailable:
            return ""

    def _open_another(self, first: OpenSite, name: SafeName, step: SetupStep, stack: ExitStack) -> Site:
        with self.run.during(step):
            site = stack.enter_context(first.open_fresh(name, share_storage=True))
            site.freeze()
        return site

    def _key(self, arm: Arm, role: Role, client: str) -> SiteId:
        client = client or next((host for host in self.study.client_hosts if self._has_clients(arm, host)), "")
        if role == "solo":  # the environment is measured with it, so it is always inside
            inside = "server" in self.study.file.inside or not self._has_clients(arm, client)
            return arm.name, "server" if inside else "client", client
        return (arm.name if role in self.study.file.inside else OUTSIDE), role, client

    def _has_clients(self, arm: Arm, host: str) -> bool:
        return any(arm in self.study.arms_of(cell) for cell in self.study.cells if cell.client == host)

    def stage(self, arm: Arm, cell: Cell) -> Stage:
        """Return the thawed sites for one workload in one environment; all others are frozen."""
        keys = {role: self._key(arm, role, cell.client) for role in roles_of(cell)}
        opened = {role: self._open[key] for role, key in keys.items()}
        for each in self._open.values():
            if each not in opened.values():
                each.rest()
        for each in opened.values():
            each.wake()
        sites: Mapping[Role, Site] = {role: each.site for role, each in opened.items()}
        hosts = {site.host.name: site.host for site in sites.values()}.values()
        for host in hosts:
            if (limit_link := host.capabilities.limit_link) is not None:
                limit_link(cell.link != "none")
        measured = list(opened)[-1]
        keeper = opened.get("server", opened[measured])
        resources = [self.study.resources_of(each.name) for each in self.study.arms]
        return Stage(
            sites=sites,
            endpoints=self.routes.endpoints(arm, cell, sites),
            machines=machines_of(sites, self._local_read),
            parts={role: self._part(role, key) for role, key in keys.items()},
            meters=self.meters.of(hosts),
            further=tuple(opened[measured].further[: cell.sites - 1]),
            open_site=lambda openings: opened[measured].open_fresh(self._name(keys[measured]), openings),
            start_on_host=opened[measured].start_on_host,
            prepared=keeper.prepared,
            start_s=opened[measured].start_s,
            data=self._data_disks(keeper, opened.values(), cell),
            at_end=self.finishing.of(arm.name),
            require_supporting_services=self.neighbourhood.require if self.neighbourhood else lambda: None,
            own_cpu_limits=len({(each.cpus, each.quota_period_s) for each in resources}) > 1,
            polled=self.pollers is not None,
        )

    def _part(self, role: Role, key: SiteId) -> RoleSetup:
        place, opened = key[0], self._open[key]
        cpus = cpus_of(self.study.resources_of(place), role, opened.site)
        process = self.userlands.of(role, place).process
        process = replace(process, env={**process.env, **getattr(opened.options, "variables", {})})
        return RoleSetup(cpus, place != OUTSIDE, process)

    def _data_disks(self, keeper: OpenSite, opened: Iterable[OpenSite], cell: Cell) -> DataDisks:
        """Return the disks of a trial's sites, after lifting the limits of the previous trial."""
        servers = _storage_servers(opened)
        disks = [*(site.host for site in (keeper.site, *keeper.further)), *servers]
        set_disk_speed(disks, None)
        every = self._open.values() if writes(self.study) else ()
        written_to = (*(each.site.host for each in every), *_storage_servers(every))
        return DataDisks(servers, written_to, partial(set_disk_speed, disks, cell.disk_speed))

    def _sites(self, arm: Arm, cell: Cell) -> dict[Role, Site]:
        return {role: self._open[self._key(arm, role, cell.client)].site for role in roles_of(cell)}

    def endpoint_of(self, arm: Arm, cell: Cell) -> Endpoint:
        """Return the endpoint of a workload's measured role in an environment."""
        return [*self.routes.endpoints(arm, cell, self._sites(arm, cell)).values()][-1]

    @property
    def _local_read(self) -> Read:
        """Reads files of this machine, without the time of pollers if some run."""
        return read_here if self.pollers is None else self.pollers.read

    def layers(self) -> dict[str, str]:
        """Return the hypervisors of each site that is in any, as JSON (`weighbridge.model.isolation.SiteLayers`)."""
        sites = ((name, self._open[key].site) for name, key in self._named().items())
        return {name: layers_json(layers_of_site(site)) for name, site in sites if site.layers}

    def readers(self) -> dict[str, Read]:
        """Return the reader of each machine with sites, by the machine's name."""
        hosts = [opened.site.host for opened in self._open.values()]
        return {host.machine: reader_of(host, self._local_read) for host in hosts}

    def rest(self) -> None:
        """Freeze every site."""
        for opened in self._open.values():
            opened.rest()

    def facts(self) -> dict[str, dict[str, str]]:
        """Return the facts of each site, by "environment/role" ("environment/role@HOST" if several hosts have
        clients).
        """
        facts = {}
        for name, (place, role, client) in self._named().items():
            opened = self._open[place, role, client]
            opened.wake()
            site = opened.site
            limits = limits_of(self.study.resources_of(place), role, site.host)
            # a site's own facts replace the limits
            own = {"limits": str(limits), **site.facts(), **self._about(site)}
            own |= storage_facts(opened.mounts, site, limits)
            facts[name] = own | self._requested(place, own)
            opened.rest()
        return facts

    def _about(self, site: Site) -> dict[str, str]:
        return about_site(site, partial(self._launcher_on, site.host)) | self._study_settings(site)

    def _study_settings(self, site: Site) -> dict[str, str]:
        """Return a site's values of the kernel settings and variables that any environment of the study sets."""
        variables = {name for arm in self.study.arms for name in getattr(arm.options, "variables", {})}
        sysctls = about_sysctls(site, dict.fromkeys(name for arm in self.study.arms for name in arm.sysctls))
        return sysctls | (about_variables(site, variables) if variables else {})

    def _requested(self, environment: str, facts: Mapping[str, str]) -> dict[str, str]:
        """Return the facts that an environment requests: by its kind, and by the study; and those that differ."""
        arm = next((arm for arm in self.study.arms if arm.name == environment), None)
        if arm is None:
            return {}
        plugin = registry.environments()[arm.kind]
        confinement = plugin.confinement(arm.options)
        values = {f"{SYSCTL} {name}": value for name, value in arm.sysctls.items()}
        values |= {} if arm.shm_size is None else {SHARED_MEMORY: mib(arm.shm_size)}
        for fact, option in ((OPEN_FILES, "open_files"), (PROCESSES, "pids_limit")):
            if (value := getattr(arm.options, option, None)) is not None:
                values[fact] = str(value)
        limits = [] if arm.resources in (None, self.study.file.resources) else ["limits"]
        route = plugin.route_to_supporting_services(arm.options) if self.study.file.companions else None
        return {
            **({} if route is None else {ROUTE_TO_SUPPORTING_SERVICES: route}),
            ASKED_CONFINEMENT: ", ".join(confinement),
            **_not_in_force(confinement, facts),
            ASKED_FOR: ", ".join([*limits, *values]),
            **_not_in_force(values, facts),
        }

    def _named(self) -> dict[str, SiteId]:
        several = len({client for _, _, client in self._open}) > 1
        return {
            f"{place}/{role}" + (f"@{client}" if several else ""): (place, role, client)
            for place, role, client in self._open
        }


def _not_in_force(asked: Mapping[str, str], facts: Mapping[str, str]) -> dict[str, str]:
    """Return facts about requests that are not in effect in a site; "" requests nothing particular."""
    return {
        f"not honoured: {what}": f"'{value}' was requested, but '{facts[what]}' is in effect"
        for what, value in asked.items()
        if value and facts.get(what, value) != value
    }


def site_name(number: int, place: str, role: Role) -> SafeName:
    """Return the name of a site of a role in an environment; the number makes it unique in the run."""
    return SafeName(f"{number}-{re.sub('[^A-Za-z0-9]+', '-', place).strip('-')[:100]}-{role}")


def _storage_servers(opened: Iterable[OpenSite]) -> tuple[Host, ...]:
    return tuple({host.name: host for each in opened for mount in each.mounts for host in mount.servers}.values())


def roles_of(cell: Cell) -> tuple[Role, ...]:
    """Return the roles of a cell's workload, in the order in which they start."""
    return registry.workloads()[cell.kind].roles(cell.options)


def open_hosts(study: Study, run: RunContext) -> dict[str, Host]:
    """Open the hosts of all roles, by name; the run closes them. Raises Unavailable with the hosts that failed."""
    host_options = {
        name: study.file.hosts[name] for name in (study.server_host, *study.client_hosts, *study.storage_hosts)
    }
    places = list(host_options)

    def opened(names: Sequence[str]) -> list[Host | Unavailable]:
        return [_opened_host(name, host_options, run, places.index(name) + 1) for name in names]

    groups = in_groups(places, lambda name: "managed" if host_options[name].traits.managed else "")
    results = openers(run).run_all([partial(opened, names) for names in groups])
    by_name = dict(zip(chain.from_iterable(groups), chain.from_iterable(results), strict=True))
    if refused := [str(by_name[name]) for name in places if isinstance(by_name[name], Unavailable)]:
        raise Unavailable("; ".join(refused))  # of every host, so that one run shows all problems
    hosts = {name: host for name in places if not isinstance(host := by_name[name], Unavailable)}
    name_machines(hosts.values())
    return hosts


def _opened_host(
    name: str, host_options: Mapping[str, HostOptions], run: RunContext, number: int
) -> Host | Unavailable:
    options = host_options[name]
    with run.during(SetupStep("host", name, number, len(host_options))):
        try:
            host = registry.hosts()[options.kind].open(name, options, run, tuple(host_options.values()))
            return run.stack.enter_context(host)
        except Unavailable as error:
            return error


def limits_of(resources: Resources, role: Role, host: Host) -> Limits:
    """Return the limits of a role's sites on a host. Raises Unavailable if the study pins to a missing CPU."""
    online, cpuset = host.cpus_online(), host.cpuset
    if resources.pin == "spread":
        cpuset = str(online[(0 if role != "client" else 1) % len(online)])
    elif resources.pin is not None:
        cpuset = resources.pin.get("client" if role == "client" else "server", cpuset)
    for cpu in cpus_in(cpuset) if cpuset else ():
        if cpu not in online:
            raise Unavailable(
                f"host {host.name} has only CPUs {online}, so {role} cannot use CPU {cpu}: change 'pin'"
            )
    period_us = round(resources.cpu_period * 1e6)
    return Limits(resources.cpus, resources.memory, cpuset, period_us)


def cpus_of(resources: Resources, role: Role, site: Site) -> int:
    """Return the number of CPUs that the processes of a role's site can use."""
    cpuset = limits_of(resources, role, site.host).cpuset
    return len(cpus_in(cpuset) if cpuset else site.host.cpus_online())
