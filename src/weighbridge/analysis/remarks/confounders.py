"""Remarks about differences between environments other than isolation."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from pydantic import ValidationError

from weighbridge.analysis.conditions import (
    COMPARED,
    COMPARED_BEGINNINGS,
    PACKET_SIZES,
    READABLE,
    Fact,
)
from weighbridge.analysis.context import Context
from weighbridge.analysis.plan import Comparisons
from weighbridge.analysis.remarks.network import PacketSizes, other_sizes
from weighbridge.analysis.remarks.rules import (
    AboutEnvironment,
    ComparisonInRun,
    SiteFacts,
    about_comparison,
    about_run,
    about_site,
)
from weighbridge.analysis.results import Remark, RemarkPlace
from weighbridge.model.facts import (
    ASKED_CONFINEMENT,
    ASKED_FOR,
    CONFINEMENT,
    HOST_DIFFERENCES,
    IO_URING,
    IO_URING_ALLOWED,
    IO_URING_REFUSED,
    NOT_COVERED,
    HostDifference,
)
from weighbridge.model.isolation import OUTSIDE
from weighbridge.model.stored_study import StoredFile, is_weighed


@dataclass(frozen=True, slots=True)
class Confounder(AboutEnvironment):
    """A difference of an environment besides the isolation."""

    code = "confounder"


@dataclass(frozen=True, slots=True)
class OtherDurability(Remark):
    """The environment's durability differs from the baseline's; empty if unknown.

    In a comparison, ``environment`` and ``labels`` are empty.
    """

    code = "durability"
    placement = RemarkPlace.SENTENCE
    durability: str
    baseline_durability: str
    baseline: str
    environment: str = ""
    labels: tuple[str, ...] = ()


@about_comparison(220)
def _other_durability(comparison: ComparisonInRun) -> Iterator[Remark]:
    context, (baseline, environment), label = comparison.context, comparison.sides, comparison.report.label
    if not context.keep_alike(environment, baseline, label):
        yield OtherDurability(*context.durabilities(environment, baseline, label), baseline)


@dataclass(frozen=True, slots=True)
class HostsDiffer(Remark):
    """The run's hosts differ. In old runs, ``sentence`` describes the difference."""

    code = "confounder"
    difference: HostDifference | None
    sentence: str = ""


def _hosts_differ(differences: Mapping[str, str]) -> Iterator[HostsDiffer]:
    beside: dict[tuple[str, str], None] = {}
    for value in differences.values():
        try:
            difference = HostDifference.model_validate_json(value)
        except ValidationError:
            yield HostsDiffer(None, value)
            continue
        if difference.kind == "beside":  # one note for each run
            beside |= dict.fromkeys(difference.values)
        else:
            yield HostsDiffer(difference)
    if beside:
        yield HostsDiffer(HostDifference(kind="beside", values=tuple(beside)))


@dataclass(frozen=True, slots=True)
class NotHonoured(Confounder):
    """A limit that an environment could not honour, with the value of its fact."""

    limit: str
    reason: str


@dataclass(frozen=True, slots=True)
class NotMetered(Confounder):
    """A quantity that no meter of an environment reads, and the reason."""

    quantity: str
    reason: str


@dataclass(frozen=True, slots=True)
class NotCovered(Confounder):
    """A part of the common policy of sandboxes that an environment does not cover, and its behaviour instead."""

    part: str
    instead: str


@about_site(10)
def _not_honoured_or_metered(site: SiteFacts) -> Iterator[Remark]:
    kinds = {"not honoured": NotHonoured, "not metered": NotMetered, NOT_COVERED: NotCovered}
    for key, value in site.facts.items():
        for prefix, kind in kinds.items():
            if key.startswith(prefix):
                yield kind(site.environment, key.removeprefix(prefix).lstrip(": "), value)


@dataclass(frozen=True, slots=True)
class OtherValue(Confounder):
    """A fact of a site that differs from the baseline's; both values are empty if they are digests or too long."""

    fact: str
    baseline: str
    value: str = ""
    baseline_value: str = ""


@about_site(20)
def _other_value(site: SiteFacts) -> Iterator[Remark]:
    """Yield differences of compared facts and of the confinement, except those that the study asked for."""
    if site.environment in (site.baseline, OUTSIDE):
        return
    compared = {*COMPARED, *_confinement_not_asked_for(site)}
    by_study = {fact for side in (site.facts, site.baseline_facts) for fact in side.get(ASKED_FOR, "").split(", ")}
    for key, value in site.facts.items():
        other = site.baseline_facts.get(key, value)
        is_compared = key not in by_study and (key in compared or key.startswith(COMPARED_BEGINNINGS))
        if is_compared and other != value:
            fact = key.removeprefix("version").lstrip(": ") or "version"
            values = (value, other) if max(len(value), len(other)) <= READABLE else ()
            yield OtherValue(site.environment, fact, site.baseline, *values)


def _confinement_not_asked_for(site: SiteFacts) -> set[str]:
    """Return the facts of confinement that are not due to the kind or options of either side.

    Old runs did not record this and have none.
    """
    sides = [facts.get(ASKED_CONFINEMENT) for facts in (site.facts, site.baseline_facts)]
    asked = {each for side in sides if side is not None for each in side.split(", ")}
    return set() if None in sides else {*CONFINEMENT} - asked


@dataclass(frozen=True, slots=True)
class IoUringRefused(Confounder):
    """One side cannot use io_uring, and the other side can. Programs that want it use other system calls there."""

    refusing: str
    """The side that cannot use it: the environment or its baseline."""
    state: str
    """The fact of that side, "refused (EPERM, seccomp)"."""
    allowing: str


@about_site(30)
def _io_uring(site: SiteFacts) -> Iterator[Remark]:
    """Yield the side that refuses io_uring. Older runs have no such fact; an unknown state does not count."""
    states = {site.environment: site.facts.get(IO_URING, ""), site.baseline: site.baseline_facts.get(IO_URING, "")}
    refusing = [name for name, state in states.items() if state.startswith(IO_URING_REFUSED)]
    allowing = [name for name, state in states.items() if state == IO_URING_ALLOWED]
    if site.environment != OUTSIDE and refusing and allowing:
        yield IoUringRefused(site.environment, refusing[0], states[refusing[0]], allowing[0])


@dataclass(frozen=True, slots=True)
class OwnOptions(Confounder):
    """Options that workloads have in only this environment."""

    workloads: tuple[tuple[str, tuple[tuple[str, str], ...]], ...]


def _own_options(
    study: StoredFile | None, environments: Sequence[str], sizes: Sequence[PacketSizes]
) -> Iterator[OwnOptions]:
    """Yield own options of workloads, unless packet sizes cover them or the question of ``weigh`` names them."""
    if study is None or is_weighed(study.study):
        return
    for name in environments:
        own = study.environments.get(name)
        labels = {label.split(" (")[0] for each in sizes if each.environment == name for label in each.labels}
        workloads = tuple(
            (workload, tuple((key, str(value)) for key, value in options.items()))
            for workload, options in ((own.workloads or {}).items() if own is not None else ())
            if workload not in labels
        )
        if workloads:
            yield OwnOptions(name, workloads)


@about_run(20)
def _other_durabilities(context: Context) -> Iterator[Remark]:
    labels: dict[OtherDurability, list[str]] = {}
    for place in context.durability:
        environment, _, label = place.partition("/")
        if not context.keep_alike(environment, against := context.plan.against(environment), label):
            both = context.durabilities(environment, against, label)
            unlike = OtherDurability(*both, against, environment)
            labels.setdefault(unlike, []).append(label)
    yield from (replace(unlike, labels=tuple(mine)) for unlike, mine in labels.items())


def confounders(
    facts: Iterable[Fact], compared: Mapping[str, str], study: StoredFile | None = None
) -> tuple[Remark, ...]:
    """Return the differences besides the isolation, between hosts and between the sites of environments.

    ``compared`` has each environment with the one that it is compared with. The scope of a site's facts is
    ``ENVIRONMENT`` or ``ENVIRONMENT/ROLE``. The last remarks are about options that a workload of `study` has in only
    one environment, and about packet sizes that differ.
    """
    facts = list(facts)
    sites: dict[tuple[str, str], dict[str, str]] = {}
    for scope, key, value, _ in facts:
        name, _, role = scope.partition("/")
        sites.setdefault((name, role), {})[key] = value
    remarks: list[Remark] = [*_hosts_differ(sites.get((HOST_DIFFERENCES, ""), {}))]
    for (name, role), site in sites.items():
        if name in (*compared, OUTSIDE):
            baseline = compared.get(name, name)
            reference = {**sites.get(("userland", ""), {}), **sites.get((baseline, role), {})}
            remarks += about_site.remarks(SiteFacts(name, site, baseline, reference))
    sizes = [*other_sizes(sites.get((PACKET_SIZES, ""), {}), compared)]
    remarks += _own_options(study, [*compared], sizes)
    return (*dict.fromkeys(remarks), *sizes)


def confounders_of(context: Context) -> tuple[Remark, ...]:
    """Return the confounders of the study's own comparisons, or of those with `Context.against`.

    Workloads' own options count only in the study's own comparisons.
    """
    plan = context.plan
    if context.of_study:
        # arms that explain another one would repeat its remarks
        compared = {name: plan.against(name) for name in plan.environments if name not in plan.explaining}
        return context.once(
            "confounders", lambda: _of_one_version(confounders(context.facts, compared, context.study), plan)
        )
    compared = dict.fromkeys(plan.environments, context.baseline)
    return context.once(("confounders", context.against), lambda: confounders(context.facts, compared))


def _of_one_version(remarks: Sequence[Remark], plan: Comparisons) -> tuple[Remark, ...]:
    """Return the remarks of a run without those that both versions have in an environment."""
    others = {**plan.pairs, **{base: head for head, base in plan.pairs.items()}}
    others |= {plan.aa_arm: plan.baseline} if plan.pairs and plan.aa_arm else {}
    return tuple(
        each
        for each in remarks
        if not (
            isinstance(each, AboutEnvironment)
            and each.environment in others
            and replace(each, environment=others[each.environment]) in remarks
        )
    )


@about_run(10)
def _confounders_of_run(context: Context) -> Iterable[Remark]:
    return confounders_of(context)
