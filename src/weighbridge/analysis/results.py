"""What a report contains, as frozen data: every other module of the report only words or draws it."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property
from typing import ClassVar, NamedTuple

from weighbridge.analysis.bottleneck import Bottleneck, LimitCounts, counts
from weighbridge.analysis.conditions import Calibration, Durabilities, Isolation, PowerCuts
from weighbridge.analysis.context import Context
from weighbridge.analysis.curves import LoadSweep
from weighbridge.analysis.latency import LatencyReport
from weighbridge.analysis.overload import Breakage
from weighbridge.analysis.paths import Paths
from weighbridge.analysis.plan import StepChange
from weighbridge.analysis.sessions import Sessions
from weighbridge.analysis.trends import PlaceEffect
from weighbridge.analysis.trial_row import TrialRow
from weighbridge.model.address import ArmId, HasMetricId, MetricId, grouped
from weighbridge.model.decisions import LeftOut, TrialLength
from weighbridge.model.disturbance import Disturbance, disturbance_of
from weighbridge.model.explained import DescribedMechanism
from weighbridge.model.flag import Flag
from weighbridge.model.measurement import is_resource_use
from weighbridge.model.study import Rung
from weighbridge.statistics import Better, Cost, Looks, SlowRuns, Verdict
from weighbridge.statistics.contrast import shown_level
from weighbridge.statistics.sample_size import MIN_BLOCKS_SIGNED_RANK, MIN_BLOCKS_VERDICT
from weighbridge.statistics.verdicts import noise_range, within_noise

EXTENDED_ERROR = 0.08
"""How many of the runs that are extended until something is different have a false alarm, at most and about.

2.6 to 7.7 % of those of one comparison (`benchmarks/rule.py`, ``extended``)."""


@dataclass(frozen=True, slots=True)
class Remark:
    """What a reader has to know beside a number; each class (`weighbridge.analysis.remarks`) is one thing to say."""

    code: ClassVar[str]
    """Stable: ``report --json`` has it."""

    @property
    def unresolved_in(self) -> str:
        """The environment whose value is below what can be resolved; empty of other remarks."""
        return ""


@dataclass(frozen=True, slots=True)
class VisibleCost:
    """The smallest cost that a comparison would have called different in four of five runs like this one.

    And what would settle an undecided one: blocks in all, and seconds of further trials, after which a cost of the
    equivalence margin shows and no cost is proven to be within it. None where nothing is open, or no number of blocks
    that can be measured would do.
    """

    cost: float
    """Positive is worse: in percent, or in the metric's unit where the cost is a difference."""
    blocks: int | None = None
    seconds: float | None = None


class BlockPair(NamedTuple):
    """A block that was compared, with the values of both sides in the metric's unit."""

    block: int
    baseline: float
    value: float


@dataclass(frozen=True, slots=True)
class Comparison:
    """One environment against the baseline on one metric of one workload at one level."""

    environment: str
    aa: bool
    """Whether this is the A/A arm: the baseline measured a second time."""
    cost: Cost | None
    """None where no block has both values."""
    baseline_value: float | None
    """The baseline's median over the blocks that were compared, in the metric's unit; None without such a block."""
    value: float | None
    """The environment's median over the same blocks; without any, over its own good trials."""
    slow: SlowRuns | None
    adjusted_p: float | None
    """p-value of "no cost" after Holm within its family; None for the A/A arm and where there is no cost."""
    verdict: Verdict
    """The report's verdict, after Holm; `cost.verdict` is the one before."""
    remarks: tuple[Remark, ...]
    proven: bool = False
    """Whether it is equivalent, and would be different if there were no margin: a small cost is proven."""
    never_equivalent: bool = False
    """Whether a side failed too often, or the two are not alike, so that no number of blocks proves it equivalent."""
    broke: Breakage | None = None
    """Of the environment's trials of this workload and level; None where none broke. Then of the baseline's."""
    baseline_broke: Breakage | None = None
    hidden: Bottleneck | None = None
    """The limit that both sides met, where the verdict is "hidden"."""
    standard_error: float | None = None
    """That of the mean of the blocks' effects: of logarithms, or in the metric's unit."""
    visible: VisibleCost | None = None
    """What this comparison would have shown; None where it has too few blocks, or nothing can be different."""
    pairs: tuple[BlockPair, ...] = ()
    """The values that the cost is computed from, in the order of the blocks."""

    @property
    def blocks(self) -> int:
        """Number of blocks compared."""
        return self.cost.blocks if self.cost else 0

    @property
    def unresolved(self) -> tuple[str, ...]:
        """Which of the two environments have a value below what can be resolved."""
        return tuple(filter(None, (remark.unresolved_in for remark in self.remarks)))

    @property
    def few(self) -> bool:
        """Whether the cost is made of so few blocks that the values are shown instead of it."""
        return self.cost is not None and self.cost.blocks < MIN_BLOCKS_VERDICT

    @property
    def decided(self) -> bool:
        """Whether it is known to matter, or not to."""
        return self.verdict in ("different", "equivalent")

    @property
    def shown_as(self) -> str:
        """What colours and words go by: the verdict, or "aa", "broke", "few" where that says more."""
        if self.aa:
            return "aa"
        return "broke" if self.broke_instead else "few" if self.few else self.verdict

    @property
    def exploratory(self) -> bool:
        """Whether the cost is made of fewer than ten blocks."""
        return self.cost is not None and self.cost.exploratory

    @property
    def broke_instead(self) -> tuple[Breakage, ...]:
        """The breakages shown in place of a cost, the environment's first; empty with a cost."""
        if self.cost is not None:
            return ()
        return tuple(each for each in (self.broke, self.baseline_broke) if each is not None)


@dataclass(frozen=True, slots=True)
class MetricReport(HasMetricId):
    """Every comparison on one metric of one workload at one level."""

    metric_id: MetricId
    unit: str
    better: Better
    headline: bool
    """Whether it is its workload's first metric: the one that the sentences on top are about."""
    baseline_value: float | None
    """The baseline's median over all blocks' first good attempts, in `unit`."""
    noise_floor: float | None
    """The smallest cost that stands out of the noise, as a fraction; see `weighbridge.statistics.verdicts`."""
    comparisons: tuple[Comparison, ...]
    """In the study's order; the A/A arm is last."""
    disturbed: bool = False
    """Whether others took CPU time in more than half of the baseline's trials in this run."""
    baseline_values: tuple[float, ...] = field(default=(), repr=False)
    """The baseline's value in each block."""

    @property
    def aa(self) -> Comparison | None:
        """The A/A arm's comparison."""
        return next((each for each in self.comparisons if each.aa), None)

    def within_noise(self, row: Comparison) -> bool:
        """Whether a cost counts for noise: no larger than the A/A arm's, of resource use, few blocks, beside others.

        What others take comes in episodes of many trials, against which the order of trials is no help in few blocks.
        Where the A/A arm has no noise floor for the metric, every cost of a disturbed run counts for noise.
        """
        few = row.blocks < MIN_BLOCKS_SIGNED_RANK
        if row.cost is None or row.aa or not (self.resource_use or few or self.disturbed):
            return False
        aa = self.aa.cost if self.aa is not None and self.noise is not None else None
        if aa is None or aa.scale != row.cost.scale:
            return self.disturbed
        return within_noise(row.cost, aa)

    @property
    def noise(self) -> tuple[float, float] | None:
        """The noise floor as the lowest and the highest cost, from `weighbridge.statistics.verdicts.noise_range`."""
        return noise_range(self.aa.cost) if self.aa is not None and not self.aa.few else None

    @property
    def resource_use(self) -> bool:
        """Whether it is resource use, a family of its own, and not what the workload measures."""
        return is_resource_use(self.metric)


@dataclass(frozen=True, slots=True)
class LadderStep:
    """One step of the ladder on one metric: an environment against the one it adds to, paired in the same blocks."""

    previous: str
    """The environment that it adds to, or (where that is absent) the nearest one below it."""
    changes: tuple[StepChange, ...]
    """The settings in which the two differ."""
    row: Comparison
    """Its ``baseline_value`` is the previous environment's. ``adjusted_p`` is of the family of the steps."""
    start: float | None
    """Where the previous environment stands: its ratio to the baseline, or difference in the unit; None: unknown."""


@dataclass(frozen=True, slots=True)
class Ladder:
    """The steps of one metric of one workload at one level, in the ladder's order."""

    report: MetricReport
    steps: tuple[LadderStep, ...]


@dataclass(frozen=True, slots=True)
class CounterChange:
    """A metric of resource use with a mechanism and without it."""

    report: MetricReport
    row: Comparison
    """With the mechanism, against without it; ``adjusted_p`` is of the family of all such rows."""


class ProofState(StrEnum):
    """Whether a mechanism that was switched off is off by what its sites say."""

    SHOWN = "shown"
    UNKNOWN = "unknown"
    """Nothing that is read of them tells."""
    NOT_OFF = "not-off"
    """They say the same as with it, or that it is still there."""


@dataclass(frozen=True, slots=True)
class MechanismCost:
    """What one mechanism of an environment costs on a headline metric."""

    mechanism: DescribedMechanism
    row: Comparison | None
    """The environment with it against the one without, both without its ``off_with``; None: it was not measured."""
    without: str = ""
    """The name of the arm that has it off; "" where none was measured."""
    why_not: str = ""
    """Why it was not switched off here; "" where it was."""
    proof: ProofState = ProofState.UNKNOWN
    facts: tuple[str, str] = ("", "")
    """What its sites say with the mechanism and without it; "" where nothing tells."""
    counters: tuple[CounterChange, ...] = ()
    rules: tuple[str, str] = ("", "")
    """How many rules of packet filters a probe matched with the mechanism and without it; "" where nobody tells."""


@dataclass(frozen=True, slots=True)
class MechanismPair:
    """What a mechanism costs more beside another one than without it, and that beside this one."""

    one: DescribedMechanism
    other: DescribedMechanism
    row: Comparison


@dataclass(frozen=True, slots=True)
class Explanation:
    """Why an environment costs what it does on a headline metric: every part is measured, none is a remainder."""

    environment: str
    report: MetricReport
    total: Comparison
    """The environment against the baseline, as everywhere in the report."""
    mechanisms: tuple[MechanismCost, ...]
    """Those that cost most first."""
    interaction: Comparison | None
    """What all of them cost together beyond the sum of the single ones; None with fewer than two."""
    unexplained: Comparison | None
    """The environment with all of them off against the baseline; None where no arm has that."""
    unexplained_arm: str = ""
    pairs: tuple[MechanismPair, ...] = ()
    """Of mechanisms that were switched in every combination: what interacts with what, the largest first."""
    crossed: bool = False
    """Whether they were; all others of the environment's stayed on."""


class TrustReason(StrEnum):
    """Why a session can be trusted, or cannot, or nothing is known."""

    NO_CONTROL = "no-control"
    FEW_BLOCKS = "few-rounds"
    """The A/A arm has fewer than any verdict needs."""
    SHIFTED = "failed"
    """It shows a cost where there is none."""
    HOLDS = "passed"


@dataclass(frozen=True, slots=True)
class Trust:
    """What the A/A arm says about the session. ``trusted`` is None where there is no A/A arm to ask.

    True says no more than that no false cost was seen: whether the session sees small costs, its noise floor says.
    """

    trusted: bool | None
    reason: TrustReason
    noise_floor: float | None
    """Median of the headline metrics' noise floors, as a fraction: 0.5 is a ratio between 1 / 1.5 and 1.5.

    Of an even number the larger one in the middle."""
    noise_floor_in: MetricReport | None
    """The metric that has it."""
    largest_noise: float | None
    """Largest of the headline metrics' noise floors, as a fraction."""
    largest_noise_in: MetricReport | None
    """The metric that has it."""
    blocks: int = 0
    """Number of blocks of the A/A arm on the headline metrics that are checked, the smallest."""
    unchecked: tuple[MetricReport, ...] = ()
    """The headline metrics without a control: the A/A arm has fewer blocks of them than any verdict needs."""
    shifted: tuple[MetricReport, ...] = ()
    """The metrics in which the A/A arm shows a cost."""
    visible_shift: float | None = None
    """The shift of a headline that the check finds in four sessions of five, as a fraction; the largest one.

    Of those whose A/A arm is not hidden, as the noise floor is."""
    visible_shifts: int = 0
    """Of how many headlines such a shift is known."""
    places: tuple[PlaceEffect, ...] = ()
    """The metrics in which a trial's place in its block changes its value."""

    @property
    def noise(self) -> tuple[float, float] | None:
        """The noise floor of that metric in percent."""
        return self.noise_floor_in.noise if self.noise_floor_in is not None else None


def disturbance_among(trials: Iterable[TrialRow], environments: Collection[str | None]) -> Disturbance:
    """Return what others took in the good trials of some environments."""
    return disturbance_of(trial.flags for trial in trials if trial.ok and trial.environment in environments)


@dataclass(frozen=True)
class Analysis:
    """A whole run, compared. Cheap to keep and to read; made by `weighbridge.analysis.analyse.analyse`."""

    run_id: str
    study: str
    question: str
    baseline: str
    aa_arm: str | None
    environments: tuple[str, ...]
    """Every arm's name in the study's order, the A/A arm too, and those that are parts of another."""
    others: tuple[str, ...]
    """Those that are compared with the baseline, in the study's order, without the A/A arm."""
    equivalence: float | None
    """The margin of "equivalent", as a fraction."""
    target: float | None
    """The half-width that an adaptive run aims at, as a fraction."""
    labels: tuple[str, ...]
    """Every workload and level of the study, also those without a finished trial."""
    metrics: tuple[MetricReport, ...]
    trust: Trust
    trials: tuple[TrialRow, ...]
    """In the order in which they ran."""
    confounders: tuple[Remark, ...] = ()
    polled: bool = False
    """Whether idle CPUs of this machine polled and did not halt."""
    calibration: Calibration | None = None
    """The machine's last calibration; None where there was none."""
    ladder: tuple[Ladder, ...] = ()
    """The steps of each of the workloads' own metrics, headlines first; empty where the study has no ladder."""
    latencies: tuple[LatencyReport, ...] = ()
    """The merged histograms of the workloads that give them."""
    sweeps: tuple[LoadSweep, ...] = ()
    """The workloads that name their load, with at least three levels of it."""
    broken: Mapping[ArmId, Breakage] = field(default_factory=dict)
    """Where trials broke under their load."""
    limits: Mapping[ArmId, Sequence[Flag | None]] = field(default_factory=dict, repr=False)
    """The bottleneck of each good trial."""
    durability: Mapping[str, Durabilities] = field(default_factory=dict)
    """By label what a power cut leaves of what the workload's server has acknowledged."""
    power_cuts: PowerCuts = ()
    """What `weighbridge durability` found out about the storage of environments."""
    paths: Paths = field(default_factory=Paths)
    """The network path of each environment, for the clients of each host."""
    left_out: tuple[LeftOut, ...] = ()
    """Environments of the study that could not be opened; they are none of ``environments``."""
    lengths: tuple[TrialLength, ...] = ()
    """How long trials worked, where a pilot block has chosen it."""
    time_shared: bool = False
    """Whether workloads took part in fewer blocks than others, as the time was short."""
    rungs: tuple[Rung, ...] = ()
    """The study's ladder as written, with what is left out."""
    isolation: Mapping[str, Isolation] = field(default_factory=dict)
    """The hypervisors of the environments that were measured in some, by environment."""
    notices: tuple[Remark, ...] = ()
    """What stands before all costs: which are an emulator's, which those inside of a guest, what is unverified."""
    sessions: Sessions = field(default_factory=Sessions)
    """How often the run was begun or went on, and which blocks are of which time."""
    looks: Looks = field(default_factory=Looks)
    """How often the run may be looked at in all: of several each spends less of the error."""
    control_looks: Looks = field(default_factory=Looks)
    """The same for the A/A arm, of planned looks alone."""
    explanations: tuple[Explanation, ...] = ()
    """Why environments cost what they do, a headline each; empty where the study does not ask for it."""
    context: Context | None = field(default=None, repr=False, compare=False)
    """What further comparisons of this run are judged by."""
    trials_of: Mapping[str, Sequence[TrialRow]] = field(init=False, repr=False, compare=False)
    """The trials of each label that has any, in the order in which they ran."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "trials_of", grouped(self.trials, lambda trial: trial.label))

    @property
    def failed(self) -> tuple[TrialRow, ...]:
        """The trials that gave no measurements, without those that broke, which is a result."""
        return tuple(trial for trial in self.trials if not (trial.ok or trial.broke))

    @cached_property
    def bottlenecks(self) -> Mapping[ArmId, LimitCounts]:
        """How many good trials had which bottleneck."""
        return {arm: counts(limits) for arm, limits in self.limits.items()}

    @cached_property
    def disturbance(self) -> Disturbance:
        """What others took of the CPU time in the good trials of the baseline and its A/A arm."""
        return self.disturbance_in(self.baseline)

    def disturbance_in(self, environment: str) -> Disturbance:
        """Return what others took in an environment's good trials; in those of the A/A arm, too, of the baseline's.

        What the environment's own engine or proxy uses outside of its sites counts as taken by others.
        """
        return disturbance_among(
            self.trials, {environment, self.aa_arm if environment == self.baseline else environment}
        )

    @property
    def on_nodes(self) -> bool:
        """Whether its sites are pods on nodes of a cluster, which chooses their CPUs."""
        study = self.context.study if self.context is not None else None
        return study is not None and any(host.get("kind") == "kubernetes" for host in study.hosts.values())

    @cached_property
    def disturbances(self) -> Mapping[str, Disturbance]:
        """What others took in the trials of each environment in which they took anything, as `disturbance_in`."""
        names = [name for name in self.environments if name != self.aa_arm]
        by_name = {name: self.disturbance_in(name) for name in names}
        return {name: disturbance for name, disturbance in by_name.items() if disturbance.taken}

    @property
    def extended(self) -> bool:
        """Whether somebody changed the number of blocks after there were costs to look at."""
        return self.looks.further > 0

    @property
    def confidence(self) -> float:
        """The level of the intervals of costs: 0.95, or higher if the run was extended or is unfinished.

        It says nothing about how many runs have a false alarm: of extended ones up to `EXTENDED_ERROR`.
        """
        return shown_level(self.looks)

    @property
    def unfinished(self) -> bool:
        """Whether the run did not come to its end: it was stopped, or is still going on."""
        return self.context is not None and self.context.plan.unfinished

    @property
    def headlines(self) -> tuple[MetricReport, ...]:
        """The first metric of each workload and level."""
        return tuple(each for each in self.metrics if each.headline)

    @property
    def compared(self) -> tuple[Comparison, ...]:
        """Every comparison that has a cost, without the A/A arm."""
        return tuple(row for each in self.metrics for row in each.comparisons if row.cost is not None and not row.aa)

    @property
    def exploratory(self) -> bool:
        """Whether every comparison has fewer than ten blocks."""
        return bool(self.compared) and all(row.exploratory for row in self.compared)

    @property
    def native_only(self) -> bool:
        """Whether the study has no environment beside the baseline and its A/A arm."""
        return not self.others

    @property
    def few(self) -> bool:
        """Whether every comparison has so few blocks that the values are shown instead of a cost."""
        return bool(self.compared) and all(row.few for row in self.compared)

    def block_values(self, report: MetricReport, environment: str) -> tuple[float, ...]:
        """The values of `by_block` alone."""
        return tuple(self.by_block(report, environment).values())

    def by_block(self, report: MetricReport, environment: str) -> dict[int, float]:
        """Return an environment's values of a metric, in its unit, by block: in each the first good attempt's."""
        values: dict[int, float] = {}
        for trial in sorted(self.trials_of.get(report.label, ()), key=lambda each: (each.block, each.attempt)):
            if trial.environment == environment and report.metric in trial.values:
                values.setdefault(trial.block, trial.values[report.metric])
        return values

    def of(self, label: str) -> tuple[MetricReport, ...]:
        """The metrics of one workload and level."""
        return tuple(each for each in self.metrics if each.label == label)
