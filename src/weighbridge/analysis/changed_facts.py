"""Which facts of the machine, the engine, the paths and the programs differ between two runs."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from weighbridge.analysis.compared_run import ComparedRun
from weighbridge.analysis.conditions import PACKET_SIZES, Isolation, bare
from weighbridge.analysis.paths import PathFigures
from weighbridge.model.facts import IDLE_CPUS, NetworkPath, idle_code
from weighbridge.model.isolation import OUTSIDE
from weighbridge.model.userland import own_userland_scope


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
_VOLATILE = ("load", "steal", "address", "clock", "packages", "userland")
"""Facts that are never the same twice, or digests of what is told by names."""
_TIMED = "CPU time of"
"""How facts begin that are measured, and differ each time."""
_SITE_ENGINE = frozenset({
    "docker", "dockerd", "containerd", "runc", "podman", "storage driver", "cgroup driver", "runtime", "seccomp",
    "network", "rootless", "lxc",
})  # fmt: skip


def changed_facts(first: ComparedRun, second: ComparedRun) -> tuple[FactChange, ...]:
    """Give every fact that differs, in the order of `FactKind`; of several sessions of a run the last one's."""
    found = [
        *_of_hosts(first, second),
        *_of_sites(first, second),
        *_of_layers(first, second),
        *_of_paths(first, second),
        *_of_packages(first, second),
        *_of_programs(first, second),
        *_of_weighbridge(first, second),
    ]
    order = list(FactKind)
    return tuple(sorted(found, key=lambda each: order.index(each.kind)))


def _by_scope(run: ComparedRun) -> dict[str, dict[str, str]]:
    found: dict[str, dict[str, str]] = {}
    for scope, key, value, _ in run.facts:
        found.setdefault(scope, {})[key] = idle_code(value) if key == IDLE_CPUS else value
    return found


def _different(before: Mapping[str, str], after: Mapping[str, str]) -> Iterable[tuple[str, str, str]]:
    for key in dict.fromkeys((*before, *after)):
        if key not in _VOLATILE and not key.startswith(_TIMED) and before.get(key, "") != after.get(key, ""):
            yield key, before.get(key, ""), after.get(key, "")


def _of_hosts(first: ComparedRun, second: ComparedRun) -> Iterable[FactChange]:
    """Facts of this machine and of other hosts; of volatile ones the interfaces that stood before the run."""
    one, other = _by_scope(first), _by_scope(second)
    for scope in (each for each in one if each in other):  # a host that only one has is a difference of the study
        if scope.partition(" ")[0] == "host":
            for key, before, after in _different(one[scope], other[scope]):
                yield FactChange(_kind_of_host_fact(key), key, before, after, scope.partition(" ")[2])
    stood = [each.get("before", {}) for each in (one, other)]
    for key in stood[0]:  # one that only one run has met may be what another run made
        if key.startswith("interface ") and stood[1].get(key, stood[0][key]) != stood[0][key]:
            yield FactChange(FactKind.PATH, key, stood[0][key], stood[1][key])


def _kind_of_host_fact(key: str) -> FactKind:
    return FactKind.ENGINE if _ENGINE_VERSION.match(key) else _HOST_KINDS.get(key, FactKind.MACHINE)


def _of_sites(first: ComparedRun, second: ComparedRun) -> Iterable[FactChange]:
    """Facts of the sites of environments that both have; those that say the same are told together."""
    one, other = _by_scope(first), _by_scope(second)
    known = {*first.environments} & {*second.environments} | {OUTSIDE}
    alike: dict[tuple[FactKind, str, str, str], list[str]] = {}
    for scope in one:
        name, _, role = scope.partition("/")
        if not role or name not in known or scope not in other:
            continue
        for key, before, after in _different(one[scope], other[scope]):
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
    one, other = first.analysis.paths.known, second.analysis.paths.known
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
    given: dict[str, Any] = {
        "interfaces": " - ".join(dict.fromkeys(each.kind for each in path.interfaces)),
        "MTU": figures.mtu, "MSS": figures.mss, "routers": path.routers, "translation": path.translation,
        "segmentation offload": None if figures.segmentation is None else "on" if figures.segmentation else "off",
    }  # fmt: skip
    return {fact: "" if value is None else str(value) for fact, value in given.items()}


def _of_packages(first: ComparedRun, second: ComparedRun) -> Iterable[FactChange]:
    """Packages of other versions; a userland of another digest without any is told by that."""
    sides = [_by_scope(run) for run in (first, second)]
    own = [own_userland_scope(name) for name in first.environments]
    for scope in ("userland", "client userland", *own):
        before, after = (each.get(f"{scope} packages", {}) for each in sides)
        changed = _different(before, after) if before and after else []
        found = [FactChange(FactKind.PACKAGES, *each) for each in changed]
        yield from found
        digests = [each.get(scope, {}).get("digest", "") for each in sides]
        if not found and digests[0] != digests[1]:
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
