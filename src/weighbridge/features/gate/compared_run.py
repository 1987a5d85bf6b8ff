"""Runs that are compared with one another: what each keeps, and which facts and settings differ between two."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from enum import StrEnum
from typing import Any

from weighbridge.analysis.analyse import analyse
from weighbridge.analysis.comparisons import values_by_metric
from weighbridge.analysis.conditions import PACKET_SIZES, Fact, Isolation, bare
from weighbridge.analysis.overload import standing_values
from weighbridge.analysis.paths import PathFigures, Paths
from weighbridge.analysis.plan import KIND, differing
from weighbridge.analysis.results import Analysis
from weighbridge.model.address import ArmId, CellId, MetricId
from weighbridge.model.facts import HOST_DIFFERENCES, IDLE_CPUS, NetworkPath, idle_code
from weighbridge.model.host import MACHINE_ID, NODE, PLACED_BY
from weighbridge.model.isolation import OUTSIDE
from weighbridge.model.secret import hidden_options
from weighbridge.model.text import one_line
from weighbridge.model.userland import CLIENTS_SCOPE, USUAL_SCOPE, own_userland_scope, packages_scope
from weighbridge.store.run import RunStore, Value

SETTINGS_APART = frozenset({
    "study", "question", "baseline", "environments", "workloads", "repetitions", "equivalence", "seed", "ladder",
    "prometheus", "meters",
})  # fmt: skip
"""Parts of a study file that are compared elsewhere, or that do not change what is measured."""


@dataclass(frozen=True, slots=True)
class Described:
    """An environment, or a workload at a level, as the study has it."""

    kind: str
    options: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class ComparedRun:
    """A run, read once. ``name`` is what the user calls it (its folder)."""

    name: str
    analysis: Analysis
    created: float
    """When it was begun, in seconds since the epoch; 0 where it is not known."""
    version: str
    """The version of Weighbridge that made it."""
    facts: Sequence[Fact] = field(repr=False)
    environments: Mapping[str, Described]
    """Without the A/A arm, which is the baseline again."""
    cells: Mapping[CellId, Described]
    own_options: Mapping[ArmId, Mapping[str, Any]]
    """The options that a workload has in one environment alone."""
    settings: Mapping[str, Any] | None
    """The rest of the study file, with its defaults; None of a run from before it was kept as data."""
    values: Mapping[MetricId, Sequence[Value]] = field(repr=False)

    @property
    def margin(self) -> float | None:
        """The study's margin of equivalence, as a fraction."""
        return self.analysis.equivalence


def read_run(store: RunStore, name: str = "") -> ComparedRun:
    """Read a run for `weighbridge.features.gate.between_runs.compare_runs`.

    Raises RunDirectoryError where the store cannot be read or is damaged.
    """
    analysis, info, study = analyse(store), store.info(), store.study()
    shown: Callable[[Any], Any] = hidden_options if store.secrets() is None else lambda options: options
    own = {
        ArmId(each.cell, arm.name): shown(each.options)
        for arm in (study.arms if study is not None else ())
        for each in arm.workloads
    }
    settings = None
    if study is not None:
        file = study.file.model_dump(mode="json")
        settings = shown({key: value for key, value in file.items() if key not in SETTINGS_APART})
    return ComparedRun(
        name=name or str(store.directory),
        analysis=analysis,
        created=float(info.get("created", 0.0)),
        version=info.get("version", ""),
        facts=store.facts(),
        environments={
            n: Described(kind, shown(options)) for n, kind, options, aa_of in store.environments() if not aa_of
        },
        cells={cell.id: Described(cell.kind, shown(cell.options)) for cell in store.cells()},
        own_options=own,
        settings=settings,
        values=values_by_metric(standing_values(store.values(), analysis.trials)),
    )


# -- facts --------------------------------------------------------------------------------------


class FactKind(StrEnum):
    """What a fact is about, in the order in which a reader looks for it."""

    KERNEL = "kernel"
    ENGINE = "engine"
    MITIGATIONS = "mitigations"
    PATH = "path"
    PACKAGES = "packages"
    PROGRAM = "program"
    LAUNCHER = "launcher"
    CPU = "cpu"
    WEIGHBRIDGE = "weighbridge"
    IDLE = "idle"
    MACHINE = "machine"
    SITE = "site"


@dataclass(frozen=True, slots=True)
class FactChange:
    """A fact that is not the same in both runs; "" where a run does not have it.

    ``place`` is a host ("" for this machine); ``environments`` are those at whose sites it is so.
    """

    kind: FactKind
    fact: str
    before: str
    after: str
    place: str = ""
    environments: tuple[str, ...] = ()

    def is_named(self, name: str) -> bool:
        """Whether ``name`` is the fact's: as it is kept, or ``sysctl:vm.swappiness`` for ``sysctl vm.swappiness``."""
        return self.fact in _names_of(name)

    @property
    def of_machine(self) -> bool:
        """Whether another machine (or kernel, or way to idle) is behind it: absolute rates cannot be compared."""
        return self.kind in (
            FactKind.KERNEL, FactKind.MITIGATIONS, FactKind.CPU, FactKind.IDLE, FactKind.MACHINE,
        ) and not self.environments  # fmt: skip


_HOST_KINDS = {
    "kernel": FactKind.KERNEL, "kernel command line": FactKind.KERNEL, "mitigations": FactKind.MITIGATIONS,
    "launcher": FactKind.LAUNCHER, IDLE_CPUS: FactKind.IDLE, "mtu": FactKind.PATH, "offloads": FactKind.PATH,
    "link": FactKind.PATH, "CPU": FactKind.CPU, "CPUs online": FactKind.CPU, "CPUs": FactKind.CPU,
    "cores": FactKind.CPU, "microcode": FactKind.CPU, "SMT": FactKind.CPU, "frequency governor": FactKind.CPU,
}  # fmt: skip
"""Facts of a host; all others are of the machine."""
_ENGINE_VERSION = re.compile(r"version of (.+)")
_VOLATILE = ("load", "steal", "address", "clock", "packages", "userland", NODE, MACHINE_ID, PLACED_BY)
"""Facts that are never the same twice, or digests of what is told by names; and names of machines."""
_LATER = ("model", "firmware")
"""Facts that older runs do not have: that one run has none is no change."""
_TIMED = "CPU time of"
"""How facts begin that are measured, and differ each time."""
_SITE_ENGINE = frozenset({
    "docker", "dockerd", "containerd", "runc", "podman", "storage driver", "cgroup driver", "runtime", "seccomp",
    "network", "rootless", "lxc",
})  # fmt: skip


def changed_facts(first: ComparedRun, second: ComparedRun) -> tuple[FactChange, ...]:
    """Give every fact that differs, in the order of `FactKind`; of several sessions of a run the last one's."""
    changes = [
        *_of_hosts(first, second),
        *_of_sites(first, second),
        *_of_layers(first, second),
        *_of_paths(first, second),
        *_of_packages(first, second),
        *_of_programs(first, second),
        *_of_weighbridge(first, second),
    ]
    order = list(FactKind)
    return tuple(sorted(changes, key=lambda each: order.index(each.kind)))


_LISTED, _LONGEST = 20, 100
"""The most names of facts in a message, and the most characters of a value."""


class FactNotChangedError(ValueError):
    """A fact that is said to have changed on purpose is the same in all runs, or in none: a sentence for people."""


def _names_of(name: str) -> tuple[str, str]:
    """The names by which a fact may be kept that somebody calls so: ``sysctl:vm.swappiness`` has a space there."""
    return name, name.replace(":", " ", 1)


def require_changed(name: str, changes: Sequence[Sequence[FactChange]], runs: Sequence[ComparedRun]) -> None:
    """Raise FactNotChangedError unless a fact of this name is among the ``changes`` between some of the runs."""
    if any(change.is_named(name) for pair in changes for change in pair):
        return
    values = dict.fromkeys(value for run in runs for _, key, value, _ in run.facts if key in _names_of(name))
    if len(values) == 1:
        value = one_line(next(iter(values)), _LONGEST)
        raise FactNotChangedError(f"'{name}' did not change between these runs ({value}): remove it")
    if values:
        raise FactNotChangedError(f"'{name}' differs between any two runs and is not compared: remove it")
    changed = dict.fromkeys(change.fact for pair in changes for change in pair)
    near = get_close_matches(_names_of(name)[1], changed, 1)
    more = f" and {len(changed) - _LISTED} more" if len(changed) > _LISTED else ""
    some = f"changed: {', '.join([*changed][:_LISTED])}{more}" if changed else "none changed"
    hint = f". Did you mean '{near[0]}'?" if near else f"; {some}"
    raise FactNotChangedError(f"no run has a fact '{name}'{hint}")


def _by_scope(run: ComparedRun) -> dict[str, dict[str, str]]:
    by_scope: dict[str, dict[str, str]] = {}
    for scope, key, value, _ in run.facts:
        if scope == HOST_DIFFERENCES:  # of each run's own hosts and neighbours: no fact that changed between two runs
            continue
        by_scope.setdefault(scope, {})[key] = idle_code(value) if key == IDLE_CPUS else value
    return by_scope


def _differing_facts(before: Mapping[str, str], after: Mapping[str, str]) -> Iterable[tuple[str, str, str]]:
    for key in dict.fromkeys((*before, *after)):
        unknown = key in _LATER and not (key in before and key in after)
        same = unknown or before.get(key, "") == after.get(key, "")
        if key not in _VOLATILE and not key.startswith(_TIMED) and not same:
            yield key, before.get(key, ""), after.get(key, "")


def _of_hosts(first: ComparedRun, second: ComparedRun) -> Iterable[FactChange]:
    """Facts of this machine and of other hosts; of volatile ones the interfaces that stood before the run."""
    one, other = _by_scope(first), _by_scope(second)
    for scope in (each for each in one if each in other):  # a host that only one has is a difference of the study
        if scope.partition(" ")[0] == "host":
            for key, before, after in _differing_facts(one[scope], other[scope]):
                yield FactChange(_kind_of_host_fact(key), key, before, after, scope.partition(" ")[2])
    stood = [each.get("before", {}) for each in (one, other)]
    for key in stood[0]:  # one that only one run has met may be what another run made
        if key.startswith("interface ") and stood[1].get(key, stood[0][key]) != stood[0][key]:
            yield FactChange(FactKind.PATH, key, stood[0][key], stood[1][key])


def _kind_of_host_fact(key: str) -> FactKind:
    return FactKind.ENGINE if _ENGINE_VERSION.match(key) else _HOST_KINDS.get(key, FactKind.MACHINE)


def machine_facts(facts: Iterable[Fact], hosts: Sequence[str]) -> tuple[Mapping[str, str], ...]:
    """Give the facts of the machine of each of these hosts, its node and id among them; the last session's.

    A host that does not say which node it is, is on this machine: it has the facts of this machine, and its own.
    """
    by_scope: dict[str, dict[str, str]] = {}
    for scope, key, value, _ in facts:
        if scope == "host" or scope.startswith("host "):
            by_scope.setdefault(scope, {})[key] = idle_code(value) if key == IDLE_CPUS else value
    here, own = by_scope.get("host", {}), [by_scope.get(f"host {name}", {}) for name in hosts]
    return tuple(each if each.get(NODE) else {**here, **each} for each in own)


def comparable_facts(facts: Mapping[str, str]) -> dict[str, str]:
    """Give those of a machine's facts that another one can have in common with it."""
    return {
        key: value
        for key, value in facts.items()
        if key not in _VOLATILE and not key.startswith((_TIMED, "interface "))
    }


def path_facts(paths: Paths) -> dict[str, str]:
    """Give what is known of each environment's path: ``MTU in bridge``."""
    return {
        f"{fact} in {environment}": value
        for (environment, _), path in paths.by_environment.items()
        for fact, value in _figures(path).items()
        if value and fact != "interfaces" and not (fact == "MSS" and path.loopback)
    }


def _of_sites(first: ComparedRun, second: ComparedRun) -> Iterable[FactChange]:
    """Differing facts of sites of environments that both runs have; those with the same change are named together."""
    one, other = _by_scope(first), _by_scope(second)
    environments = {*first.environments} & {*second.environments} | {OUTSIDE}
    alike: dict[tuple[FactKind, str, str, str], list[str]] = {}
    for scope in one:
        name, _, role = scope.partition("/")
        if not role or name not in environments or scope not in other:
            continue
        for key, before, after in _differing_facts(one[scope], other[scope]):
            kind = FactKind.KERNEL if key == "kernel" else _kind_of_site_fact(key)
            alike.setdefault((kind, key, before, after), []).append(name)
    for (kind, key, before, after), names in alike.items():
        yield FactChange(kind, key, before, after, environments=tuple(dict.fromkeys(names)))


def _kind_of_site_fact(key: str) -> FactKind:
    engine = key in _SITE_ENGINE or key.startswith("version")
    return FactKind.ENGINE if engine else FactKind.SITE


def _of_layers(first: ComparedRun, second: ComparedRun) -> Iterable[FactChange]:
    """The hypervisors that an environment is in: KVM then, an emulator now."""
    for name in (each for each in first.environments if each in second.environments):
        before, after = (_layers(run.analysis.isolation.get(name)) for run in (first, second))
        if before != after:
            yield FactChange(FactKind.ENGINE, "hypervisor", before, after, environments=(name,))


def _layers(isolation: Isolation | None) -> str:
    sites = isolation.sites if isolation is not None else ()
    return (
        ", ".join(dict.fromkeys(f"{site.names}{' (emulated)' if site.emulated else ''}" for site in sites)) or "none"
    )


def _of_paths(first: ComparedRun, second: ComparedRun) -> Iterable[FactChange]:
    """What differs between the paths of an environment: loopback, MTU, MSS, segmentation offload, translation."""
    alike: dict[tuple[str, str, str], list[str]] = {}
    one, other = first.analysis.paths.by_environment, second.analysis.paths.by_environment
    for where in (each for each in one if each in other and each[0] in first.environments):
        for fact, before, after in _path_changes(one[where], other[where]):
            alike.setdefault((fact, before, after), []).append(where[0])
    sizes = [_by_scope(run).get(PACKET_SIZES, {}) for run in (first, second)]
    for place in (each for each in sizes[0] if each in sizes[1]):
        if (before := bare(sizes[0][place])) != (after := bare(sizes[1][place])):
            name, _, label = place.partition("/")
            alike.setdefault((f"packet size of {label}", before, after), []).append(name)
    for (fact, before, after), names in alike.items():
        yield FactChange(FactKind.PATH, fact, before, after, environments=tuple(dict.fromkeys(names)))


def _path_changes(before: NetworkPath, after: NetworkPath) -> Iterable[tuple[str, str, str]]:
    sides = [_figures(path) for path in (before, after)]
    loopback = before.loopback and after.loopback  # whose MSS follows the window, from one connection to the next
    for fact in sides[0]:
        was, now = (side[fact] for side in sides)
        if was != now and not (fact == "MSS" and loopback):
            yield fact, was, now


def _figures(path: NetworkPath) -> dict[str, str]:
    figures = PathFigures.of(path)
    facts: dict[str, Any] = {
        "interfaces": " - ".join(dict.fromkeys(each.kind for each in path.interfaces)),
        "MTU": figures.mtu, "MSS": figures.mss, "routers": path.routers, "translation": path.translation,
        "segmentation offload": None if figures.segmentation is None else "on" if figures.segmentation else "off",
    }  # fmt: skip
    return {fact: "" if value is None else str(value) for fact, value in facts.items()}


def _of_packages(first: ComparedRun, second: ComparedRun) -> Iterable[FactChange]:
    """Packages of other versions; where there are none, a userland whose digest differs."""
    sides = [_by_scope(run) for run in (first, second)]
    own = [own_userland_scope(name) for name in first.environments]
    for scope in (USUAL_SCOPE, CLIENTS_SCOPE, *own):
        before, after = (each.get(packages_scope(scope), {}) for each in sides)
        changed = _differing_facts(before, after) if before and after else []
        package_changes = [FactChange(FactKind.PACKAGES, *each) for each in changed]
        yield from package_changes
        digests = [each.get(scope, {}).get("digest", "") for each in sides]
        if not package_changes and digests[0] != digests[1]:
            yield FactChange(FactKind.PACKAGES, scope, digests[0][:12], digests[1][:12])


def _of_programs(first: ComparedRun, second: ComparedRun) -> Iterable[FactChange]:
    """Measured programs that are other files; one that a run does not name is a difference of the study."""
    before, after = (_by_scope(run).get("programs", {}) for run in (first, second))
    for name in before:
        if after.get(name, before[name]) != before[name]:
            yield FactChange(FactKind.PROGRAM, name, before[name][:12], after[name][:12])


def _of_weighbridge(first: ComparedRun, second: ComparedRun) -> Iterable[FactChange]:
    if first.version != second.version:
        yield FactChange(FactKind.WEIGHBRIDGE, "version", first.version, second.version)


# -- settings -----------------------------------------------------------------------------------


class Part(StrEnum):
    """Which part of a study."""

    STUDY = "study"
    ENVIRONMENT = "environment"
    WORKLOAD = "workload"
    METRIC = "metric"


@dataclass(frozen=True, slots=True)
class SettingChange:
    """A setting that is not the same in both studies; ``name`` is the environment's or the workload's, or ""."""

    part: Part
    name: str
    setting: str
    before: object
    after: object


@dataclass(frozen=True, slots=True)
class OnlyIn:
    """What one run has and the other has not; ``second``: whether it is the second that has it."""

    part: Part
    name: str
    second: bool


class OtherQuestionError(ValueError):
    """Two runs cannot be compared: one sentence for people."""


def require_one_question(first: ComparedRun, second: ComparedRun) -> None:
    """Raise OtherQuestionError where the runs have another baseline, or nothing to compare in common."""
    one, other = first.analysis, second.analysis
    names = f"'{first.name}' and '{second.name}'"
    if one.baseline != other.baseline:
        raise OtherQuestionError(
            f"{names} have different baselines, '{one.baseline}' and '{other.baseline}': compare one study"
        )
    kinds = [run.environments[run.analysis.baseline].kind for run in (first, second)]
    if kinds[0] != kinds[1]:
        raise OtherQuestionError(
            f"{names} have different baselines: '{one.baseline}' is of kind {kinds[0]} in one and {kinds[1]} "
            "in the other: compare one study"
        )
    if not {*first.environments} & {*second.environments} - {one.baseline}:
        raise OtherQuestionError(f"{names} share only the baseline '{one.baseline}': compare runs of one study")
    if not first.cells.keys() & second.cells.keys():
        raise OtherQuestionError(f"{names} share no workload: compare runs of one study")


def changed_settings(first: ComparedRun, second: ComparedRun) -> tuple[SettingChange, ...]:
    """Give each setting that differs: of the study, of environments and of workloads that both have."""
    changes: list[SettingChange] = []
    titles = (first.analysis.study, second.analysis.study)
    if titles[0] != titles[1]:
        changes.append(SettingChange(Part.STUDY, "", "study", *titles))
    if first.margin != second.margin:
        changes.append(SettingChange(Part.STUDY, "", "equivalence", first.margin, second.margin))
    if first.settings is not None and second.settings is not None:
        changes += _changes(Part.STUDY, "", first.settings, second.settings)
    for name in (each for each in first.environments if each in second.environments):
        changes += _description_changes(Part.ENVIRONMENT, name, first.environments[name], second.environments[name])
    for cell in (each for each in first.cells if each in second.cells):
        changes += _description_changes(Part.WORKLOAD, cell.label, first.cells[cell], second.cells[cell])
    if first.settings is not None and second.settings is not None:
        changes += _own_options(first, second)
    return tuple(dict.fromkeys(changes))


def _own_options(first: ComparedRun, second: ComparedRun) -> Iterable[SettingChange]:
    """Differences between the options that a workload has in one environment alone; without any it has its own."""
    for arm in dict.fromkeys((*first.own_options, *second.own_options)):
        if all(arm.cell in run.cells and arm.environment in run.environments for run in (first, second)):
            one, other = (run.own_options.get(arm, run.cells[arm.cell].options) for run in (first, second))
            yield from _changes(Part.WORKLOAD, arm.label, one, other)


def described_changes(
    part: Part, before: Mapping[str, Described], after: Mapping[str, Described]
) -> tuple[SettingChange, ...]:
    """Give each setting that differs of the environments, or of the workloads, that both have."""
    common = [name for name in before if name in after]
    return tuple(change for name in common for change in _description_changes(part, name, before[name], after[name]))


def only_in(first: ComparedRun, second: ComparedRun) -> tuple[OnlyIn, ...]:
    """Give the environments, workloads and metrics that only one of the runs has."""
    one_sided: list[OnlyIn] = []
    for part, one, other in (
        (Part.ENVIRONMENT, _environments(first), _environments(second)),
        (Part.WORKLOAD, _named_cells(first), _named_cells(second)),
        (Part.METRIC, _metrics(first, second), _metrics(second, first)),
    ):
        one_sided += [OnlyIn(part, name, second=False) for name in one if name not in other]
        one_sided += [OnlyIn(part, name, second=True) for name in other if name not in one]
    return tuple(one_sided)


def _environments(run: ComparedRun) -> list[str]:
    """Every environment with a trial of its own, the A/A arm too, by which both are judged."""
    return [name for name in run.analysis.environments if name != run.analysis.baseline]


def _named_cells(run: ComparedRun) -> list[str]:
    return list(run.analysis.labels)


def _metrics(run: ComparedRun, other: ComparedRun) -> list[str]:
    """The metrics of the workloads that both have measured."""
    measured = {report.label for report in other.analysis.metrics}
    return [report.metric_id.label for report in run.analysis.metrics if report.label in measured]


def _description_changes(part: Part, name: str, before: Described, after: Described) -> list[SettingChange]:
    if before.kind != after.kind:
        return [SettingChange(part, name, KIND, before.kind, after.kind)]
    return _changes(part, name, before.options, after.options)


def _changes(part: Part, name: str, before: Mapping[str, Any], after: Mapping[str, Any]) -> list[SettingChange]:
    """Changes of settings that both runs have: every default is kept, so one is missing in an older version."""
    common = before.keys() & after.keys()
    one, other = ({key: value for key, value in each.items() if key in common} for each in (before, after))
    return [
        SettingChange(part, name, each.setting, _plain(each.before), _plain(each.now))
        for each in differing(one, other)
    ]


def _plain(value: object) -> object:
    """A value that can be kept in a set: lists as tuples, maps as their items."""
    if isinstance(value, Mapping):
        return tuple((str(key), _plain(each)) for key, each in value.items())
    if isinstance(value, Iterable) and not isinstance(value, str | bytes):
        return tuple(_plain(each) for each in value)
    return value
