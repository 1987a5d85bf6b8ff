"""What is wrong with a study although every key in it is right."""

from collections.abc import Iterator, Sequence

from weighbridge import registry
from weighbridge.model.ladder import Rung
from weighbridge.model.plugin import Needs
from weighbridge.model.study import Arm, Cell, StudyFile
from weighbridge.study.source import Place, nearest

AA_SUFFIX = "-again"
_LARGEST_SEED = 2**63 - 1
_MOST_CPUS = 8192


def contradictions(file: StudyFile, arms: list[Arm], cells: list[Cell]) -> Iterator[tuple[Place, str]]:
    """What is wrong although every key is right."""
    names = [arm.name for arm in arms]
    if file.baseline not in file.environments:
        yield ("baseline",), f"baseline '{file.baseline}' is not an environment{nearest(file.baseline, names)}"
    elif any(name.startswith(f"{file.baseline}[") for name in names):
        yield ("baseline",), f"baseline '{file.baseline}' is swept: the baseline is one environment"
    if file.aa and file.baseline + AA_SUFFIX in names:
        yield ("environments", file.baseline + AA_SUFFIX), f"'{file.baseline + AA_SUFFIX}' is the A/A arm's own name"
    for role, host in file.placement.items():
        if host not in file.hosts:
            yield ("placement", role), f"placement: there is no host '{host}'{nearest(host, file.hosts)}"
    yield from _unplaced(file)
    yield from _unreachable(file)
    yield from _mixed(arms, cells)
    yield from _missteps(file.ladder, names)
    needs = needs_of(file, cells)
    for arm in arms if set(file.placement.values()) <= set(file.hosts) else ():
        for problem in registry.environments()[arm.kind].problems(arm.options, needs=needs):
            yield ("environments", arm.name.split("[")[0]), f"{arm.name}: {problem}"
    if file.meters.source == "sysstat" and file.meters.hz > 1:
        yield ("meters", "hz"), f"hz: sysstat reads at most once a second, not {file.meters.hz:g} times"
    yield from _out_of_range(file)


def _missteps(ladder: Sequence[Rung], names: Sequence[str]) -> Iterator[tuple[Place, str]]:
    """Steps of a ladder that lead nowhere. Each adds to one above it, so that none adds to itself in a circle."""
    above: list[str] = []
    for number, (name, base) in enumerate(ladder):
        place: Place = ("ladder", number)
        if name not in names:
            if any(each.startswith(f"{name}[") for each in names):
                yield place, f"ladder: '{name}' is swept: each step is one environment"
            else:
                yield place, f"ladder: there is no environment '{name}'{nearest(name, names)}"
        elif name in above:
            yield place, f"ladder: '{name}' stands twice: an environment adds one step to one other"
        elif base == name:
            yield place, f"ladder: '{name}' adds to itself: name another environment that stands above it"
        elif base is not None and base not in above:
            below = any(base == rung.name for rung in ladder[number:])
            why = (
                "stands below it: list it above" if below else f"is not in the ladder above it{nearest(base, above)}"
            )
            yield place, f"ladder: '{name}' adds to '{base}', which {why}"
        above.append(name)


def _unplaced(file: StudyFile) -> Iterator[tuple[Place, str]]:
    """Hosts that nothing would run on: the study does not measure what it seems to."""
    names, used = list(file.hosts), set(file.placement.values())
    if len(names) > 1 and len(file.placement) < 2:
        example = f"placement: {{client: {names[0]}, server: {names[1]}}}"
        yield ("hosts",), f"hosts {' and '.join(names)}: say which role is on which ({example})"
    elif len(names) > 1:
        for name in names:
            if name not in used:
                yield ("hosts", name), f"no role is on host '{name}': name it in placement, or take it out"


def _unreachable(file: StudyFile) -> Iterator[tuple[Place, str]]:
    """Roles on two hosts that know no addresses of one another."""
    first = next(iter(file.hosts))
    names = [file.placement.get(role, first) for role in ("client", "server")]
    kinds = [file.hosts[name].kind for name in names if name in file.hosts]
    if names[0] != names[1] and len(kinds) == len(names) and set(kinds) not in ({"testbed"}, {"ssh"}):
        text = f"placement: {names[0]} ({kinds[0]}) and {names[1]} ({kinds[1]}) do not reach one another"
        yield ("placement",), f"{text}: two hosts are both of kind testbed, or both of kind ssh"


def _mixed(arms: list[Arm], cells: list[Cell]) -> Iterator[tuple[Place, str]]:
    """Options that choose between programs, with more than one value: no comparison mixes those."""
    for kind, workload in registry.workloads().items():
        mine = [cell for cell in cells if cell.kind == kind]
        every: list[tuple[Place, object]] = [(("workloads", cell.workload), cell.options) for cell in mine]
        for arm in arms:
            here: Place = ("environments", arm.name.split("[")[0], "workloads")
            own = ((cell.workload, arm.workloads.get((cell.workload, cell.level))) for cell in mine)
            every += [((*here, name), options) for name, options in own if options is not None]
        for option in workload.unmixed:
            values = {str(getattr(options, option)): place for place, options in every}
            if len(values) > 1:
                text = f"{option}: {' and '.join(values)} are different programs, and one study measures one of them"
                yield (*list(values.values())[-1], option), f"{text}: write a study for each"


def needs_of(file: StudyFile, cells: list[Cell]) -> Needs:
    """What the study asks of each of its environments."""
    kinds = [registry.workloads()[cell.kind] for cell in cells]
    first = next(iter(file.hosts))
    placed = {role: file.placement.get(role, first) for role in ("server", "client")}
    return Needs(
        network=any(workload.transports for workload in kinds),
        mutual=any(workload.mutual for workload in kinds),
        apart=placed["server"] != placed["client"],
        host_kinds=frozenset(file.hosts[host].kind for host in placed.values() if host in file.hosts),
        inside=frozenset(file.inside),
    )


def _out_of_range(file: StudyFile) -> Iterator[tuple[Place, str]]:
    """Numbers that no machine has and that what computes with them cannot take."""
    if file.seed > _LARGEST_SEED:
        yield ("seed",), f"seed: at most {_LARGEST_SEED}"
    if file.resources.cpus is not None and not file.resources.cpus <= _MOST_CPUS:
        yield ("resources", "cpus"), f"cpus: {file.resources.cpus:g} is more CPUs than any machine has"
    if isinstance(file.resources.pin, dict):
        for role, cpus in file.resources.pin.items():
            if not all(_is_cpu_range(part) for part in cpus.split(",")):
                text = f"{role}: '{cpus}' is not a list of CPUs: write it like 0 or 0-1 or 0,2"
                yield ("resources", "pin", role), text


def _is_cpu_range(part: str) -> bool:
    ends = part.split("-")
    if len(ends) > 2 or not all(end.isascii() and end.isdigit() and len(end) <= 4 for end in ends):
        return False
    return int(ends[0]) <= int(ends[-1]) < _MOST_CPUS
