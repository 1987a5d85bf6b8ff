"""What differs between the environments of a run besides the isolation."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace

from pydantic import ValidationError

from weighbridge.analysis.condition_remarks import (
    HostsDiffer,
    NotHonoured,
    NotMetered,
    OtherPacketSize,
    OtherPath,
    OtherValue,
    OwnOptions,
    PacketSizes,
    PathsUnrecorded,
)
from weighbridge.analysis.paths import Paths
from weighbridge.analysis.plan import Plan
from weighbridge.analysis.remarks import Remark
from weighbridge.model.facts import HOST_DIFFERENCES, OPEN_FILES, PROCESSES, HostDifference
from weighbridge.model.host import INTERRUPT_TIME
from weighbridge.model.isolation import OUTSIDE
from weighbridge.model.level import Level
from weighbridge.model.site import WAY_TO_COMPANIONS
from weighbridge.model.stored_study import StoredFile

Fact = tuple[str, str, str, float]
"""Scope, key, value, when."""

COMPARED = ("userland", "packages", "user", "limits", OPEN_FILES, PROCESSES, WAY_TO_COMPANIONS)
"""Facts of a site that have to be the same in every environment, beside those that start with ``version``."""


PACKET_SIZES = "packet sizes"
"""Scope of the size of what each workload sends in each environment: "ENVIRONMENT/WORKLOAD LABEL" -> "1418 B"."""

READABLE = 40
"""Letters from which a value is a digest, or a list, that says nothing to a reader."""


def confounders(
    facts: Iterable[Fact], baseline: str, environments: Sequence[str], study: StoredFile | None = None
) -> tuple[Remark, ...]:
    """Give what differs besides the isolation, from the facts of scopes ``environment`` or ``environment/role``.

    A key that starts with ``not honoured`` or ``not metered`` is one by itself; those in `COMPARED` and with
    ``version`` at the start are one where the value differs from that of the baseline's same role (or, where the
    baseline has none, from the userland's). So is what differs between the hosts (scope "host differences"), which is
    about every environment, and so are packet sizes that differ and options that a workload of `study` has in one
    environment alone.
    """
    facts = list(facts)
    by_site: dict[tuple[str, str], dict[str, str]] = {}
    hosts: dict[str, str] = {}
    for scope, key, value, _ in facts:
        if scope == HOST_DIFFERENCES:
            hosts[key] = value
        name, _, role = scope.partition("/")
        by_site.setdefault((name, role), {})[key] = value
    found: list[Remark] = [_hosts_differ(value) for value in hosts.values()]
    for (name, role), site in by_site.items():
        if name in (*environments, OUTSIDE):
            reference = {**by_site.get(("userland", ""), {}), **by_site.get((baseline, role), {})}
            found += _by_itself(name, site)
            if name not in (baseline, OUTSIDE):
                found += _different(name, site, reference, baseline)
    sizes = _sizes(packet_sizes(facts), baseline, environments)
    told = {each.environment: each.labels for each in sizes}
    found += [each for name in environments for each in _own_options(study, name, told.get(name, frozenset()))]
    return (*dict.fromkeys(found), *sizes)


def _hosts_differ(value: str) -> HostsDiffer:
    try:
        return HostsDiffer(HostDifference.model_validate_json(value))
    except ValidationError:
        return HostsDiffer(None, value)


def _by_itself(name: str, site: Mapping[str, str]) -> list[Remark]:
    return [
        remark(name, key.removeprefix(prefix).lstrip(": "), value)
        for key, value in site.items()
        for prefix, remark in (("not honoured", NotHonoured), ("not metered", NotMetered))
        if key.startswith(prefix)
    ]


def _different(name: str, site: Mapping[str, str], reference: Mapping[str, str], baseline: str) -> list[OtherValue]:
    found = []
    for key, value in site.items():
        if (key in COMPARED or key.startswith("version")) and reference.get(key, value) != value:
            what = key.removeprefix("version").lstrip(": ") or "version"
            values = (value, reference[key]) if max(len(value), len(reference[key])) <= READABLE else ()
            found.append(OtherValue(name, what, baseline, *values))
    return found


def packet_sizes(facts: Iterable[Fact]) -> dict[str, str]:
    """Give the facts of scope "packet sizes": "ENVIRONMENT/WORKLOAD LABEL" -> "1418 B", perhaps "1472 B (probed)"."""
    return {key: value for scope, key, value, _ in facts if scope == PACKET_SIZES}


def interrupt_times(facts: Iterable[Fact]) -> frozenset[str]:
    """Give the `InterruptTime` of this machine and of the other hosts; empty for a run made before it was noted.

    Where all roles were elsewhere this machine's is among them too.
    """
    return frozenset(
        value for scope, key, value, _ in facts if key == INTERRUPT_TIME and scope.partition(" ")[0] == "host"
    )


def bare(size: str) -> str:
    """A packet size without how it was found: a probed and a given size are the same when they are as large."""
    return size.split(" (", maxsplit=1)[0]


def _sizes(sizes: Mapping[str, str], baseline: str, environments: Sequence[str]) -> list[PacketSizes]:
    """Each environment with other packet sizes than the baseline."""
    found = []
    for name in environments:
        by_size: dict[OtherPacketSize, list[str]] = {}
        for place, size in sizes.items():
            environment, _, label = place.partition("/")
            reference = sizes.get(f"{baseline}/{label}")
            if environment == name and reference is not None and bare(size) != bare(reference):
                by_size.setdefault(OtherPacketSize(bare(size), bare(reference)), []).append(label)
        if by_size:
            mine = tuple((each, tuple(labels)) for each, labels in by_size.items())
            found.append(PacketSizes(name, baseline, mine))
    return found


def _own_options(study: StoredFile | None, environment: str, told: Collection[str]) -> list[OwnOptions]:
    """The options that workloads have in one environment alone, but for those of the labels `told` already."""
    own = study.environments.get(environment) if study is not None else None
    known = {label.split(" (")[0] for label in told}
    found = tuple(
        (workload, tuple((key, str(value)) for key, value in options.items()))
        for workload, options in ((own.workloads or {}).items() if own is not None else ())
        if workload not in known
    )
    return [OwnOptions(environment, found)] if found else []


def different_paths(paths: Paths, plan: Plan, labels: Mapping[tuple[str, Level], str]) -> tuple[Remark, ...]:
    """Give, for each environment, where its network path differs from the baseline's.

    A run from before paths were recorded says that.
    """
    if paths.networked is None:
        return (PathsUnrecorded(),) if len(plan.environments) > 1 else ()
    several = len(paths.clients) > 1
    alike: dict[OtherPath, dict[str, None]] = {}
    for workload, level in labels:
        for name in plan.compared_on(workload, level):
            if unlike := paths.difference(workload, level, name, plan.baseline):
                place = paths.place(paths.client_of(level)) if several else None
                alike.setdefault(OtherPath(unlike, place=place), {})[name] = None
    return tuple(replace(each, environments=tuple(names)) for each, names in alike.items())
