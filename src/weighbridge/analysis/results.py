"""Frozen data with everything that a report contains; other modules only format it."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property
from operator import attrgetter
from typing import ClassVar, NamedTuple

from weighbridge.analysis.bottleneck import Bottleneck, LimitCounts, counts
from weighbridge.analysis.conditions import Calibration, Durabilities, Isolation, PowerCuts
from weighbridge.analysis.context import Context
from weighbridge.analysis.curves import LoadSweep
from weighbridge.analysis.latency import LatencyReport
from weighbridge.analysis.overload import Breakage
from weighbridge.analysis.paths import Paths
from weighbridge.analysis.plan import Comparisons, StepChange
from weighbridge.analysis.sessions import Sessions
from weighbridge.analysis.trends import PlaceEffect
from weighbridge.analysis.trial_row import TrialRow
from weighbridge.model.address import ArmId, HasMetricId, MetricId, grouped
from weighbridge.model.decisions import LeftOut, TrialLength
from weighbridge.model.disturbance import Disturbance, disturbance_of
from weighbridge.model.explained import DescribedMechanism
from weighbridge.model.flag import Flag
from weighbridge.model.ladder import Rung
from weighbridge.model.measurement import is_resource_use
from weighbridge.statistics import Better, Cost, Looks, SlowRuns, Verdict
from weighbridge.statistics.contrast import shown_level
from weighbridge.statistics.sample_size import MIN_BLOCKS_SIGNED_RANK, MIN_BLOCKS_VERDICT
from weighbridge.statistics.verdicts import excludes_no_cost, noise_range, within_noise

EXTENDED_ERROR = 0.08
"""The highest share of false alarms among runs that are extended until something is different.

Simulations of one comparison gave 2.6% to 7.7% (`benchmarks/rule.py`, ``extended``)."""


class RemarkPlace(StrEnum):
    """The place where a report shows a remark about a comparison. By default it is next to its metric."""

    METRIC = "metric"
    """Only there."""
    COST = "cost"
    """Not at all if the comparison has too few rounds for a cost."""
    SENTENCE = "sentence"
    """Also in the sentence of the comparison: it causes a part of the cost."""
    LEAD = "lead"
    """Also on top of the report: the typical cost is not what a long job pays."""
    SCREEN = "screen"
    """Also on every screen, however short."""
    FIRST = "first"
    """Also on the first screen, if there is room."""
    METERS = "meters"
    """Also below the table of resource use."""
    NAME = "name"
    """Not next to its metric: the environment's name and a notice on top contain it."""


DECIDED: tuple[Verdict, ...] = ("different", "equivalent")
"""The verdicts with which a cost is known to matter, or known not to matter."""


@dataclass(frozen=True, slots=True)
class Remark:
    """A fact that a reader should know about a number; `weighbridge.analysis.remarks` has one class per kind."""

    placement: ClassVar[RemarkPlace] = RemarkPlace.METRIC
    code: ClassVar[str]
    """A stable identifier, part of ``report --json``."""

    @property
    def subject(self) -> str:
        """The environment that the remark is about; empty if it is about a comparison or the run."""
        return ""

    @property
    def unresolved_in(self) -> str:
        """The environment whose value is too small to be resolved; empty for all other remarks."""
        return ""


@dataclass(frozen=True, slots=True)
class VisibleCost:
    """The smallest cost that a comparison would have called different in four of five runs like this one.

    An undecided comparison also has the total number of blocks, and the seconds of further trials, that would decide
    it. After these blocks, a cost as large as the equivalence margin is visible, and a cost of zero is proven to be
    within it. Both are None if nothing is open, or if no feasible number of blocks would be enough.
    """

    cost: float
    """A positive cost is worse. It is in percent, or in the metric's unit if the cost is a difference."""
    blocks: int | None = None
    seconds: float | None = None


class BlockPair(NamedTuple):
    """One compared block, with the values of both sides in the metric's unit."""

    block: int
    baseline: float
    value: float


@dataclass(frozen=True, slots=True)
class Comparison:
    """The comparison of one environment with another one, mostly the baseline, on one metric of one cell."""

    environment: str
    against: str
    """The environment that it is compared with. The fields below call it the baseline."""
    aa: bool
    """Whether this is the control, which measures the baseline a second time."""
    cost: Cost | None
    """None if no block has both values."""
    baseline_value: float | None
    """The baseline's median over the compared blocks, in the metric's unit; None if there are none."""
    value: float | None
    """The environment's median over the same blocks; if there are none, over its own good trials."""
    slow: SlowRuns | None
    adjusted_p: float | None
    """The p-value of "no cost" after Holm's correction within the family; None for the control and without a cost."""
    verdict: Verdict
    """The verdict of the report, after Holm's correction; `cost.verdict` is the verdict before it."""
    remarks: tuple[Remark, ...]
    proven: bool = False
    """Whether a small cost is proven: equivalent, but different if there were no margin."""
    never_equivalent: bool = False
    """Whether no number of blocks can prove equivalence: a side failed too often, or the sides are not comparable."""
    broke: Breakage | None = None
    """How the environment's trials of this cell broke; None if none did. ``baseline_broke`` is about the baseline."""
    baseline_broke: Breakage | None = None
    hidden: Bottleneck | None = None
    """The limit that both sides met, if the verdict is "hidden"."""
    effects: tuple[float, ...] = ()
    """The effect of each block: a sum of logarithms, or of values in the metric's unit."""
    visible: VisibleCost | None = None
    """The cost that this comparison would have shown; None with too few blocks, or if nothing can be different."""
    pairs: tuple[BlockPair, ...] = ()
    """The pairs that the cost is computed from, in the order of the blocks."""

    @property
    def blocks(self) -> int:
        """Number of blocks compared."""
        return self.cost.blocks if self.cost else 0

    @property
    def unresolved(self) -> tuple[str, ...]:
        """The environments, out of the two, whose value is too small to be resolved."""
        return tuple(filter(None, (remark.unresolved_in for remark in self.remarks)))

    @property
    def few(self) -> bool:
        """Whether there are so few blocks that reports show the values instead of a cost."""
        return self.cost is not None and self.cost.blocks < MIN_BLOCKS_VERDICT

    @property
    def usable_cost(self) -> Cost | None:
        """The cost for other tools; None if a bottleneck hides it, or if reports show values instead."""
        return None if self.few or self.verdict == "hidden" else self.cost

    @property
    def decided(self) -> bool:
        """Whether the cost is known to matter, or known not to matter."""
        return self.verdict in DECIDED

    @property
    def shown_as(self) -> str:
        """The key for colours and words: the verdict, or "aa", "broke" or "few" if that is more important."""
        if self.aa:
            return "aa"
        return "broke" if self.broke_instead else "few" if self.few else self.verdict

    @property
    def exploratory(self) -> bool:
        """Whether the cost is based on fewer than ten blocks."""
        return self.cost is not None and self.cost.exploratory

    @property
    def broke_instead(self) -> tuple[Breakage, ...]:
        """The breakages that are shown instead of a cost, the environment's first; empty with a cost."""
        if self.cost is not None:
            return ()
        return tuple(each for each in (self.broke, self.baseline_broke) if each is not None)


@dataclass(frozen=True, slots=True)
class MetricReport(HasMetricId):
    """All comparisons on one metric of one cell."""

    metric_id: MetricId
    unit: str
    better: Better
    headline: bool
    """Whether this is its workload's first metric, which the sentences at the top are about."""
    baseline_value: float | None
    """The baseline's median over the first good attempts of all blocks, in `unit`."""
    noise_floor: float | None
    """The smallest cost that stands out from the noise (a fraction); see `weighbridge.statistics.verdicts`."""
    comparisons: tuple[Comparison, ...]
    """The comparisons in the study's order, with the control last."""
    disturbed: bool = False
    """Whether other processes took CPU time in more than half of the baseline's trials in this run."""
    baseline_values: tuple[float, ...] = field(default=(), repr=False)
    """The baseline's value in each block."""

    @property
    def aa(self) -> Comparison | None:
        """The comparison of the control with the baseline."""
        return next((each for each in self.comparisons if each.aa), None)

    def within_noise(self, row: Comparison) -> bool:
        """Return whether a cost counts as noise because it is not larger than the control's cost.

        This applies to resource use, to comparisons with few blocks and to disturbed runs. Disturbance comes in
        episodes of many trials, and a random order of few blocks does not help against them. Without a noise floor
        for the metric, every cost of a disturbed run counts as noise.
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
        """The noise floor as the lowest and highest cost, from `weighbridge.statistics.verdicts.noise_range`."""
        return noise_range(self.aa.cost) if self.aa is not None and not self.aa.few else None

    @property
    def resource_use(self) -> bool:
        """Whether this is resource use, which is a family of its own, and not a result of the workload."""
        return is_resource_use(self.metric)


@dataclass(frozen=True, slots=True)
class LadderStep:
    """One step of the ladder on one metric: an environment and the one that it extends, paired within blocks."""

    changes: tuple[StepChange, ...]
    """The settings that differ between the two."""
    row: Comparison
    """The comparison; ``against`` is the environment that it extends, or the nearest lower one if that is absent.

    ``adjusted_p`` is from the steps' family."""
    start: float | None
    """The ratio of the extended environment to the baseline, or the difference in the unit; None if unknown."""


@dataclass(frozen=True, slots=True)
class Ladder:
    """All steps of the ladder on one metric of one cell, in the ladder's order."""

    report: MetricReport
    steps: tuple[LadderStep, ...]


@dataclass(frozen=True, slots=True)
class CounterChange:
    """The difference that a mechanism makes to one metric of resource use."""

    report: MetricReport
    row: Comparison
    """With the mechanism against without it; ``adjusted_p`` is from the family of all such rows."""


class ProofState(StrEnum):
    """Whether the facts of the sites show that a mechanism is off in the arm without it."""

    SHOWN = "shown"
    UNKNOWN = "unknown"
    """No recorded fact shows it."""
    NOT_OFF = "not-off"
    """The facts are the same as with the mechanism, or show that it is still active."""


@dataclass(frozen=True, slots=True)
class MechanismCost:
    """The cost of one mechanism of an environment on a primary metric."""

    mechanism: DescribedMechanism
    row: Comparison | None
    """The environment with the mechanism against without it, both without its ``off_with``; None if not measured."""
    without: str = ""
    """The name of the arm without the mechanism; "" if none was measured."""
    why_not: str = ""
    """The reason why it was not switched off here; "" if it was."""
    proof: ProofState = ProofState.UNKNOWN
    facts: tuple[str, str] = ("", "")
    """The facts of the sites with the mechanism and without it; "" if no fact is known."""
    counters: tuple[CounterChange, ...] = ()
    rules: tuple[str, str] = ("", "")
    """The number of packet filter rules that a probe matched with the mechanism and without it; "" if unknown."""


@dataclass(frozen=True, slots=True)
class MechanismPair:
    """The interaction of two mechanisms: how much more one costs with the other than without it."""

    one: DescribedMechanism
    other: DescribedMechanism
    row: Comparison


@dataclass(frozen=True, slots=True)
class Explanation:
    """The parts of an environment's cost on a primary metric. Every part is measured; none is a remainder."""

    environment: str
    report: MetricReport
    total: Comparison
    """The environment against the baseline, as in the rest of the report."""
    mechanisms: tuple[MechanismCost, ...]
    """The mechanisms, the largest cost first."""
    interaction: Comparison | None
    """The cost of all mechanisms together beyond the sum of the single costs; None with fewer than two."""
    unexplained: Comparison | None
    """The environment with all mechanisms off against the baseline; None if no arm has all of them off."""
    unexplained_arm: str = ""
    pairs: tuple[MechanismPair, ...] = ()
    """Interactions of mechanisms that were switched in every combination, the largest first."""
    crossed: bool = False
    """Whether mechanisms were switched in every combination; the environment's others stayed on."""
    placebo: Comparison | None = None
    """The environment against itself under another name, which switches nothing; None if the study has no placebo."""
    placebo_arm: str = ""

    @property
    def placebo_is_significant(self) -> bool:
        """Whether the placebo is significant after Holm's correction, so that parts of its size are not credible."""
        return self.placebo is not None and self.placebo.verdict == "different"

    @property
    def placebo_excludes_zero(self) -> bool:
        """Whether the placebo's own interval excludes zero, which one in twenty does by chance."""
        row = self.placebo
        return row is not None and row.cost is not None and not row.few and excludes_no_cost(row.cost)


class TrustReason(StrEnum):
    """The reason why a session is trusted, is not trusted, or cannot be judged."""

    NO_CONTROL = "no-control"
    FEW_BLOCKS = "few-rounds"
    """The control has fewer blocks than any verdict needs."""
    SHIFTED = "failed"
    """The control shows a cost although there is none."""
    HOLDS = "passed"


@dataclass(frozen=True, slots=True)
class Trust:
    """The result of the A/A check of a session. ``trusted`` is None if the check was not possible.

    True only means that no false cost was seen. The noise floor shows whether the session can detect small costs.
    """

    trusted: bool | None
    reason: TrustReason
    noise_floor: float | None
    """The median noise floor of the primary metrics (a fraction): 0.5 is a ratio between 1 / 1.5 and 1.5.

    With an even number of metrics, it is the larger of the two in the middle."""
    noise_floor_in: MetricReport | None
    """The metric with the median noise floor."""
    largest_noise: float | None
    """The largest noise floor of the primary metrics (a fraction)."""
    largest_noise_in: MetricReport | None
    """The metric with the largest noise floor."""
    blocks: int = 0
    """The smallest number of blocks of the control on the primary metrics that are checked."""
    unchecked: tuple[MetricReport, ...] = ()
    """The primary metrics without a usable control: it has fewer blocks than any verdict needs."""
    shifted: tuple[MetricReport, ...] = ()
    """The metrics on which the control shows a cost."""
    visible_shift: float | None = None
    """The largest shift of a primary metric that the check finds in four of five sessions (a fraction).

    Like the noise floor, it leaves out metrics whose control is hidden."""
    visible_shifts: int = 0
    """The number of primary metrics for which such a shift is known."""
    places: tuple[PlaceEffect, ...] = ()
    """The metrics whose values depend on a trial's place in its block."""

    @property
    def noise(self) -> tuple[float, float] | None:
        """The noise floor of ``noise_floor_in`` in percent."""
        return self.noise_floor_in.noise if self.noise_floor_in is not None else None


def disturbance_among(trials: Iterable[TrialRow], environments: Collection[str | None]) -> Disturbance:
    """Return the disturbance in the good trials of some environments."""
    return disturbance_of(trial.flags for trial in trials if trial.environment in environments and trial.ok)


@dataclass(frozen=True)
class Analysis:
    """A whole run, compared. It is cheap to keep and to read; `weighbridge.analysis.analyse.analyse` creates it."""

    run_id: str
    study: str
    question: str
    baseline: str
    aa_arm: str | None
    environments: tuple[str, ...]
    """The names of all arms in the study's order, with the control and arms that explain another environment."""
    others: tuple[str, ...]
    """The environments that are compared, in the study's order, without the control."""
    equivalence: float | None
    """The margin of "equivalent" (a fraction)."""
    target: float | None
    """The half-width that an adaptive run aims for (a fraction)."""
    labels: tuple[str, ...]
    """The labels of all cells of the study, with or without a finished trial."""
    metrics: tuple[MetricReport, ...]
    trust: Trust
    trials: tuple[TrialRow, ...]
    """The trials in chronological order."""
    context: Context = field(repr=False, compare=False)
    """The data for judging further comparisons of this run."""
    confounders: tuple[Remark, ...] = ()
    polled: bool = False
    """Whether idle CPUs of this machine polled instead of halting."""
    calibration: Calibration | None = None
    """The machine's last calibration; None if there was none."""
    ladder: tuple[Ladder, ...] = ()
    """The steps on each of the workloads' own metrics, headlines first; empty if the study has no ladder."""
    latencies: tuple[LatencyReport, ...] = ()
    """The merged latency histograms of the workloads that give them."""
    sweeps: tuple[LoadSweep, ...] = ()
    """The workloads that name their load and have at least three levels of it."""
    broken: Mapping[ArmId, Breakage] = field(default_factory=dict)
    """The arms with trials that broke under their load."""
    limits: Mapping[ArmId, Sequence[Flag | None]] = field(default_factory=dict, repr=False)
    """The bottleneck of each good trial."""
    durability: Mapping[str, Durabilities] = field(default_factory=dict)
    """For each workload label, the durability of acknowledged data, and the environments that have it."""
    power_cuts: PowerCuts = ()
    """The results of `weighbridge durability` for the storage of environments."""
    paths: Paths = field(default_factory=Paths)
    """The network path of each environment, for the clients of each host."""
    left_out: tuple[LeftOut, ...] = ()
    """Environments of the study that could not be opened; ``environments`` does not include them."""
    lengths: tuple[TrialLength, ...] = ()
    """The lengths of trials, if a pilot block chose them."""
    time_shared: bool = False
    """Whether some workloads took part in fewer blocks than others because time was short."""
    rungs: tuple[Rung, ...] = ()
    """The study's ladder as written, including environments that are left out."""
    isolation: Mapping[str, Isolation] = field(default_factory=dict)
    """For each environment that was measured in hypervisors, these hypervisors."""
    notices: tuple[Remark, ...] = ()
    """Remarks that are shown before all costs, about emulators, nested guests and unverified kinds."""
    sessions: Sessions = field(default_factory=Sessions)
    """Each start and continuation of the run, and the blocks that belong to it."""
    looks: Looks = field(default_factory=Looks)
    """The number of looks at the costs; with more looks, each one spends less of the error."""
    control_looks: Looks = field(default_factory=Looks)
    """The looks at the control; only planned looks count."""
    explanations: tuple[Explanation, ...] = ()
    """The parts of each environment's cost, one primary metric each; empty if the study does not ask for them."""

    @cached_property
    def trials_of(self) -> Mapping[str, Sequence[TrialRow]]:
        """The trials of each label that has any, in chronological order."""
        cells = grouped(self.trials, attrgetter("workload", "level"))
        return {trials[0].label: trials for trials in cells.values()}

    @property
    def plan(self) -> Comparisons:
        """The comparisons that the study asks for."""
        return self.context.plan

    @property
    def failed(self) -> tuple[TrialRow, ...]:
        """The trials without measurements. Trials that broke are not included, because breaking is a result."""
        return tuple(trial for trial in self.trials if not (trial.ok or trial.broke))

    @cached_property
    def bottlenecks(self) -> Mapping[ArmId, LimitCounts]:
        """For each arm, the number of good trials with each bottleneck."""
        return {arm: counts(limits) for arm, limits in self.limits.items()}

    @cached_property
    def disturbance(self) -> Disturbance:
        """The disturbance in the good trials of the baseline and its control."""
        return self.disturbance_in(self.baseline)

    def disturbance_in(self, environment: str) -> Disturbance:
        """Return the disturbance in an environment's good trials; the baseline's include the control's.

        CPU time that the environment's own engine or proxy uses outside of its sites counts as disturbance.
        """
        return disturbance_among(
            self.trials, {environment, self.aa_arm if environment == self.baseline else environment}
        )

    @property
    def on_nodes(self) -> bool:
        """Whether the sites are pods on nodes of a cluster, which chooses their CPUs."""
        study = self.context.study
        return study is not None and any(host.get("kind") == "kubernetes" for host in study.hosts.values())

    @cached_property
    def disturbances(self) -> Mapping[str, Disturbance]:
        """The disturbance of each environment that has any, from `disturbance_in`."""
        names = [name for name in self.environments if name != self.aa_arm]
        by_name = {name: self.disturbance_in(name) for name in names}
        return {name: disturbance for name, disturbance in by_name.items() if disturbance.taken}

    @property
    def extended(self) -> bool:
        """Whether the number of blocks was changed after costs could be seen."""
        return self.looks.further > 0

    @property
    def confidence(self) -> float:
        """The confidence level of the cost intervals: 0.95, or higher if the run was extended or is unfinished.

        It is not the share of runs without a false alarm: among extended runs, up to `EXTENDED_ERROR` have one.
        """
        return shown_level(self.looks)

    @property
    def unfinished(self) -> bool:
        """Whether the run did not reach its end: it was stopped, or is still running."""
        return self.plan.unfinished

    @property
    def headlines(self) -> tuple[MetricReport, ...]:
        """The first metric of each workload and level."""
        return tuple(each for each in self.metrics if each.headline)

    @property
    def compared(self) -> tuple[Comparison, ...]:
        """All comparisons with a cost, without the control."""
        return tuple(row for each in self.metrics for row in each.comparisons if row.cost is not None and not row.aa)

    @property
    def exploratory(self) -> bool:
        """Whether every comparison has fewer than ten blocks."""
        return bool(self.compared) and all(row.exploratory for row in self.compared)

    @property
    def native_only(self) -> bool:
        """Whether the study has only the baseline and its control."""
        return not self.others

    @property
    def few(self) -> bool:
        """Whether every comparison has so few blocks that reports show the values instead of a cost."""
        return bool(self.compared) and all(row.few for row in self.compared)

    def references(self, report: MetricReport) -> dict[str, float | None]:
        """Return the medians of the environments that others are compared with, the baseline first."""
        others = (row for row in report.comparisons if row.against != self.baseline)
        return {self.baseline: report.baseline_value} | {row.against: row.baseline_value for row in others}

    def block_values(self, report: MetricReport, environment: str) -> tuple[float, ...]:
        """Return the values of `by_block` without their blocks."""
        return tuple(self.by_block(report, environment).values())

    def by_block(self, report: MetricReport, environment: str) -> dict[int, float]:
        """Return an environment's values of a metric by block, in its unit, each from the first good attempt."""
        values: dict[int, float] = {}
        for trial in sorted(self.trials_of.get(report.label, ()), key=lambda each: (each.block, each.attempt)):
            if trial.environment == environment and report.metric in trial.values:
                values.setdefault(trial.block, trial.values[report.metric])
        return values

    def of(self, label: str) -> tuple[MetricReport, ...]:
        """Return the metrics of one workload and level."""
        return tuple(each for each in self.metrics if each.label == label)
