"""Finds mistakes in a study whose single keys are all valid."""

from collections.abc import Iterable, Iterator, Sequence, Set

from weighbridge import registry
from weighbridge.model.environment import Needs, SiteSetting, misplaced
from weighbridge.model.host import HostTraits
from weighbridge.model.ladder import Rung
from weighbridge.model.openings import Openings
from weighbridge.model.quantity import MOST_CPUS
from weighbridge.model.spelling import nearest
from weighbridge.model.stored_study import pairs_of_versions
from weighbridge.model.study import Arm, Cell, Resources, Role, StudyFile
from weighbridge.model.supporting_service import in_order
from weighbridge.study.source import StudyPlace

AA_SUFFIX = "-again"
_LARGEST_SEED = 2**63 - 1


def contradictions(file: StudyFile, arms: list[Arm], cells: list[Cell]) -> Iterator[tuple[StudyPlace, str]]:
    """Yield the mistakes of a study whose single keys are all valid."""
    names = [arm.name for arm in arms]
    if file.baseline not in file.environments:
        yield ("baseline",), f"baseline '{file.baseline}' is not an environment{nearest(file.baseline, names)}"
    elif any(name.startswith(f"{file.baseline}[") for name in names):
        yield ("baseline",), f"baseline '{file.baseline}' is swept: use one environment"
    elif any(arm.optional for arm in arms if arm.name == file.baseline):
        place = "environments", file.baseline, "optional"
        yield place, f"{file.baseline} is the baseline, so it cannot be optional"
    pairs = pairs_of_versions(file.study, [arm.name for arm in arms if arm.declared])
    for arm in arms:
        if arm.optional and arm.name != file.baseline and arm.name in {*pairs, *pairs.values()}:
            why = f"{arm.name} is one of two versions that are compared, so it cannot be optional"
            yield ("environments", arm.name, "optional"), why
    if file.aa and file.baseline + AA_SUFFIX in names:
        reserved = file.baseline + AA_SUFFIX
        yield ("environments", reserved), f"'{reserved}' is reserved for the control: choose another name"
    yield from _misplaced(file)
    yield from (unplaced := [*_unplaced(file)])
    yield from _unreachable(file)
    yield from _outside_of_all(file, cells)
    yield from _mixed(arms, cells)
    yield from _other_roles(arms, cells)
    yield from _wrong_steps(file.ladder, names, {*file.environments} - {each.partition("[")[0] for each in names})
    yield from _supporting_service_problems(file)
    if not unplaced and set(file.placement.named) <= set(file.hosts):
        for arm in arms:
            yield from _cannot_be(arm, file, cells)
    if file.meters.source == "sysstat" and file.meters.hz != "auto" and file.meters.hz > 1:
        yield ("meters", "hz"), f"hz: sysstat reads at most once per second, not {file.meters.hz:g} times"
    away = [name for name, host in file.hosts.items() if not host.traits.here]
    if file.cpu_idle == "poll" and away:
        why = f"host '{away[0]}' is another machine, where CPUs halt"
        yield ("cpu_idle",), f"cpu_idle: only idle CPUs of this machine can poll, and {why}. Remove it"
    yield from _out_of_range(file, arms)


def _cannot_be(arm: Arm, file: StudyFile, cells: list[Cell]) -> Iterator[tuple[StudyPlace, str]]:
    """Return why an environment cannot be measured with the clients that the study names."""
    place: StudyPlace = ("environments", arm.name.split("[")[0])
    hosts = file.placement.clients or (next(iter(file.hosts)),)
    for unknown in sorted({*(arm.clients or ())} - {*hosts}):
        yield (*place, "clients"), f"{arm.name}: no client is on host '{unknown}'{nearest(unknown, hosts)}"
    reached = [host for host in hosts if arm.clients is None or host in arm.clients]
    if not reached:
        yield (*place, "clients"), f"{arm.name}: 'clients' leaves no client. Remove it"
    if arm.name == file.baseline and len(reached) < len(hosts):
        yield (*place, "clients"), f"{arm.name} is the baseline, which needs every client: remove 'clients'"
    yield from ((place, f"{arm.name}: {problem}") for problem in _unmountable(arm, cells))
    yield from ((place, problem) for problem in _unpacked(arm, file, cells))
    yield from ((place, f"{arm.name}: {problem}") for problem in _not_taken(arm))
    if file.companions and not registry.environments()[arm.kind].route_to_supporting_services(arm.options):
        yield place, f"{arm.name}: its sites cannot reach the study's companions ({', '.join(file.companions)})"
    hosts_by_problem: dict[str, list[str]] = {}
    for host in reached:
        needs = needs_of(file, cells, host, arm)
        unplaceable = [*_unplaceable(arm.kind, needs), *_unsuitable(arm, needs)]
        for problem in unplaceable or registry.environments()[arm.kind].check(arm.options, needs):
            hosts_by_problem.setdefault(problem, []).append(host)
    for problem, concerned in hosts_by_problem.items():
        rest = [host for host in hosts if host not in concerned]
        way = f" (or measure it with other clients only: 'clients: [{', '.join(rest)}]')" if rest else ""
        where = f" with a client on {', '.join(concerned)}" if rest else ""
        yield place, f"{arm.name}{where}: {problem}{way}"


def arm_problems(arm: Arm, file: StudyFile, cells: list[Cell]) -> Iterator[str]:
    """Yield why an environment cannot be measured in a study that is otherwise right."""
    yield from (problem.removeprefix(f"{arm.name}: ") for _, problem in _cannot_be(arm, file, cells))


def _unplaceable(kind: str, needs: Needs) -> Iterator[str]:
    """Yield why a kind of environment cannot be on its hosts, with the kinds that can."""
    every = registry.environments()
    for host, traits in needs.holding.items():
        if why := misplaced(every[kind], traits):
            fits = ", ".join(each for each, environment in every.items() if not misplaced(environment, traits))
            yield f"{why} (kind {host}); supported there: {fits or 'none'}"


def _unsuitable(arm: Arm, needs: Needs) -> Iterator[str]:
    """Yield why a kind of environment has no sites that workloads such as ``exec`` and ``burst`` can use."""
    every = registry.environments()
    if needs.entered and not every[arm.kind].enters:
        fits = ", ".join(kind for kind, environment in every.items() if environment.enters)
        yield f"a program of the host cannot start programs in its sites, which 'exec' needs; supported: {fits}"
    if needs.opened_at_once and (order := every[arm.kind].opens_in_order(arm.options)):
        yield f"its sites open one after the other ({order}), but 'burst' opens them at the same time"
    if needs.image_files and not every[arm.kind].builds_images:
        fits = ", ".join(kind for kind, environment in every.items() if environment.builds_images)
        yield f"its sites have no image to which 'image_files' could add files; supported: {fits}"


def _opens_at_once(openings: Openings | None) -> bool:
    return openings is not None and openings.at_once > 1


def _has_image_files(openings: Openings | None) -> bool:
    return openings is not None and openings.image_files > 0


def _unpacked(arm: Arm, file: StudyFile, cells: list[Cell]) -> Iterator[str]:
    """Yield why an environment cannot use its root filesystem: it is only on this machine, or not in a registry."""
    every, first = registry.environments(), next(iter(file.hosts))
    problems = set()
    for role in {role for cell in cells for role in registry.workloads()[cell.kind].roles(cell.options)}:
        inside = role == "solo" or role in file.inside
        source = (arm.source(role, file) if inside else file.source(role)).kind
        clients = file.placement.clients or (first,)
        on = clients if role == "client" else (file.placement.server or first,)
        if registry.userlands()[source].packed:
            for name in on if not registry.userlands()[source].from_registry else ():
                if name in file.hosts and file.hosts[name].pulls:
                    problems.add(
                        f"{arm.name}: host '{name}' pulls images, but the root filesystem '{source}' is not in a "
                        "registry. Use 'userland: {kind: image, image: NAME}', or another way to load its images"
                    )
            continue
        if inside and not every[arm.kind].shares_root:
            fits = ", ".join(kind for kind, environment in every.items() if environment.shares_root)
            problems.add(
                f"{arm.kind} cannot use this machine's own files. Use an image (weigh --image, study key userland), "
                f"or {fits}"
            )
        for name in on:
            if name in file.hosts and not file.hosts[name].traits.this_machine:
                problems.add(
                    f"{arm.name}: host '{name}' cannot use the userland '{source}', which is this machine's: use "
                    "another"
                )
    yield from sorted(problems)


def _not_taken(arm: Arm) -> Iterator[str]:
    """Yield the settings that an environment's kind does not support."""
    every = registry.environments()
    settings: dict[SiteSetting, object] = {"shm_size": arm.shm_size, "sysctls": arm.sysctls}
    for setting, value in settings.items():
        if value and setting not in every[arm.kind].takes:
            fits = ", ".join(kind for kind, environment in every.items() if setting in environment.takes)
            yield f"{setting} does not work with {arm.kind}. It works with {fits}"


def _unmountable(arm: Arm, cells: list[Cell]) -> Iterator[str]:
    """Yield storage that an environment does not support, and missing storage."""
    environment, chosen = registry.environments()[arm.kind], getattr(arm.options, "storage", None)
    every = registry.storage()
    if chosen is not None and not {*every[chosen.kind].ways} & environment.mounts:
        fits = ", ".join(kind for kind, storage in every.items() if {*storage.ways} & environment.mounts)
        yield f"storage: {chosen.kind} does not work here. Supported storage: {fits or 'none'}"
    needing = [cell.workload for cell in cells if registry.workloads()[cell.kind].needs_data(cell.options)]
    if chosen is None and needing and not environment.storage:
        yield f"workload {needing[0]} keeps data, but its sites have no storage: add 'storage'"


def _misplaced(file: StudyFile) -> Iterator[tuple[StudyPlace, str]]:
    clients = (("client", host) for host in file.placement.clients)
    for role, host in (("server", file.placement.server), *clients, ("storage", file.placement.storage)):
        if host is not None and host not in file.hosts:
            yield ("placement", role), f"placement: there is no host '{host}'{nearest(host, file.hosts)}"
    if len(set(file.placement.clients)) < len(file.placement.clients):
        yield ("placement", "client"), "placement: a host is listed twice for the client. Remove one"


def _wrong_steps(
    ladder: Sequence[Rung], names: Sequence[str], mistaken: Set[str]
) -> Iterator[tuple[StudyPlace, str]]:
    """Yield wrong steps of a ladder. Each step must add to a step above it, which rules out circles.

    ``mistaken`` are environments with mistakes of their own, which are reported elsewhere and are not in ``names``.
    """
    above: list[str] = []
    for number, (name, base) in enumerate(ladder):
        place: StudyPlace = ("ladder", number)
        if name not in names and name not in mistaken:
            if any(each.startswith(f"{name}[") for each in names):
                yield place, f"ladder: '{name}' is swept. Use one environment per step"
            else:
                yield place, f"ladder: there is no environment '{name}'{nearest(name, names)}"
        elif name in above:
            yield place, f"ladder: '{name}' appears twice. Remove one"
        elif base == name:
            yield place, f"ladder: '{name}' adds a step to itself. Name an environment above it"
        elif base is not None and base not in above:
            below = any(base == rung.name for rung in ladder[number:])
            why = (
                "is listed below it: move it up" if below else f"is not in the ladder above it{nearest(base, above)}"
            )
            yield place, f"ladder: '{name}' adds to '{base}', which {why}"
        above.append(name)


def _unplaced(file: StudyFile) -> Iterator[tuple[StudyPlace, str]]:
    """Yield hosts that nothing runs on, because then the study measures something else than it appears to."""
    names, used = list(file.hosts), set(file.placement.named)
    if len(names) > 1 and None in (file.placement.client, file.placement.server):
        example = f"placement: {{client: {names[0]}, server: {names[1]}}}"
        yield ("hosts",), f"hosts {' and '.join(names)}: say which role is on which ({example})"
    elif len(names) > 1:
        for name in names:
            if name not in used:
                yield ("hosts", name), f"no role is on host '{name}': name it in placement, or remove it"


def _unreachable(file: StudyFile) -> Iterator[tuple[StudyPlace, str]]:
    """Yield roles on two hosts that cannot reach each other."""
    first = next(iter(file.hosts))
    server = file.placement.server or first
    for client in file.placement.clients or (first,):
        if server == client or not {server, client} <= {*file.hosts}:
            continue
        one, other = file.hosts[client], file.hosts[server]
        if not one.reaches(other):
            text = f"placement: {client} and {server} cannot reach each other"
            kinds = f"kind {one.kind} and of kind {other.kind} share no network"
            if one.kind == other.kind:
                kinds = f"kind {one.kind} with these options share no network"
            yield ("placement",), f"{text}: hosts of {kinds}"
        elif one.traits.this_machine and other.traits.this_machine:
            yield ("placement",), f"placement: {client} and {server} are both this machine. Use one name"


def _outside_of_all(file: StudyFile, cells: list[Cell]) -> Iterator[tuple[StudyPlace, str]]:
    """Yield roles outside of all environments on hosts that can only have environments."""
    first = next(iter(file.hosts))
    every = {role for cell in cells for role in registry.workloads()[cell.kind].roles(cell.options)}
    for role in sorted(every - {"solo", *file.inside}):
        for name in (file.placement.clients or (first,)) if role == "client" else (file.placement.server or first,):
            if name in file.hosts and not registry.has_bare_host(file.hosts[name].own_traits):
                why = f"the {role} is on host '{name}', which has nothing outside of environments"
                yield ("placement",), f"placement: {why}. Add {role} to 'inside'"


def _supporting_service_problems(file: StudyFile) -> Iterator[tuple[StudyPlace, str]]:
    """Yield supporting services that have no host, wait for each other, or have a reserved name."""
    for name, service in file.companions.items():
        place: StudyPlace = ("companions", name)
        for other in service.after:
            if other not in file.companions:
                hint = nearest(other, file.companions)
                yield (*place, "after"), f"{name}: after: there is no supporting service '{other}'{hint}"
        if service.healthcheck is not None and service.port is not None:
            yield (*place, "port"), f"{name}: 'healthcheck' already defines when it is ready. Remove 'port'"
        if name == "localhost":
            yield place, "a companion cannot be called localhost: choose another name"
    if all({*each.after} <= {*file.companions} for each in file.companions.values()):
        try:
            in_order(file.companions)
        except ValueError as error:
            yield ("companions",), f"companions: {error}"
    server = file.placement.server or next(iter(file.hosts))
    for host in dict.fromkeys((server, *file.placement.clients)) if file.companions else ():
        if host in file.hosts and not file.hosts[host].traits.this_machine:
            why = f"are containers on this machine, but host '{host}' is another machine: use a local host"
            yield ("companions",), f"companions: they {why}"


def _mixed(arms: list[Arm], cells: list[Cell]) -> Iterator[tuple[StudyPlace, str]]:
    """Yield options that choose between programs and have more than one value. A comparison cannot mix programs."""
    for kind in sorted({cell.kind for cell in cells}):
        workload = registry.workloads()[kind]
        mine = [cell for cell in cells if cell.kind == kind]
        every: list[tuple[StudyPlace, object]] = [(("workloads", cell.workload), cell.options) for cell in mine]
        for arm in arms:
            own_place: StudyPlace = ("environments", arm.name.split("[")[0], "workloads")
            own = ((cell.workload, arm.workloads.get(cell.id)) for cell in mine)
            every += [((*own_place, name), options) for name, options in own if options is not None]
        for option in workload.fixed_per_study:
            values = {str(getattr(options, option)): place for place, options in every}
            if len(values) > 1:
                text = f"{option}: {' and '.join(values)} are different programs"
                yield (*list(values.values())[-1], option), f"{text}: write one study for each"


def _other_roles(arms: list[Arm], cells: list[Cell]) -> Iterator[tuple[StudyPlace, str]]:
    """Yield an environment's own options that turn a workload into another one, so that it cannot be compared."""
    for arm in arms:
        for cell in cells:
            options = arm.workloads.get(cell.id, cell.options)
            place: StudyPlace = ("environments", arm.name.split("[")[0], "workloads", cell.workload)
            workload = registry.workloads()[cell.kind]
            if workload.fixed_port(options) != workload.fixed_port(cell.options):
                yield place, f"{arm.name}: {cell.workload} must have the same fixed port in every environment"
                break
            own, usual = (workload.roles(each) for each in (options, cell.options))
            if own != usual:
                difference = f"{cell.workload} has the roles {', '.join(own)} here and {', '.join(usual)} elsewhere"
                yield place, f"{arm.name}: {difference}. Give it its own workload"
                break


def needs_of(file: StudyFile, cells: list[Cell], client: str, arm: Arm) -> Needs:
    """Return what the study needs from an environment whose clients are on the host ``client``."""
    workloads, userlands = registry.workloads(), registry.userlands()
    server = file.placement.server or next(iter(file.hosts))
    roles = {"server": server, "client": client}
    own = [host for role, host in roles.items() if role in file.inside and host in file.hosts]
    # refused because of their own mistakes: these can need a network
    refused = {*file.workloads} - {cell.workload for cell in cells}
    return Needs(
        network=bool(refused) or any(workloads[cell.kind].transports(cell.options) for cell in cells),
        server_calls_client=any(workloads[cell.kind].server_calls_client for cell in cells),
        separate_hosts=server != client,
        hosts=_traits_of(file, [host for host in (server, client) if host in file.hosts]),
        inside=frozenset(file.inside),
        own_hosts=_traits_of(file, own),
        resources=file.resources if arm.resources is None else arm.resources,
        sysctls=frozenset(arm.sysctls),
        entered=any(workloads[cell.kind].enters(cell.options) for cell in cells),
        opened_at_once=any(_opens_at_once(workloads[cell.kind].openings(cell.options)) for cell in cells),
        image_files=any(
            _has_image_files(workloads[cell.kind].openings(arm.workloads.get(cell.id, cell.options)))
            for cell in cells
        ),
        of_this_machine=any(not userlands[arm.source(role, file).kind].packed for role in _roles(file, cells)),
    )


def _traits_of(file: StudyFile, names: Iterable[str]) -> dict[str, HostTraits]:
    """Return the traits of hosts by kind. If hosts of one kind have different traits, the name is added."""
    traits: dict[str, HostTraits] = {}
    for name in names:
        kind, own = file.hosts[name].kind, file.hosts[name].own_traits
        traits[kind if traits.get(kind, own) == own else f"{kind}, host {name}"] = own
    return traits


def _roles(file: StudyFile, cells: list[Cell]) -> set[Role]:
    """Return the roles of the workloads that are inside of the environments."""
    every = {role for cell in cells for role in registry.workloads()[cell.kind].roles(cell.options)}
    return {role for role in every if role == "solo" or role in file.inside}


def _out_of_range(file: StudyFile, arms: list[Arm]) -> Iterator[tuple[StudyPlace, str]]:
    """Yield numbers that are too large for any machine and for computations."""
    if file.seed > _LARGEST_SEED:
        yield ("seed",), f"seed: at most {_LARGEST_SEED}"
    places: dict[StudyPlace, Resources | None] = {("resources", "cpus"): file.resources}
    for arm in arms:
        places["environments", arm.name.split("[")[0], "resources", "cpus"] = arm.resources
    for place, resources in places.items():
        if resources is not None and resources.cpus is not None and not resources.cpus <= MOST_CPUS:
            yield place, f"cpus: must be at most {MOST_CPUS}, not {resources.cpus:g}"
