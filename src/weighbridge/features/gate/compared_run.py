"""Runs to compare: the data of each, and the facts and settings that differ between two."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from enum import StrEnum
from typing import Any

from weighbridge.analysis.analyse import Depth, analyse
from weighbridge.analysis.comparisons import values_by_metric
from weighbridge.analysis.conditions import PACKET_SIZES, Fact, Isolation, bare
from weighbridge.analysis.overload import standing_values
from weighbridge.analysis.paths import PathFigures, Paths
from weighbridge.analysis.plan import KIND, differing
from weighbridge.analysis.results import Analysis
from weighbridge.model.address import ArmId, CellId, MetricId
from weighbridge.model.facts import (
    HOST_DIFFERENCES,
    IDLE_CPUS,
    KERNEL,
    RUNTIME,
    RUNTIME_PROGRAM,
    RUNTIME_SUPERVISOR,
    NetworkPath,
    idle_code,
)
from weighbridge.model.host import MACHINE_ID, NODE, PLACED_BY
from weighbridge.model.isolation import OUTSIDE
from weighbridge.model.secret import hidden_options
from weighbridge.model.text import one_line
from weighbridge.model.userland import CLIENTS_SCOPE, USUAL_SCOPE, own_userland_scope, packages_scope
from weighbridge.store.run import RunStore, Value
from weighbridge.store.versions import measures_two_versions

SETTINGS_APART = frozenset({
    "study", "question", "baseline", "environments", "workloads", "repetitions", "equivalence", "seed", "ladder",
    "prometheus", "meters",
})  # fmt: skip
"""Parts of a study file that are compared elsewhere, or that do not change what is measured."""


@dataclass(frozen=True, slots=True)
class Described:
    """An environment, or a workload at a level, with the options in the study."""

    kind: str
    options: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class ComparedRun:
    """A run, read once. ``name`` is the name of its folder."""

    name: str
    analysis: Analysis
    created: float
    """The start of the run in seconds since the epoch; 0 if unknown."""
    version: str
    """The version of Weighbridge that made the run."""
    facts: Sequence[Fact] = field(repr=False)
    environments: Mapping[str, Described]
    """The environments without the A/A arm, which repeats the baseline."""
    cells: Mapping[CellId, Described]
    own_options: Mapping[ArmId, Mapping[str, Any]]
    """Options that a workload has in only one environment."""
    settings: Mapping[str, Any] | None
    """The rest of the study file with its defaults; None for a run from before it was stored as data."""
    values: Mapping[MetricId, Sequence[Value]] = field(repr=False)

    @property
    def margin(self) -> float | None:
        """The study's margin of equivalence, as a fraction."""
        return self.analysis.equivalence


def read_run(store: RunStore, name: str = "", depth: Depth = Depth.FULL) -> ComparedRun:
    """Read a run for `weighbridge.features.gate.between_runs.compare_runs`, or with less depth for `primary_changes`.

    Raises RunDirectoryError if the store cannot be read or is damaged.
    """
    analysis, info, study = analyse(store, depth), store.info(), store.study()
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
        settings = _without_trees(settings) if measures_two_versions(study) else settings
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


def _without_trees(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return settings without the folders of the checked-out versions, which are new in each run."""
    return {
        key: {name: each for name, each in value.items() if name != "folder"} if isinstance(value, Mapping) else value
        for key, value in settings.items()
    }


# -- facts --------------------------------------------------------------------------------------


class FactKind(StrEnum):
    """The subject of a fact, in the order that readers look for it."""

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
    """A fact that differs between two runs; "" if a run does not have it.

    ``place`` is a host ("" for this machine). ``environments`` are the ones whose sites have the fact.
    """

    kind: FactKind
    fact: str
    before: str
    after: str
    place: str = ""
    environments: tuple[str, ...] = ()

    def is_named(self, name: str) -> bool:
        """Return whether ``name`` names the fact: as stored, or with a colon as in ``sysctl:vm.swappiness``."""
        return self.fact in _names_of(name)

    @property
    def of_machine(self) -> bool:
        """Whether the fact means another machine, kernel or way to idle, which makes absolute values incomparable."""
        return self.kind in (
            FactKind.KERNEL, FactKind.MITIGATIONS, FactKind.CPU, FactKind.IDLE, FactKind.MACHINE,
        ) and not self.environments  # fmt: skip


_HOST_KINDS = {
    "kernel": FactKind.KERNEL, "kernel command line": FactKind.KERNEL, "mitigations": FactKind.MITIGATIONS,
    "launcher": FactKind.LAUNCHER, IDLE_CPUS: FactKind.IDLE, "mtu": FactKind.PATH, "offloads": FactKind.PATH,
    "link": FactKind.PATH, "CPU": FactKind.CPU, "CPUs online": FactKind.CPU, "CPUs": FactKind.CPU,
    "cores": FactKind.CPU, "microcode": FactKind.CPU, "SMT": FactKind.CPU, "frequency governor": FactKind.CPU,
}  # fmt: skip
"""The kinds of a host's facts; all other facts are about the machine."""
_ENGINE_VERSION = re.compile(r"version of (.+)")
_VOLATILE = ("load", "steal", "address", "clock", "packages", "userland", NODE, MACHINE_ID, PLACED_BY)
"""Facts that are never the same twice, digests of facts that are also listed by name, and names of machines."""
_LATER = ("model", "firmware")
"""Facts that older runs do not have; a missing value is not a change."""
_TIMED = "CPU time of"
"""The prefix of measured facts, which always differ."""
_SITE_ENGINE = frozenset({
    "docker", "dockerd", "containerd", "runc", "podman", "storage driver", "cgroup driver", "seccomp", "network",
    RUNTIME, RUNTIME_PROGRAM, RUNTIME_SUPERVISOR, "rootless", "lxc",
})  # fmt: skip


def changed_facts(first: ComparedRun, second: ComparedRun) -> tuple[FactChange, ...]:
    """Return every fact that differs, in the order of `FactKind`; a run with several sessions has the last one's."""
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
    """A fact that was named as changed on purpose is the same in all runs, or in none; one sentence for users."""


def _names_of(name: str) -> tuple[str, str]:
    """Return the names under which a fact can be stored; ``sysctl:vm.swappiness`` is stored with a space."""
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
        if scope == HOST_DIFFERENCES:  # about a run's own hosts and neighbours, so it is not a change
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
    """Yield changed facts of this machine, of other hosts, and of interfaces that existed before the run."""
    one, other = _by_scope(first), _by_scope(second)
    for scope in (each for each in one if each in other):  # a host that only one has is a difference of the study
        if scope.partition(" ")[0] == "host":
            for key, before, after in _differing_facts(one[scope], other[scope]):
                yield FactChange(_kind_of_host_fact(key), key, before, after, scope.partition(" ")[2])
    stood = [each.get("before", {}) for each in (one, other)]
    for key in stood[0]:  # an interface of only one run can be left over from another run
        if key.startswith("interface ") and stood[1].get(key, stood[0][key]) != stood[0][key]:
            yield FactChange(FactKind.PATH, key, stood[0][key], stood[1][key])


def _kind_of_host_fact(key: str) -> FactKind:
    return FactKind.ENGINE if _ENGINE_VERSION.match(key) else _HOST_KINDS.get(key, FactKind.MACHINE)


def machine_facts(facts: Iterable[Fact], hosts: Sequence[str]) -> tuple[Mapping[str, str], ...]:
    """Return the facts of the machine of each host, including its node and id, from the last session.

    A host without a node is on this machine: it has this machine's facts and its own.
    """
    by_scope: dict[str, dict[str, str]] = {}
    for scope, key, value, _ in facts:
        if scope == "host" or scope.startswith("host "):
            by_scope.setdefault(scope, {})[key] = idle_code(value) if key == IDLE_CPUS else value
    here, own = by_scope.get("host", {}), [by_scope.get(f"host {name}", {}) for name in hosts]
    return tuple(each if each.get(NODE) else {**here, **each} for each in own)


def comparable_facts(facts: Mapping[str, str]) -> dict[str, str]:
    """Return the facts of a machine that another machine can share."""
    return {
        key: value
        for key, value in facts.items()
        if key not in _VOLATILE and not key.startswith((_TIMED, "interface "))
    }


def path_facts(paths: Paths) -> dict[str, str]:
    """Return the known facts of each environment's path, such as ``MTU in bridge``."""
    return {
        f"{fact} in {environment}": value
        for (environment, _), path in paths.by_environment.items()
        for fact, value in _figures(path).items()
        if value and fact != "interfaces" and not (fact == "MSS" and path.loopback)
    }


def _of_sites(first: ComparedRun, second: ComparedRun) -> Iterable[FactChange]:
    """Yield differing facts of sites in environments that both runs have; equal changes are grouped."""
    one, other = _by_scope(first), _by_scope(second)
    environments = {*first.environments} & {*second.environments} | {OUTSIDE}
    alike: dict[tuple[FactKind, str, str, str], list[str]] = {}
    for scope in one:
        name, _, role = scope.partition("/")
        if not role or name not in environments or scope not in other:
            continue
        for key, before, after in _differing_facts(one[scope], other[scope]):
            kind = FactKind.KERNEL if key == KERNEL else _kind_of_site_fact(key)
            alike.setdefault((kind, key, before, after), []).append(name)
    for (kind, key, before, after), names in alike.items():
        yield FactChange(kind, key, before, after, environments=tuple(dict.fromkeys(names)))


def _kind_of_site_fact(key: str) -> FactKind:
    engine = key in _SITE_ENGINE or key.startswith("version")
    return FactKind.ENGINE if engine else FactKind.SITE


def _of_layers(first: ComparedRun, second: ComparedRun) -> Iterable[FactChange]:
    """Yield changes of an environment's hypervisors, such as from KVM to an emulator."""
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
    """Yield differences between an environment's paths: loopback, MTU, MSS, segmentation offload, translation."""
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
    loopback = before.loopback and after.loopback  # its MSS depends on the window of each connection
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
    """Yield changed package versions; if there are none, a root filesystem with a different digest."""
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
    """Yield measured programs whose files differ. A program missing in a run is a difference of the study."""
    before, after = (_by_scope(run).get("programs", {}) for run in (first, second))
    for name in before:
        if after.get(name, before[name]) != before[name]:
            yield FactChange(FactKind.PROGRAM, name, before[name][:12], after[name][:12])


def _of_weighbridge(first: ComparedRun, second: ComparedRun) -> Iterable[FactChange]:
    if first.version != second.version:
        yield FactChange(FactKind.WEIGHBRIDGE, "version", first.version, second.version)


# -- settings -----------------------------------------------------------------------------------


class Part(StrEnum):
    """The part of a study that a setting belongs to."""

    STUDY = "study"
    ENVIRONMENT = "environment"
    WORKLOAD = "workload"
    METRIC = "metric"


@dataclass(frozen=True, slots=True)
class SettingChange:
    """A setting that differs between two studies; ``name`` is the environment, the workload or ""."""

    part: Part
    name: str
    setting: str
    before: object
    after: object


@dataclass(frozen=True, slots=True)
class OnlyIn:
    """Something that only one run has; ``second`` is whether it is the second run."""

    part: Part
    name: str
    second: bool


class OtherQuestionError(ValueError):
    """Two runs cannot be compared; one sentence for users."""


def require_one_question(first: ComparedRun, second: ComparedRun) -> None:
    """Raise OtherQuestionError if the runs have different baselines, or nothing in common to compare."""
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
    """Return each setting that differs: of the study, and of environments and workloads that both have."""
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
    """Yield differences between options in one environment; by default, the workload's options apply."""
    for arm in dict.fromkeys((*first.own_options, *second.own_options)):
        if all(arm.cell in run.cells and arm.environment in run.environments for run in (first, second)):
            one, other = (run.own_options.get(arm, run.cells[arm.cell].options) for run in (first, second))
            yield from _changes(Part.WORKLOAD, arm.label, one, other)


def described_changes(
    part: Part, before: Mapping[str, Described], after: Mapping[str, Described]
) -> tuple[SettingChange, ...]:
    """Return each setting that differs for the environments, or the workloads, that both have."""
    common = [name for name in before if name in after]
    return tuple(change for name in common for change in _description_changes(part, name, before[name], after[name]))


def only_in(first: ComparedRun, second: ComparedRun) -> tuple[OnlyIn, ...]:
    """Return the environments, workloads and metrics that only one of the runs has."""
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
    """Return every environment with its own trials, including the A/A arm, which helps to judge both runs."""
    return [name for name in run.analysis.environments if name != run.analysis.baseline]


def _named_cells(run: ComparedRun) -> list[str]:
    return list(run.analysis.labels)


def _metrics(run: ComparedRun, other: ComparedRun) -> list[str]:
    """Return the metrics of workloads that both runs measured."""
    measured = {report.label for report in other.analysis.metrics}
    return [report.metric_id.label for report in run.analysis.metrics if report.label in measured]


def _description_changes(part: Part, name: str, before: Described, after: Described) -> list[SettingChange]:
    if before.kind != after.kind:
        return [SettingChange(part, name, KIND, before.kind, after.kind)]
    return _changes(part, name, before.options, after.options)


def _changes(part: Part, name: str, before: Mapping[str, Any], after: Mapping[str, Any]) -> list[SettingChange]:
    """Return changes of settings that both runs have. Every default is stored, so only old runs have missing ones."""
    common = before.keys() & after.keys()
    one, other = ({key: value for key, value in each.items() if key in common} for each in (before, after))
    return [
        SettingChange(part, name, each.setting, _plain(each.before), _plain(each.now))
        for each in differing(one, other)
    ]


def _plain(value: object) -> object:
    """Return a value that a set can hold: lists as tuples, mappings as their items."""
    if isinstance(value, Mapping):
        return tuple((str(key), _plain(each)) for key, each in value.items())
    if isinstance(value, Iterable) and not isinstance(value, str | bytes):
        return tuple(_plain(each) for each in value)
    return value
