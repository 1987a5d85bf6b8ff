"""Turns a study file into a checked Study: expands sweeps, and reports mistakes with file, line and key."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Annotated, Literal

from pydantic import Field, SerializeAsAny, StrictBool

from weighbridge import registry
from weighbridge.errors import StudyError
from weighbridge.model.address import CellId
from weighbridge.model.level import CLIENT, Level
from weighbridge.model.options import Name, Options, by_kind
from weighbridge.model.plugin import Plugin
from weighbridge.model.quantity import Size
from weighbridge.model.spelling import nearest
from weighbridge.model.stored_study import study_json
from weighbridge.model.study import Arm, Cell, Resources, Study, StudyFile
from weighbridge.model.sysctl import Sysctl, SysctlValue
from weighbridge.model.userland_source import SourceOptions
from weighbridge.model.validation import is_hidden
from weighbridge.secret_values import refuse_values_in
from weighbridge.study import of_workloads
from weighbridge.study.compose import Normalised
from weighbridge.study.compose_key import expanded
from weighbridge.study.contradictions import AA_SUFFIX, contradictions
from weighbridge.study.explained import explained, wrong_names
from weighbridge.study.secret_keys import without_secrets, wrong_references
from weighbridge.study.source import Origin, Source, StudyPlace, parse, plain, read, written
from weighbridge.study.sweeps import at_level, levels, place_of, sweep_problem, with_own
from weighbridge.study.validated import validated


def load(study: str | Origin) -> Study:
    """Return a bundled study, or the study in a file. StudyError lists every mistake, a line each."""
    return check(read(study))


def with_blocks(study: Study, blocks: int) -> Study:
    """Return the study with this number of rounds instead of its own repetitions, also in its text."""
    from ruamel.yaml import YAML

    yaml = YAML(typ="rt")
    yaml.preserve_quotes = True
    data = yaml.load(study.text)
    rule = yaml.map(rounds=blocks)
    rule.fa.set_flow_style()
    data["repetitions"] = rule
    again = check(parse(written(data), study.file.study))
    return again.model_copy(update={"lines": study.lines, "compose": study.compose})


def check(source: Source, normalised: Normalised | None = None) -> Study:
    """Check a parsed study file. StudyError lists every mistake, a line each.

    ``normalised`` reads the Compose file if the study names one. It raises Unavailable if it cannot.
    """
    problems: list[tuple[StudyPlace, str]] = [*wrong_references(source.data)]
    source, compose_file = expanded(source, normalised)
    source = without_secrets(source)
    file = validated(StudyFile, source.data, (), problems)
    arms: list[Arm] = []
    cells: list[Cell] = []
    if file is not None:
        for name, level, kind, options in _expand("workloads", source, file, registry.workloads(), problems):
            cell = Cell(workload=name, kind=kind, level=level, options=options)
            for each in of_workloads.placed_on_sites(cell, source.data["workloads"][name]):
                cells += _placed(file, each)
        problems += of_workloads.wrong(source.data, file)
        own = {name: own_options(name, source, cells, problems) for name in file.environments}
        for name, level, kind, options in _expand("environments", source, file, registry.environments(), problems):
            common_options = _of_environment(name, source, problems)
            arms.append(
                Arm(
                    name=_swept_name(name, level),
                    kind=kind,
                    options=options,
                    userland=common_options.userland,
                    workloads=own[name],
                    clients=common_options.clients,
                    optional=common_options.optional,
                    resources=None
                    if common_options.resources is None
                    else file.resources.beneath(common_options.resources),
                    shm_size=common_options.shm_size,
                    sysctls=common_options.sysctls or {},
                )
            )
        problems += [*contradictions(file, arms, cells), *of_workloads.contradictions(file, arms, cells)]
        problems += wrong_names(file, arms)
    if problems or file is None:
        problems.sort(key=lambda problem: source.line(problem[0]))
        raise StudyError("\n".join(f"{source.where(place)}: {plain(message, 500)}" for place, message in problems))
    if file.aa:
        again = next(arm for arm in arms if arm.name == file.baseline)
        arms.append(again.model_copy(update={"name": file.baseline + AA_SUFFIX, "aa_of": file.baseline}))
    further, mechanisms = explained(file, [arm for arm in arms if arm.declared], cells)
    arms += further
    lines = {("environments", arm.name): source.where(("environments", arm.name.split("[")[0])) for arm in arms}
    lines |= {("hosts", host): source.where(("hosts", host)) for host in file.hosts}
    lines |= {("workloads", name): source.where(("workloads", name)) for name in file.workloads}
    study = Study(
        text=source.text, file=file, arms=tuple(arms), cells=tuple(cells), lines=lines, compose=compose_file,
        mechanisms=mechanisms,
    )  # fmt: skip
    refuse_values_in(study.text, study_json(study))
    return study


class _OfEnvironment(Options):
    """Options of every environment, whatever its kind.

    ``userland``: the root filesystem with its programs, if it needs another one. ``clients``: the hosts whose clients
    it is measured with. ``optional``: it can be left out. ``resources``: its own limits, which override the study's.
    ``shm_size``: the size of /dev/shm in its sites. ``sysctls``: kernel settings of its sites.
    """

    userland: Annotated[SerializeAsAny[SourceOptions] | None, by_kind("userland", "a userland")] = None
    clients: tuple[Name, ...] | None = None
    optional: StrictBool = False
    resources: Resources | None = None
    shm_size: Annotated[Size, Field(ge=2**20)] | None = None
    sysctls: Annotated[dict[Sysctl, SysctlValue], Field(min_length=1)] | None = None


def _of_environment(name: str, source: Source, problems: list[tuple[StudyPlace, str]]) -> _OfEnvironment:
    entry = source.data["environments"][name]
    values = {key: entry[key] for key in _OfEnvironment.model_fields if key in entry}
    return validated(_OfEnvironment, values, ("environments", name), problems) or _OfEnvironment()


def _placed(file: StudyFile, cell: Cell) -> list[Cell]:
    """Return the cell once for each host of the clients, or the cell itself if the workload has no client."""
    hosts = file.placement.clients or (next(iter(file.hosts)),)
    if "client" not in registry.workloads()[cell.kind].roles(cell.options):
        return [cell]
    if not isinstance(file.placement.client, list):
        return [cell.model_copy(update={"client": hosts[0]})]
    placed = [(host, cell.level.with_value(CLIENT, host)) for host in hosts]
    return [cell.model_copy(update={"client": host, "level": level}) for host, level in placed]


def _swept_name(name: str, level: Level) -> str:
    return f"{name}[{','.join(f'{factor}={value}' for factor, value in level)}]" if level else name


def _expand(
    section: Literal["environments", "workloads"],
    source: Source,
    file: StudyFile,
    plugins: Mapping[str, Plugin],
    problems: list[tuple[StudyPlace, str]],
) -> Iterator[tuple[str, Level, str, Options]]:
    """Yield each entry of a section at each of its levels: name, level, kind, checked options."""
    for name in getattr(file, section):
        entry, place = dict(source.data[section][name]), (section, name)
        kind = entry.pop("kind", None)
        if section == "environments":
            for key in ("workloads", *_OfEnvironment.model_fields):
                entry.pop(key, None)  # keys of every environment, which are read elsewhere
        else:
            entry = of_workloads.without(entry, kind)
        if kind is None:
            problems.append((place, f"'{name}' needs a kind{_known_kinds(plugins)}"))
            continue
        if not isinstance(kind, str):
            problems.append(((*place, "kind"), f"kind cannot be swept: write one name{_known_kinds(plugins)}"))
            continue
        if kind not in plugins:
            hint = nearest(kind, plugins) or _known_kinds(plugins)
            wrong = "" if is_hidden(kind, ()) else f" '{plain(kind, 60)}'"
            problems.append(((*place, "kind"), f"{name}: unknown kind{wrong}{hint}"))
            continue
        model = plugins[kind].options
        problems_before = len(problems)
        if (problem := sweep_problem(entry, model)) is not None:
            problems.append(((*place, *problem[0]), problem[1]))
            continue
        level_by_options: dict[str, Level] = {}
        for level, values in levels(entry, model):
            options = validated(model, values, place, problems)
            if options is None or len(problems) > problems_before:
                break  # the other levels of this entry would repeat the same mistakes
            if (same := level_by_options.setdefault(repr(options), level)) is not level:
                factor, one, other = next((*a, b[1]) for a, b in zip(same, level, strict=True) if a != b)
                problems.append(
                    (
                        (*place, *place_of(entry, model, factor)),
                        f"{factor}: the levels {one} and {other} are the same. Remove one",
                    )
                )
                break
            yield name, level, kind, options


def _known_kinds(plugins: Iterable[str]) -> str:
    return f". Known kinds: {', '.join(plugins)}"


def own_options(
    environment: str, source: Source, cells: list[Cell], problems: list[tuple[StudyPlace, str]]
) -> dict[CellId, Options]:
    """Return the checked options of workloads that this environment overrides."""
    entry = source.data["environments"][environment]
    mine = entry.get("workloads") if isinstance(entry, Mapping) else None
    if mine is None:
        return {}
    place: StudyPlace = ("environments", environment, "workloads")
    if not isinstance(mine, Mapping):
        problems.append((place, "workloads: write 'NAME: {options}' for each workload with other options here"))
        return {}
    own_options = {}
    for name, changed in mine.items():
        own_cells = [cell for cell in cells if cell.workload == name]
        if not own_cells and name in source.data.get("workloads", {}):
            continue  # the mistake in the workload itself is already reported
        if not own_cells or not isinstance(changed, Mapping):
            hint = nearest(str(name), [cell.workload for cell in cells])
            problems.append(((*place, name), f"there is no workload '{plain(str(name), 60)}'{hint}"))
            continue
        model = registry.workloads()[own_cells[0].kind].options
        for cell in own_cells:
            own = with_own(at_level(source.data["workloads"][name], model, cell.level), model, changed)
            values = of_workloads.without(own, own_cells[0].kind)
            values.pop("kind", None)
            options = validated(model, values, (*place, name), problems)
            if options is None:
                break
            own_options[cell.id] = options
    return own_options
