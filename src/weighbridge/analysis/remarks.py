"""Remarks: facts that a reader should know about a number. Each is a class with the rule that finds it below.

A remark has a code, and its fields hold names and figures, which ``report --json`` contains unchanged. The sentences
are in `weighbridge.report.text.remarks`. Remarks never change a number.

Remarks are in the order of their rules, the most important first. The subject of a rule is a comparison, an
environment's values of a metric, its trials, the facts of a site, or the whole run.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import median
from typing import Generic, TypeVar

from pydantic import ValidationError

from weighbridge.analysis.bottleneck import limit_of_most
from weighbridge.analysis.conditions import (
    COMPARED,
    COMPARED_BEGINNINGS,
    NO_HYPERVISOR,
    PACKET_SIZES,
    READABLE,
    Fact,
    Isolation,
    bare,
    emulators,
)
from weighbridge.analysis.context import Context
from weighbridge.analysis.overload import Breakage
from weighbridge.analysis.paths import ClientPlace, PathDifference
from weighbridge.analysis.readings import ReadingRate
from weighbridge.analysis.resources import CPU_TIME
from weighbridge.analysis.results import Comparison, MetricReport, Remark
from weighbridge.analysis.trends import NOTHING_WRONG, SeriesTrends, run_trends
from weighbridge.analysis.trial_row import TrialRow
from weighbridge.model.address import ArmId, grouped
from weighbridge.model.facts import ASKED_CONFINEMENT, ASKED_FOR, CONFINEMENT, HOST_DIFFERENCES, HostDifference
from weighbridge.model.flag import BOTTLENECKS, Flag, FlagCode, FlagKind
from weighbridge.model.host import InterruptTime
from weighbridge.model.isolation import OUTSIDE
from weighbridge.model.measurement import SITES_CPU, is_difference_itself
from weighbridge.model.quantity import TIME_UNITS
from weighbridge.model.stored_study import StoredFile
from weighbridge.model.study import is_weighed
from weighbridge.statistics import LOOKS, Cost, Interval, blocks_to_target, cost_percent, looks_share, widened
from weighbridge.statistics.precision import LATEST
from weighbridge.statistics.sample_size import MIN_BLOCKS_VERDICT
from weighbridge.statistics.verdicts import ALPHA, excludes_no_cost, failing, proves_nothing

Subject = TypeVar("Subject")
Rule = Callable[[Subject], Iterable[Remark]]


class Rules(Generic[Subject]):
    """The rules about subjects of one type, in the order of their remarks. An instance is a decorator for rules."""

    def __init__(self) -> None:
        self._rules: list[Rule[Subject]] = []

    def __call__(self, rule: Rule[Subject]) -> Rule[Subject]:
        """Add a rule."""
        self._rules.append(rule)
        return rule

    def remarks(self, subject: Subject) -> list[Remark]:
        """Return the remarks of all rules."""
        return [remark for rule in self._rules for remark in rule(subject)]


@dataclass(frozen=True, slots=True)
class ComparisonInRun:
    """A comparison with its metric and the context of its run."""

    report: MetricReport
    row: Comparison
    context: Context

    @property
    def sides(self) -> tuple[str, str]:
        """The baseline and the environment."""
        return self.context.baseline, self.row.environment

    @property
    def trials(self) -> Sequence[TrialRow]:
        """The trials of its workload and level."""
        return self.context.of_cell(self.report.cell)


@dataclass(frozen=True, slots=True)
class ArmValues:
    """An environment's values of a metric in chronological order, and suspicious trends in them."""

    environment: str
    metric: str
    values: Sequence[float]
    trends: SeriesTrends


@dataclass(frozen=True, slots=True)
class ArmTrials:
    """An environment's trials of one cell, and whether they broke under load."""

    environment: str
    trials: Sequence[TrialRow]
    broke: Breakage | None


@dataclass(frozen=True, slots=True)
class SiteFacts:
    """The facts of an environment's site, and of the baseline's site with the same role.

    The baseline's facts include the facts of the root filesystem.
    """

    environment: str
    facts: Mapping[str, str]
    baseline: str
    baseline_facts: Mapping[str, str]


about_comparison: Rules[ComparisonInRun] = Rules()
about_values: Rules[ArmValues] = Rules()
about_trials: Rules[ArmTrials] = Rules()
about_site: Rules[SiteFacts] = Rules()
about_run: Rules[Context] = Rules()
"""Rules about differences in the run besides the isolation."""
on_top: Rules[Context] = Rules()
"""Rules about facts that a report shows before all costs."""


def remarks_about(report: MetricReport, row: Comparison, context: Context) -> tuple[Remark, ...]:
    """Return all remarks about one comparison, the most important first."""
    comparison = ComparisonInRun(report, row, context)
    remarks = about_comparison.remarks(comparison)
    for environment in comparison.sides:
        remarks += _arm_remarks(comparison, environment)
    names = {*comparison.sides, OUTSIDE}
    confounding = (each for each in _confounders_of(context) if isinstance(each, Confounder))
    remarks += [each for each in confounding if each.environment in names]
    return tuple(remarks)


def _arm_remarks(comparison: ComparisonInRun, environment: str) -> list[Remark]:
    """Return remarks about an environment's own values of a metric and about its trials."""
    report, context = comparison.report, comparison.context
    arm = ArmId(report.cell, environment)

    def of_values() -> list[Remark]:
        values = [trial.values[report.metric] for trial in context.of_arm(arm) if report.metric in trial.values]
        trends = context.once("trends", lambda: run_trends(context.trials))
        series = trends.get((arm, report.metric), NOTHING_WRONG)
        return about_values.remarks(ArmValues(environment, report.metric, values, series))

    def of_trials() -> list[Remark]:
        return about_trials.remarks(ArmTrials(environment, context.of_arm(arm), context.broken.get(arm)))

    return context.once((arm, report.metric), of_values) + context.once(arm, of_trials)


def confounders(
    facts: Iterable[Fact], baseline: str, environments: Sequence[str], study: StoredFile | None = None
) -> tuple[Remark, ...]:
    """Return the differences besides the isolation, between hosts and between the sites of environments.

    The scope of a site's facts is ``ENVIRONMENT`` or ``ENVIRONMENT/ROLE``. The last remarks are about options that a
    workload of `study` has in only one environment, and about packet sizes that differ from the baseline's.
    """
    facts = list(facts)
    sites: dict[tuple[str, str], dict[str, str]] = {}
    for scope, key, value, _ in facts:
        name, _, role = scope.partition("/")
        sites.setdefault((name, role), {})[key] = value
    remarks: list[Remark] = [*_hosts_differ(sites.get((HOST_DIFFERENCES, ""), {}))]
    for (name, role), site in sites.items():
        if name in (*environments, OUTSIDE):
            reference = {**sites.get(("userland", ""), {}), **sites.get((baseline, role), {})}
            remarks += about_site.remarks(SiteFacts(name, site, baseline, reference))
    sizes = [*_other_sizes(sites.get((PACKET_SIZES, ""), {}), baseline, environments)]
    remarks += _own_options(study, environments, sizes)
    return (*dict.fromkeys(remarks), *sizes)


def _confounders_of(context: Context) -> tuple[Remark, ...]:
    """Return the confounders of a run. Workloads' own options count only against the run's own baseline."""
    study = context.study if context.against is None else None
    left = context.plan.explaining if context.against is None else frozenset()  # they repeat another arm's remarks
    environments = [name for name in context.plan.environments if name not in left]
    return context.once(
        ("confounders", context.against),
        lambda: confounders(context.facts, context.baseline, environments, study),
    )


@dataclass(frozen=True, slots=True)
class AboutEnvironment(Remark):
    """A remark about one environment's own values, trials or sites."""

    environment: str


class AboutCost(Remark):
    """A remark about the cost itself, which is left out if a comparison has too few blocks for a cost."""

    __slots__ = ()


class PartOfCost(Remark):
    """A remark about something that causes a part of the cost; the sentence of the comparison mentions it."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class Confounder(AboutEnvironment):
    """A difference of an environment besides the isolation."""

    code = "confounder"


# -- about whose cost it is ------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class AAArm(Remark):
    """The comparison is between the baseline and itself."""

    code = "control"
    baseline: str


@about_comparison
def _aa_arm(comparison: ComparisonInRun) -> Iterator[Remark]:
    if comparison.row.aa:
        yield AAArm(comparison.context.baseline)


@dataclass(frozen=True, slots=True)
class EmulatedCost(AboutEnvironment):
    """A side of a comparison was measured under emulation; with ``both``, both sides and their ``layers`` were."""

    code = "emulated"
    layers: tuple[str, ...]
    both: bool = False


@about_comparison
def _emulated_cost(comparison: ComparisonInRun) -> Iterator[Remark]:
    sides = {name: comparison.context.isolation.get(name, NO_HYPERVISOR) for name in reversed(comparison.sides)}
    if all(side.emulated for side in sides.values()):
        layers = dict.fromkeys(name for side in sides.values() for name in emulators(side))
        yield EmulatedCost(comparison.row.environment, tuple(layers), both=True)
    else:
        yield from (EmulatedCost(name, emulators(side)) for name, side in sides.items() if side.emulated)


@dataclass(frozen=True, slots=True)
class Nested(Remark):
    """Environments that were measured on a host that is itself a guest, in ``layers``, the outermost first.

    ``environments`` is empty in a comparison if both sides were on the host. ``everywhere`` means all environments.
    """

    code = "nested"
    environments: tuple[str, ...]
    host: str
    layers: tuple[str, ...]
    everywhere: bool = False


@about_comparison
def _nested_sides(comparison: ComparisonInRun) -> Iterator[Remark]:
    """Yield the nested hosts of both sides, a shared one once; for a single side, the top of the report is enough."""
    sides = {name: _nested(comparison.context.isolation.get(name, NO_HYPERVISOR)) for name in comparison.sides}
    environment, baseline = reversed(sides)
    common = [each for each in sides[environment] if each in sides[baseline]]
    if common or not all(sides.values()):
        yield from common
    else:
        for name in (environment, baseline):
            yield from (replace(each, environments=(name,)) for each in sides[name])


def _nested(isolation: Isolation) -> list[Nested]:
    """Return the hosts that are guests themselves."""
    return [
        Nested((), site.host, tuple(layer.name for layer in site.of_host)) for site in isolation.sites if site.of_host
    ]


# -- about the blocks of a comparison --------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class NoBlocks(Remark):
    """No block has a value of both sides."""

    code = "no-rounds"


@about_comparison
def _no_blocks(comparison: ComparisonInRun) -> Iterator[Remark]:
    if comparison.row.cost is None and not comparison.row.broke_instead:
        yield NoBlocks()


@dataclass(frozen=True, slots=True)
class OneBlock(AboutCost):
    """A single block gives no interval."""

    code = "one-round"


@about_comparison
def _one_block(comparison: ComparisonInRun) -> Iterator[Remark]:
    if comparison.row.blocks == 1:
        yield OneBlock()


@dataclass(frozen=True, slots=True)
class Exploratory(AboutCost):
    """There are fewer than ten blocks."""

    code = "exploratory"
    rounds: int


@about_comparison
def _exploratory(comparison: ComparisonInRun) -> Iterator[Remark]:
    if comparison.row.blocks != 1 and comparison.row.exploratory:
        yield Exploratory(comparison.row.blocks)


@dataclass(frozen=True, slots=True)
class Incomplete(Remark):
    """There are fewer blocks than were planned or tried."""

    code = "incomplete"
    rounds: int
    planned: int


@about_comparison
def _incomplete(comparison: ComparisonInRun) -> Iterator[Remark]:
    row, report, context = comparison.row, comparison.report, comparison.context
    if row.cost is None:
        return
    baseline, other = (context.of_arm(ArmId(report.cell, each)) for each in comparison.sides)
    planned = context.plan.planned_blocks or len({trial.block for trial in other})
    broke = {trial.block for trial in (*baseline, *other) if trial.broke}
    if row.blocks + len(broke) < planned:
        yield Incomplete(row.blocks, planned)


@dataclass(frozen=True, slots=True)
class Extended(Remark):
    """The number of blocks was changed; ``looked_after`` has the number of finished blocks at each change.

    ``rounds`` is how many ran, or the target of an unfinished run. ``by_gate`` is whether a gate asked for some.
    """

    code = "extended"
    planned: int
    rounds: int
    looked_after: tuple[int, ...]
    by_gate: bool = False


def _extended(context: Context) -> Iterator[Remark]:
    looked = [change for change in context.plan.changes if change.after >= MIN_BLOCKS_VERDICT]
    if looked:
        plan = context.plan
        blocks = looked[-1].blocks if plan.unfinished else plan.blocks
        by_gate = bool(plan.changes_of_gates)
        yield Extended(looked[0].planned, blocks, tuple(change.after for change in looked), by_gate)


@dataclass(frozen=True, slots=True)
class Unfinished(Remark):
    """The run has not reached its end. ``rounds`` have run; ``planned`` is None if it stops on precision."""

    code = "unfinished"
    rounds: int
    planned: int | None


def _unfinished(context: Context) -> Iterator[Remark]:
    plan = context.plan
    if plan.unfinished and plan.blocks:
        yield Unfinished(plan.blocks, plan.planned_blocks)


@about_comparison
def _unfinished_run(comparison: ComparisonInRun) -> Iterator[Remark]:
    yield from _unfinished(comparison.context)


@about_comparison
def _extended_run(comparison: ComparisonInRun) -> Iterator[Remark]:
    yield from _extended(comparison.context)


# -- about its cost --------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class TargetMissed(AboutCost):
    """The requested precision was not reached. ``target`` and ``half_width`` are fractions, and can be infinite."""

    code = "target"
    target: float
    half_width: float
    rounds: int
    predicted_rounds: int | None


@about_comparison
def _target_missed(comparison: ComparisonInRun) -> Iterator[Remark]:
    """Yield a missed target; targets apply to headline metrics in comparisons with the run's baseline."""
    row, context = comparison.row, comparison.context
    target = context.plan.target if context.against is None else None
    if target is None or row.cost is None or row.aa or not comparison.report.headline:
        return
    if not row.cost.half_width <= target:
        predicted = _blocks_to_target(row.cost, target, context)
        yield TargetMissed(target, row.cost.half_width, row.cost.blocks, predicted)


def _blocks_to_target(cost: Cost, target: float, context: Context) -> int | None:
    """Return after how many blocks the interval will likely reach the target.

    Adding blocks widens the interval, because the user has seen the costs before.
    """
    now, then = (ALPHA * looks_share(looks) for looks in (context.plan.looks, context.plan.next_looks))
    width = widened(cost.half_width, now, then)
    blocks = blocks_to_target(width, cost.blocks, target, LATEST)
    return None if blocks is None else max(LOOKS[0], blocks)


@dataclass(frozen=True, slots=True)
class AsDifference(AboutCost):
    """The cost is a difference in ``unit``; positive is worse."""

    code = "difference"
    difference: Interval
    unit: str


@about_comparison
def _as_difference(comparison: ComparisonInRun) -> Iterator[Remark]:
    cost = comparison.row.cost
    if cost is not None and cost.scale == "difference":
        yield AsDifference(cost.penalty, comparison.report.unit)


@dataclass(frozen=True, slots=True)
class Identical(AboutCost):
    """All blocks have the same result, and are too few to rule out chance."""

    code = "identical"
    rounds: int


@about_comparison
def _identical(comparison: ComparisonInRun) -> Iterator[Remark]:
    row = comparison.row
    if row.cost is not None and row.blocks > 1 and proves_nothing(row.cost) and not row.aa:
        yield Identical(row.blocks)


@dataclass(frozen=True, slots=True)
class NotAfterHolm(AboutCost):
    """The interval excludes "no cost", but the adjusted p-value does not."""

    code = "holm"
    adjusted_p: float


@about_comparison
def _not_after_holm(comparison: ComparisonInRun) -> Iterator[Remark]:
    adjusted_p = comparison.row.adjusted_p
    if _undecided_beside_no_cost(comparison.row) and adjusted_p is not None and adjusted_p > ALPHA:
        yield NotAfterHolm(adjusted_p)


@dataclass(frozen=True, slots=True)
class Unproven(AboutCost):
    """This cost proves nothing because the session's control shows a cost although there is none."""

    code = "unproven"


@about_comparison
def _unproven(comparison: ComparisonInRun) -> Iterator[Remark]:
    row, unproven = comparison.row, comparison.context.unproven(headline=comparison.report.headline)
    if unproven and row.cost is not None and not row.aa and (row.cost.equivalent or _undecided_beside_no_cost(row)):
        yield Unproven()


@dataclass(frozen=True, slots=True)
class WithinNoise(AboutCost):
    """The cost is not larger than the metric's noise floor: of resource use, few blocks or a disturbed run.

    ``noise_floor`` is a fraction; ``low`` and ``high`` are costs in percent. All are None if the cost is a
    difference.
    """

    code = "noise"
    noise_floor: float | None = None
    low: float | None = None
    high: float | None = None


@about_comparison
def _within_noise(comparison: ComparisonInRun) -> Iterator[Remark]:
    report, row = comparison.report, comparison.row
    if _undecided_beside_no_cost(row) and report.within_noise(row):
        low, high = report.noise if report.noise and report.noise_floor is not None else (None, None)
        yield WithinNoise(report.noise_floor, low, high)


def _undecided_beside_no_cost(row: Comparison) -> bool:
    """Return whether a comparison is inconclusive although its own interval excludes "no cost"."""
    cost = row.cost if row.verdict == "inconclusive" and not row.aa else None
    return cost is not None and excludes_no_cost(cost) and not cost.equivalent


@dataclass(frozen=True, slots=True)
class Stalls(Remark):
    """The mean cost is far from the typical cost; both are in percent."""

    code = "stalls"
    mean_percent: Interval
    typical_percent: Interval


@about_comparison
def _stalls(comparison: ComparisonInRun) -> Iterator[Remark]:
    """Yield a large disagreement of the two means, unless there are too few blocks to rely on them."""
    cost, tolerance = comparison.row.cost, comparison.context.tolerance
    if cost is None or cost.exploratory or cost.disagreement is None or tolerance is None:
        return
    if cost.disagreement > tolerance and not cost.arithmetic.low <= cost.typical <= cost.arithmetic.high:
        yield Stalls(cost_percent(cost.arithmetic, cost.better), cost.penalty)


# -- about what was measured under which conditions ------------------------------------------------


@dataclass(frozen=True, slots=True)
class OtherPacketSize(PartOfCost):
    """A comparison of two different packet sizes, such as "1418 B"."""

    code = "packet-size"
    size: str
    baseline_size: str


@about_comparison
def _other_packet_size(comparison: ComparisonInRun) -> Iterator[Remark]:
    """Yield a difference of sizes; a probed and a given size are equal if their bytes are."""
    baseline_size, size = (_packet_size(comparison, name) for name in comparison.sides)
    if size and baseline_size and size != baseline_size:
        yield OtherPacketSize(size, baseline_size)


def _packet_size(comparison: ComparisonInRun, environment: str) -> str:
    return bare(comparison.context.sizes.get(f"{environment}/{comparison.report.label}", ""))


@dataclass(frozen=True, slots=True)
class PacketSizes(AboutEnvironment):
    """Packet sizes of an environment that differ from the baseline's, each with the affected workloads."""

    code = "packet-size"
    baseline: str
    sizes: tuple[tuple[OtherPacketSize, tuple[str, ...]], ...]

    @property
    def labels(self) -> frozenset[str]:
        """All affected workloads."""
        return frozenset(label for _, labels in self.sizes for label in labels)


def _other_sizes(sizes: Mapping[str, str], baseline: str, environments: Sequence[str]) -> Iterator[PacketSizes]:
    for name in environments:
        by_size: dict[OtherPacketSize, list[str]] = {}
        for place, size in sizes.items():
            environment, _, label = place.partition("/")
            reference = sizes.get(f"{baseline}/{label}")
            if environment == name and reference is not None and bare(size) != bare(reference):
                by_size.setdefault(OtherPacketSize(bare(size), bare(reference)), []).append(label)
        if by_size:
            yield PacketSizes(name, baseline, tuple((each, tuple(labels)) for each, labels in by_size.items()))


@dataclass(frozen=True, slots=True)
class Capped(PartOfCost):
    """Something limited most trials of one side (``trials`` out of ``total``), but not of the other side."""

    code = "capped"
    environment: str
    limit: str
    trials: int
    of: int
    of_baseline: bool


@about_comparison
def _capped(comparison: ComparisonInRun) -> Iterator[Remark]:
    """Yield the side that was limited; if both met the same limit, the verdict already says so."""
    report, row, context = comparison.report, comparison.row, comparison.context
    if report.resource_use or row.cost is None or row.aa:
        return
    capped = []
    for name in comparison.sides:
        side = context.limits.get(ArmId(report.cell, name), ())
        if limited := limit_of_most(side, report.unit):
            capped.append(Capped(name, limited[0], limited[1], len(side), name == context.baseline))
    if len({each.limit for each in capped}) == len(capped):
        yield from capped


UDP_HEADERS = 28
"""Bytes of the headers of IPv4 (RFC 791) and UDP (RFC 768) in a packet."""


@dataclass(frozen=True, slots=True)
class Fragments(PartOfCost):
    """An environment's datagrams (``size``) do not fit into one packet of its path; both sizes are in bytes."""

    code = "fragments"
    environment: str
    size: int
    in_one_piece: int


@about_comparison
def _fragments(comparison: ComparisonInRun) -> Iterator[Remark]:
    """Yield the only side that fragments its datagrams, which is a cost of their size on this path."""
    fragments = []
    for name in comparison.sides:
        path, size = comparison.context.paths.of(name, comparison.report.level), _packet_size(comparison, name)
        payload = int(size.split()[0]) if size.endswith(" B") and size.split()[0].isdecimal() else 0
        if path is not None and path.mtu and payload + UDP_HEADERS > path.mtu:
            fragments.append(Fragments(name, payload, path.mtu - UDP_HEADERS))
    if len(fragments) == 1:
        yield fragments[0]


@dataclass(frozen=True, slots=True)
class NoPath(Remark):
    """The network path of one side is unknown."""

    code = "no-path"


@about_comparison
def _no_path(comparison: ComparisonInRun) -> Iterator[Remark]:
    report = comparison.report
    if comparison.context.paths.missing(report.cell, *comparison.sides):
        yield NoPath()


@dataclass(frozen=True, slots=True)
class OtherPath(Remark):
    """The environments' network path differs from the baseline's.

    ``environments`` is empty in a comparison. ``place`` is None if all clients are in one place.
    """

    code = "path"
    difference: PathDifference
    environments: tuple[str, ...] = ()
    place: ClientPlace | None = None


@about_comparison
def _other_path(comparison: ComparisonInRun) -> Iterator[Remark]:
    report, (baseline, environment) = comparison.report, comparison.sides
    unlike = comparison.context.paths.difference(report.cell, environment, baseline)
    if unlike:
        yield OtherPath(unlike)


@dataclass(frozen=True, slots=True)
class PathsUnrecorded(Remark):
    """The run was made before network paths were recorded."""

    code = "path"


@dataclass(frozen=True, slots=True)
class OtherDurability(PartOfCost):
    """The environment's durability differs from the baseline's; empty if unknown.

    In a comparison, ``environment`` and ``labels`` are empty.
    """

    code = "durability"
    durability: str
    baseline_durability: str
    baseline: str
    environment: str = ""
    labels: tuple[str, ...] = ()


@about_comparison
def _other_durability(comparison: ComparisonInRun) -> Iterator[Remark]:
    context, (baseline, environment), label = comparison.context, comparison.sides, comparison.report.label
    if not context.keep_alike(environment, baseline, label):
        yield OtherDurability(*context.durabilities(environment, baseline, label), baseline)


@dataclass(frozen=True, slots=True)
class InterruptTimeApart(Remark):
    """A site's CPU time does not include interrupts, certainly (``sure``) or possibly."""

    code = "interrupt-time"
    sure: bool


@about_comparison
def _interrupt_time_apart(comparison: ComparisonInRun) -> Iterator[Remark]:
    charged: InterruptTime = "charged to the interrupted task"
    apart: InterruptTime = "accounted apart"
    kinds = comparison.context.interrupts
    if comparison.report.metric.startswith(SITES_CPU) and not set(kinds) <= {charged}:
        yield InterruptTimeApart(apart in kinds)


@dataclass(frozen=True, slots=True)
class GuestTicks(AboutEnvironment):
    """CPU time is counted in ticks of ``host``, a guest on an emulator, which does not report steal time."""

    code = "guest-ticks"
    host: str


@about_comparison
def _guest_ticks(comparison: ComparisonInRun) -> Iterator[Remark]:
    """Yield sides on emulated hosts. A real machine counts the CPU time of an emulator's process correctly."""
    if comparison.report.metric.startswith(CPU_TIME):
        yield from dict.fromkeys(
            GuestTicks(name, site.host)
            for name in reversed(comparison.sides)
            for site in comparison.context.isolation.get(name, NO_HYPERVISOR).sites
            if any(layer.emulated for layer in site.of_host)
        )


@dataclass(frozen=True, slots=True)
class FewReadings(Remark):
    """The meters took ``readings`` per trial in the median at ``hz``; ``wanted_hz`` is enough, None if no rate is.

    ``chosen`` means that a pilot block chose the trial lengths, so that the user has nothing to change.
    """

    code = "readings"
    hz: float
    readings: int
    wanted_hz: int | None
    chosen: bool = False


@about_comparison
def _few_readings(comparison: ComparisonInRun) -> Iterator[Remark]:
    """Yield too few readings: short trials have few, because meters read a few times per second."""
    if is_difference_itself(comparison.report.metric):
        few = few_readings(comparison.context.readings, [trial.id for trial in comparison.trials if trial.ok])
        yield from [few] if few else []


def few_readings(rate: ReadingRate | None, trials: Sequence[int]) -> FewReadings | None:
    """Return a remark if the median of these trials has too few readings, with the rate that would be enough."""
    if rate is None or rate.enough(trials):
        return None
    return FewReadings(rate.hz, round(rate.median_s(trials) * rate.hz), rate.enough_hz(trials), rate.chosen)


# -- about the values and trials of one environment ------------------------------------------------


@dataclass(frozen=True, slots=True)
class Outliers(AboutEnvironment):
    """The number of runs that are far from the others."""

    code = "outliers"
    outliers: int
    runs: int


@about_values
def _outliers(values: ArmValues) -> Iterator[Remark]:
    if outliers := values.trends.flags.outliers:
        yield Outliers(values.environment, len(outliers), len(values.values))


HELD_BACK_S = (0.0395, 0.0455)
"""A latency between these limits can come from an acknowledgement that Linux delays for at least 40 ms
(TCP_DELACK_MIN in include/net/tcp.h, a 25th of a second), plus the time on the network."""


@dataclass(frozen=True, slots=True)
class DelayedAck(AboutEnvironment):
    """A latency in seconds that matches the time for which Linux delays acknowledgements, with idle CPUs."""

    code = "delayed-ack"
    seconds: float


@about_comparison
def _delayed_ack(comparison: ComparisonInRun) -> Iterator[Remark]:
    report, context = comparison.report, comparison.context
    unit_s = TIME_UNITS.get(report.unit)
    if unit_s is None or report.resource_use or not context.paths.needed(report.workload):
        return
    values = zip(comparison.sides, (report.baseline_value, comparison.row.value), strict=True)
    for environment, value in values:
        limits = [each for each in context.limits.get(ArmId(report.cell, environment), ()) if each]
        idle = sum(each.code == FlagCode.NO_BOTTLENECK for each in limits)
        if value is not None and HELD_BACK_S[0] <= value * unit_s <= HELD_BACK_S[1] and 2 * idle > len(limits):
            yield DelayedAck(environment, value * unit_s)


@dataclass(frozen=True, slots=True)
class Drift(AboutEnvironment):
    """The values rise or fall during the session (Kendall's tau)."""

    code = "drift"
    tau: float


@about_values
def _drift(values: ArmValues) -> Iterator[Remark]:
    drift = values.trends.flags.drift
    if drift is not None and values.trends.drifts:
        yield Drift(values.environment, drift.statistic)


@dataclass(frozen=True, slots=True)
class Autocorrelation(AboutEnvironment):
    """Successive runs resemble each other."""

    code = "autocorrelation"


@about_values
def _autocorrelation(values: ArmValues) -> Iterator[Remark]:
    if values.trends.sticks:
        yield Autocorrelation(values.environment)


MEMORY_PER_SITE = "memory_per_site"
"""The growth of the machine's total used memory per site; no site can use less than nothing."""


@dataclass(frozen=True, slots=True)
class Unresolved(AboutEnvironment):
    """In ``count`` of ``trials``, the machine's memory grew by zero or less, which hides the sites' memory."""

    code = "unresolved"
    count: int
    trials: int

    @property
    def unresolved_in(self) -> str:
        """The environment itself."""
        return self.environment


@about_values
def _unresolved(values: ArmValues) -> Iterator[Remark]:
    impossible = sum(value <= 0 for value in values.values) if values.metric == MEMORY_PER_SITE else 0
    if impossible:
        yield Unresolved(values.environment, impossible, len(values.values))


@dataclass(frozen=True, slots=True)
class BrokeUnderLoad(AboutEnvironment):
    """The trials broke under their load."""

    code = "overloaded"
    overloaded: Breakage


@about_trials
def _broke_under_load(arm: ArmTrials) -> Iterator[Remark]:
    if arm.broke is not None:
        yield BrokeUnderLoad(arm.environment, arm.broke)


@dataclass(frozen=True, slots=True)
class FailedTrials(AboutEnvironment):
    """The number of ``trials`` without a measurement; ``outcomes`` are ordered by frequency."""

    code = "failed"
    trials: int
    outcomes: tuple[tuple[str, int], ...]


@about_trials
def _failed_trials(arm: ArmTrials) -> Iterator[Remark]:
    outcomes = Counter(trial.outcome for trial in arm.trials if not (trial.ok or trial.broke))
    if outcomes:
        yield FailedTrials(arm.environment, len(arm.trials), tuple(outcomes.most_common()))


@dataclass(frozen=True, slots=True)
class Selected(AboutEnvironment):
    """Too many trials failed, so the cost is based on a selection of them."""

    code = "selected"


@about_trials
def _selected(arm: ArmTrials) -> Iterator[Remark]:
    if failing([trial.ok for trial in arm.trials if not trial.broke]):
        yield Selected(arm.environment)


@dataclass(frozen=True, slots=True)
class FigureRange:
    """The smallest and largest value of one figure in several flags."""

    name: str
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class FlaggedTrials(AboutEnvironment):
    """The number of ``trials`` that have a flag of one kind."""

    code = "trial"
    flag: FlagKind
    count: int
    trials: int
    figures: tuple[FigureRange, ...] = ()


@dataclass(frozen=True, slots=True)
class ProgramErrors(FlaggedTrials):
    """The number of trials whose programs reported errors."""

    code = "errors"


@about_trials
def _flagged_trials(arm: ArmTrials) -> Iterator[Remark]:
    yield from flagged_trials(arm.environment, arm.trials)


def flagged_trials(environment: str, trials: Sequence[TrialRow]) -> list[FlaggedTrials]:
    """Return each kind of flag in an environment's trials, the most frequent first."""
    by_kind = _flags_by_kind(trials)
    return [
        (ProgramErrors if kind.code == FlagCode.PROGRAM_ERRORS else FlaggedTrials)(
            environment, kind, count, len(trials), figure_ranges(by_kind[kind])
        )
        for kind, count in _trials_by_kind(trials).most_common()
    ]


NEARLY_ALL = 0.75
"""The share of environments from which a flag is reported once for all of them."""


def common_flags(trials: Sequence[TrialRow]) -> list[FlaggedTrials]:
    """Return the kinds of flags that affect nearly all environments, so that they are reported once."""
    arms = grouped(trials, lambda trial: trial.environment)
    concerned = Counter(kind for mine in arms.values() for kind in _trials_by_kind(mine))
    by_kind = _flags_by_kind(trials)
    return [
        FlaggedTrials("", kind, count, len(trials), figure_ranges(by_kind[kind]))
        for kind, count in _trials_by_kind(trials).items()
        if len(arms) > 1 and concerned[kind] >= NEARLY_ALL * len(arms) and kind.code != FlagCode.PROGRAM_ERRORS
    ]


def without_flags(remarks: Iterable[Remark], kinds: Collection[FlagKind]) -> list[Remark]:
    """Return the remarks that are not about these kinds of flags."""
    return [each for each in remarks if not (isinstance(each, FlaggedTrials) and each.flag in kinds)]


def kind_of(flag: Flag) -> FlagKind:
    """Return the kind of a flag, without its figures; flags of one kind are counted together."""
    return FlagKind(flag.code, flag.where, flag.text if flag.code == FlagCode.OTHER else "")


def figure_ranges(of: Iterable[Flag]) -> tuple[FigureRange, ...]:
    """Return the smallest and largest value of each figure in some flags."""
    values: dict[str, list[float]] = {}
    for flag in of:
        for name, value in flag.figures.items():
            values.setdefault(name, []).append(value)
    return tuple(FigureRange(name, min(mine), max(mine)) for name, mine in values.items())


def _trials_by_kind(trials: Sequence[TrialRow]) -> Counter[FlagKind]:
    """Return the number of trials with each kind of flag, without bottlenecks, which the verdicts cover."""
    by_trial = ([flag for flag in trial.flags if flag.code not in BOTTLENECKS] for trial in trials)
    return Counter(each for mine in by_trial for each in sorted({kind_of(flag) for flag in mine}))


def _flags_by_kind(trials: Sequence[TrialRow]) -> dict[FlagKind, list[Flag]]:
    return grouped((flag for trial in trials for flag in trial.flags), kind_of)


# -- what differs besides the isolation ------------------------------------------------------------


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
    why: str


@dataclass(frozen=True, slots=True)
class NotMetered(Confounder):
    """A quantity that no meter of an environment reads, and the reason."""

    quantity: str
    why: str


@about_site
def _not_honoured_or_metered(site: SiteFacts) -> Iterator[Remark]:
    kinds = {"not honoured": NotHonoured, "not metered": NotMetered}
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


@about_site
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


@about_run
def _confounders_of_run(context: Context) -> Iterable[Remark]:
    return _confounders_of(context)


@about_run
def _other_durabilities(context: Context) -> Iterator[Remark]:
    labels: dict[OtherDurability, list[str]] = {}
    for place in context.durability:
        environment, _, label = place.partition("/")
        if not context.keep_alike(environment, context.baseline, label):
            both = context.durabilities(environment, context.baseline, label)
            unlike = OtherDurability(*both, context.baseline, environment)
            labels.setdefault(unlike, []).append(label)
    yield from (replace(unlike, labels=tuple(mine)) for unlike, mine in labels.items())


@about_run
def _other_paths(context: Context) -> Iterator[Remark]:
    paths, plan = context.paths, context.plan
    if paths.networked is None:
        if len(plan.environments) > 1:
            yield PathsUnrecorded()
        return
    alike: dict[OtherPath, dict[str, None]] = {}
    for cell in context.cells:
        for name in plan.compared_on(cell):
            if unlike := paths.difference(cell, name, plan.baseline):
                place = paths.place(paths.client_of(cell.level)) if len(paths.clients) > 1 else None
                alike.setdefault(OtherPath(unlike, place=place), {})[name] = None
    yield from (replace(each, environments=tuple(names)) for each, names in alike.items())


FIXED_TIME_SPREAD, FIXED_TIME_S = 0.005, 0.5
"""The largest spread between the shortest and longest trial, as a share, and the shortest time of the program."""
WHOLE_SECONDS_SPREAD, BEYOND_WHOLE_S = 0.02, 0.15
"""The largest spread between the shortest and the median trial, and the largest excess over whole seconds."""


@dataclass(frozen=True, slots=True)
class FixedTime(Remark):
    """A program took the same time in most trials (``seconds``), so its time seems to be fixed and shows no cost."""

    code = "fixed-time"
    label: str
    seconds: float


@on_top
def _fixed_time(context: Context) -> Iterator[Remark]:
    """Yield programs of the user whose headline is their time, if it seems to be fixed in every environment."""
    written = context.study.workloads if context.study is not None else {}
    for cell in context.cells:
        options = written.get(cell.workload, {})
        if options.get("kind") != "command" or options.get("metrics") or options.get("adapter"):
            continue
        trials = [trial for trial in context.of_cell(cell) if trial.ok and "time" in trial.values]
        times = [trial.values["time"] for trial in trials]
        enough = len(times) >= MIN_BLOCKS_VERDICT and len({trial.environment for trial in trials}) > 1
        if enough and min(times) >= FIXED_TIME_S and _seem_fixed(times):
            yield FixedTime(cell.label, min(times))


def _seem_fixed(times: Sequence[float]) -> bool:
    """Return whether trials took nearly the same time.

    On a busy machine, half of the trials are enough if the time is close to whole seconds.
    """
    least = min(times)
    whole = least >= 1 and least % 1 <= BEYOND_WHOLE_S and median(times) <= (1 + WHOLE_SECONDS_SPREAD) * least
    return whole or max(times) <= (1 + FIXED_TIME_SPREAD) * least


about_run(_extended)
about_run(_unfinished)


# -- what stands on top ----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Emulated(Remark):
    """Environments that were measured under emulation: their cost is the cost of the emulators in ``layers``.

    ``baseline`` is the baseline's name if it was emulated, otherwise empty. If it was, every cost is relative to an
    emulator. ``everywhere`` means all environments.
    """

    code = "emulated"
    environments: tuple[str, ...]
    layers: tuple[str, ...]
    baseline: str = ""
    everywhere: bool = False


@on_top
def _emulated(context: Context) -> Iterator[Remark]:
    emulated = {name: each for name, each in context.isolation.items() if each.emulated}
    if emulated:
        layers = dict.fromkeys(name for each in emulated.values() for name in emulators(each))
        baseline = context.baseline if context.baseline in emulated else ""
        everywhere = {*context.plan.environments} <= {*emulated}
        yield Emulated(tuple(emulated), tuple(layers), baseline, everywhere)


@on_top
def _nested_environments(context: Context) -> Iterator[Remark]:
    hosts: dict[Nested, dict[str, None]] = {}
    for name, isolation in context.isolation.items():
        for host in _nested(isolation):
            hosts.setdefault(host, {})[name] = None
    every = {*context.plan.environments}
    yield from (
        replace(host, environments=tuple(names), everywhere=every <= {*names}) for host, names in hosts.items()
    )


UNVERIFIED = "unverified"
"""The scope of facts about unverified kinds: environment or "host NAME" -> the unverified part."""


@dataclass(frozen=True, slots=True)
class Unverified(Remark):
    """An environment or ``host`` whose ``part`` was never seen to work on real hardware."""

    code = "unverified"
    environment: str
    host: str
    what: str


@on_top
def _unverified(context: Context) -> Iterable[Remark]:
    return unverified(context.facts, context.plan.environments)


def unverified(facts: Iterable[Fact], environments: Sequence[str]) -> tuple[Remark, ...]:
    """Return the unverified parts of a run, each once."""
    stated = dict.fromkeys((key, value) for scope, key, value, _ in facts if scope == UNVERIFIED)
    return tuple(
        Unverified(key, "", what) if key in environments else Unverified("", key.removeprefix("host "), what)
        for key, what in stated
    )
