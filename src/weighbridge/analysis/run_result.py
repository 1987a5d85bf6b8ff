"""The result of a run, as ``report --json`` prints it.

The JSON Schema and docs/reference/json.md are generated from these dataclasses: a field is a key, and its docstring
says what the key means.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Final, Literal

from pydantic import ConfigDict, WithJsonSchema, with_config
from pydantic_core import to_jsonable_python
from typing_extensions import TypedDict

from weighbridge.analysis import remarks
from weighbridge.analysis.judgement import Family
from weighbridge.analysis.limits import GateOutcome, Reason
from weighbridge.analysis.results import ProofState, TrustReason
from weighbridge.model.decisions import LeftOut
from weighbridge.model.document import Documented, SuggestedStep
from weighbridge.model.isolation import Layer
from weighbridge.statistics import Better, Scale, Verdict

VERSION: Final = 8
"""The version of the document and of ``costs.csv``."""


def finite(value: float | None) -> float | None:
    """Return the number, or None if it is infinite or not a number, which JSON cannot express."""
    return value if value is not None and math.isfinite(value) else None


Number = float | None
"""A number in a document; null if it is infinite."""
REMARK_CODES = sorted({kind.code for kind in remarks.kinds()})
VerdictCode = Literal["significant", "equivalent", "undecided", "hidden"]
VERDICT_CODES: Mapping[Verdict, VerdictCode] = {
    "different": "significant", "equivalent": "equivalent", "inconclusive": "undecided", "hidden": "hidden",
}  # fmt: skip
"""The verdicts by the names that they have in the code."""
LevelFactors = Mapping[str, str]
"""A level: the options that the study varies, with their values."""


def document_json(document: Any) -> dict[str, Any]:
    """Return a dataclass of a document as JSON has it."""
    fields: dict[str, Any] = to_jsonable_python(document, inf_nan_mode="null")  # builds no serialiser for the classes
    return fields


@dataclass(frozen=True, kw_only=True)
class Within(Documented):
    """The hypervisors in which programs ran."""

    layers: tuple[Layer, ...]
    """The hypervisors around the environment, the outermost first."""
    emulated: bool
    """True if one of the hypervisors is an emulator."""


@dataclass(frozen=True, kw_only=True)
class InEnvironment(Within):
    """An environment, and the hypervisors in which its programs ran."""

    environment: str


@dataclass(frozen=True, kw_only=True)
class InCell(InEnvironment):
    """An environment on a workload at a level."""

    workload: str
    level: LevelFactors


@dataclass(frozen=True, kw_only=True)
class MetricPlace(Documented):
    """A metric of a workload at a level."""

    workload: str
    metric: str
    level: LevelFactors


@dataclass(frozen=True, kw_only=True)
class RatioLimits(Documented):
    """The limits of a 95% interval of a ratio."""

    low: Number
    """The lower limit of the ratio; null for a difference, and without an interval."""
    high: Number
    """The upper limit of the ratio."""


@dataclass(frozen=True, kw_only=True)
class Penalty(Documented):
    """A cost with its limits; positive is worse."""

    cost: Number
    """The cost, positive if worse than the baseline."""
    cost_low: Number
    """The lower limit of the cost; null without an interval."""
    cost_high: Number
    """The upper limit of the cost."""
    cost_unit: str | None
    """"%" of the baseline, or the metric's unit if the cost is a difference ("points" for a share)."""


@dataclass(frozen=True, kw_only=True)
class Noise(Documented):
    """The limits of the costs within the noise floor."""

    noise_low: float | None
    """The lowest cost within the noise floor, in ``cost_unit`` or, for a whole run, in percent: -1.83 is -1.83%. Null
    if unknown."""
    noise_high: float | None
    """The highest cost within the noise floor, in the same unit."""


@dataclass(frozen=True, kw_only=True)
class HiddenBy(Documented):
    """The limit that both sides of a comparison reached."""

    by: str
    """"cable", "asked-rate" or "generator"."""
    share: float
    """The median share of the limit that was used."""
    rate: float | None
    """The limit in ``unit``, if it is a rate."""
    unit: str | None
    trials: int
    """The number of trials that reached the limit."""
    of: int
    """The number of valid trials."""


@with_config(ConfigDict(extra="allow"))
class RemarkRow(TypedDict):
    """A remark on the numbers; further keys are its figures and names, and depend on its code."""

    code: Annotated[str, WithJsonSchema({"enum": REMARK_CODES, "type": "string"})]
    text: str


@dataclass(frozen=True, kw_only=True)
class ArmCost(Noise, RatioLimits, Penalty, MetricPlace, InEnvironment):
    """One environment's cost on one metric, against the baseline or the base of a head, as in ``costs.csv``."""

    unit: str
    better: Better
    primary: bool
    """Whether this is the workload's primary metric."""
    resource_use: bool
    control: bool
    """Whether the environment is the control: the baseline measured a second time."""
    family: Family | None
    """The comparisons with which this one is corrected; null for the control."""
    baseline_value: float | None
    """The median of the baseline over the compared rounds, in ``unit``."""
    value: float | None
    """The median of the environment over the same rounds."""
    scale: Scale | None
    typical: Number
    """The cost as a ratio; null for a difference."""
    geometric: Number
    """The ratio of the geometric means."""
    arithmetic: Number
    """The ratio of the arithmetic means."""
    rounds: int
    """The number of rounds that were compared."""
    exploratory: bool | None
    """Whether the cost is based on fewer than ten rounds."""
    adjusted_p: float | None
    """The p-value after Holm's correction in the family."""
    verdict: VerdictCode | None
    """The verdict; null for the control."""
    visible_cost: Number
    """The smallest cost that four of five such runs would have found significant."""
    rounds_to_settle: int | None
    """The number of rounds in all that would probably decide the cost."""
    seconds_to_settle: float | None
    """The time of the further rounds."""
    baseline_emulated: bool
    """Whether an emulator ran the environment that the cost is against."""
    unresolved: tuple[str, ...]
    """The environments whose value is below what the meters can resolve."""
    hidden: HiddenBy | None


@dataclass(frozen=True, kw_only=True)
class Pairs(Documented):
    """The values that a cost is computed from, in the metric's unit."""

    round: tuple[int, ...]
    """The number of each round."""
    baseline: tuple[float, ...]
    """The baseline's value in each of these rounds."""
    environment: tuple[float, ...]
    """The environment's value in each of these rounds."""


@dataclass(frozen=True, kw_only=True)
class MeasuredCost(ArmCost):
    """A cost with the values that it is computed from, and its remarks."""

    against: str = ""
    """The environment that it is compared with: the baseline, the base of a head, or the environment that a step adds
    to. Empty in ``costs`` of older documents, which compare with the baseline."""
    pairs: Pairs
    remarks: tuple[int, ...]
    """Indices into the document's ``remarks``."""


@dataclass(frozen=True, kw_only=True)
class Step(MeasuredCost):
    """One step of a ladder, against the environment that it adds to."""

    change: str
    """The settings that the step changes, for people."""


@dataclass(frozen=True, kw_only=True)
class MechanismProof(Documented):
    """Whether a mechanism is off according to its sites."""

    state: ProofState
    on: str | None
    """The statement of the sites with the mechanism."""
    off: str | None
    """The statement of the sites without the mechanism."""


@dataclass(frozen=True, kw_only=True)
class MatchedRules(Documented):
    """The numbers of packet filter rules that a probe of the path matched."""

    on: str | None
    """The number with the mechanism."""
    off: str | None
    """The number without the mechanism."""


@dataclass(frozen=True, kw_only=True)
class MechanismResult(Documented):
    """The cost of one mechanism: the environment with it against the arm that has it off."""

    kind: str
    title: str
    switched: str
    """The setting that is switched, for people."""
    off_with: tuple[str, ...]
    """The mechanisms that are off on both sides of the comparison."""
    remedy: str
    source: str
    why_not: str | None
    """Why the mechanism was not switched off."""
    proof: MechanismProof
    rules: MatchedRules
    without: str | None
    """The arm that has the mechanism off."""
    cost: ArmCost | None
    counters: tuple[ArmCost, ...]
    """The same comparison in metrics of resource use."""


@dataclass(frozen=True, kw_only=True)
class MechanismPairCost(Documented):
    """The extra cost of one mechanism with another one, compared with its cost without it."""

    one: str
    other: str
    cost: ArmCost


@dataclass(frozen=True, kw_only=True)
class PlaceboResult(Documented):
    """The environment against an arm that is the same and switches nothing. Its true cost is zero."""

    arm: str
    cost: ArmCost
    excludes_zero: bool
    """Whether its interval excludes zero, as 1 in 20 does by chance. If it is significant, distrust other parts."""


@dataclass(frozen=True, kw_only=True)
class ExplainedCost(MetricPlace):
    """Why an environment costs what it does on a primary metric; every part is measured."""

    environment: str
    text: str
    crossed: bool
    """Whether the mechanisms were switched in every combination."""
    mechanisms: tuple[MechanismResult, ...]
    pairs: tuple[MechanismPairCost, ...]
    """The interactions of pairs of ``crossed`` mechanisms."""
    interaction: ArmCost | None
    """What all mechanisms cost together beyond the sum of their single costs."""
    unexplained: ArmCost | None
    """The environment with all mechanisms off, against the baseline."""
    placebo: PlaceboResult | None
    """The placebo, whose true cost is zero; null if the study has no placebo."""


@dataclass(frozen=True, kw_only=True)
class Percentile(RatioLimits, Penalty):
    """One percentile of one environment's latencies."""

    value: float
    typical: Number
    """The cost as a ratio; null for a difference."""


@dataclass(frozen=True, kw_only=True)
class Percentiles(MetricPlace, InEnvironment):
    """The latency percentiles of one environment, over all requests of all its trials."""

    unit: str
    runs: int
    """The number of trials."""
    requests: int
    percentiles: Mapping[str, Percentile]


@dataclass(frozen=True, kw_only=True)
class Peak(Documented):
    """The level with the highest throughput."""

    level: str
    value: float
    highest: int
    """The number of rounds in which this level was the highest."""
    of: int
    """The number of rounds with a result at every level."""


@dataclass(frozen=True, kw_only=True)
class PeakCost(RatioLimits):
    """The ratio of each round's highest value to the baseline's."""

    typical: float
    rounds: int


@dataclass(frozen=True, kw_only=True)
class Curve(InEnvironment):
    """The throughput of one environment over the load."""

    workload: str
    metric: str
    unit: str
    load: str
    """The option that is the load."""
    fixed: str
    """The other options of the level."""
    peak: Peak | None
    peak_cost: PeakCost | None
    errors_from: str | None
    """The lowest level at which trials reported errors."""


@dataclass(frozen=True, kw_only=True)
class Bottlenecks(InCell):
    """What limited the valid trials of one environment."""

    trials: Mapping[str, int]
    """The number of trials that each kind limited."""
    of: int
    """The number of valid trials in which the kinds are counted."""


@dataclass(frozen=True, kw_only=True)
class Overloaded(InCell):
    """The trials of one environment that were overloaded."""

    overloaded: int
    """The number of overloaded trials."""
    of: int
    """The number of trials."""
    reason: str


@dataclass(frozen=True, kw_only=True)
class ProgramMedians(InCell):
    """The resources that one role's program used in one environment."""

    role: str
    rounds: int
    medians: Mapping[str, float]
    """The medians over the rounds (``program_cpu_user_s``, ``cpu_s`` of its site, ``guest_cpu_s``, ...)."""


@dataclass(frozen=True, kw_only=True)
class RootFilesystem(Documented):
    """What identifies a root filesystem; the run's file lists all its packages."""

    digest: str | None
    packages: int
    """The number of packages."""
    measured: Mapping[str, str]
    """The packages of the measured programs, with their versions."""


@dataclass(frozen=True, kw_only=True)
class Versions(Documented):
    """The versions of Weighbridge, of the host's programs and of the root filesystems."""

    weighbridge: str | None
    host: Mapping[str, str]
    root_filesystems: Mapping[str, RootFilesystem]
    """The root filesystems: "userland", "client userland" and "userland of ENVIRONMENT"."""


@dataclass(frozen=True, kw_only=True)
class Provenance(Documented):
    """The origin of a run's numbers."""

    date: str | None
    """The start of the run."""
    kernel: str | None
    engine: Mapping[str, str]
    """The engine of each environment that has one, with its version."""
    versions: Versions
    hosts: Mapping[str, Mapping[str, str]]
    """The facts of each other host."""
    paths: Mapping[str, Any]
    """The network path of each environment."""


@dataclass(frozen=True, kw_only=True)
class SessionResult(Documented):
    """One session of the run; a run that was continued has several."""

    started: str
    rounds: tuple[int, ...]
    """The rounds of the session."""
    facts: Mapping[str, str]
    """The facts that differ between sessions."""


@dataclass(frozen=True, kw_only=True)
class PowerCutResult(Documented):
    """The acknowledged records of an environment that survived a power cut."""

    environment: str
    promise: str
    storage: str
    claimed: str
    host: str
    acknowledged: int
    found: int
    lost: int
    first_lost: int | None
    torn: int
    displaced: int
    workload: str
    failure: str
    verdict: str


@dataclass(frozen=True, kw_only=True)
class LimitAnswer(Penalty, InEnvironment):
    """The outcome of one ``--fail-if`` limit in one comparison."""

    limit: str
    workload: str
    metric: str
    outcome: GateOutcome
    reason: Reason
    rounds: int


@dataclass(frozen=True, kw_only=True)
class TrialLengths(Documented):
    """How long the trials of a workload at a level lasted, in seconds."""

    workload: str
    level: LevelFactors
    asked_s: float
    """The length that the study asks for."""
    chosen_s: float
    """The length that a pilot round chose."""
    beside_s: float
    """The further time of each trial."""


@dataclass(frozen=True, kw_only=True)
class PlaceEffectResult(MetricPlace):
    """A metric whose value depends on a trial's place in its round."""

    per_place: float
    """By how much the value rises from one place to the next, in ``per_place_unit``."""
    per_place_unit: str
    adjusted_p: float
    rounds: int


@dataclass(frozen=True, kw_only=True)
class MeasuredEnvironment(Within):
    """An environment of the study."""

    kind: str
    control_of: str | None
    """The baseline, if the environment is the control."""
    options: Mapping[str, Any]
    workloads: Mapping[str, Mapping[str, Any]]
    """The options of workloads that differ in this environment."""


@dataclass(frozen=True, kw_only=True)
class Versioned(Documented):
    """The version of the document. The last base of a dataclass has the first keys."""

    version: Literal[8]


@dataclass(frozen=True, kw_only=True)
class RunResult(Noise, Provenance, Versioned):
    """The document of ``weighbridge report RUN --json``."""

    study: str
    run: str
    directory: str
    """The directory of the run, in the spelling of the command line."""
    answer: str
    """The answer to the question as a sentence for people."""
    control_sentence: str
    """The result of the control and the load of other programs, in sentences for people; empty without a control."""
    question: str
    baseline: str
    control: str | None
    """The environment that is the control; null without one."""
    margin: float | None
    """The largest cost that does not matter; 0.03 is 3%."""
    looks: int
    """How often the results are examined in all, the end included."""
    error_share: float
    """The share of each error rate that the interim looks leave ("How a verdict follows")."""
    control_error_share: float
    """The same for the control, which counts planned interim looks only."""
    families: Mapping[Family, int]
    """The number of comparisons that are corrected together in each family."""
    noise_floor: float | None
    """The median noise floor of the primary metrics, as a fraction: 0.03 is 3%. The document's own ``noise_low`` and
    ``noise_high`` are about the same metric, in percent."""
    control_passed: bool | None
    """False if the control shows a cost; null if it cannot decide."""
    control_reason: TrustReason
    control_failed: tuple[MetricPlace, ...]
    """The metrics in which the control failed."""
    control_unchecked: tuple[MetricPlace, ...]
    """The primary metrics for which the control has fewer than six rounds."""
    disturbed: bool
    """Whether other load used CPU time in more than half of the baseline's trials. A significant cost must then
    exceed the noise floor."""
    visible_shift: float | None
    """The shift of the noisiest primary metric that the control detects in four of five runs; 0.03 is 3%."""
    place_effects: tuple[PlaceEffectResult, ...]
    sessions: tuple[SessionResult, ...]
    mixed_rounds: tuple[int, ...]
    """The rounds with trials of several sessions."""
    environments: Mapping[str, MeasuredEnvironment]
    notices: tuple[int, ...]
    """The remarks on the whole run, as indices into ``remarks``."""
    confounders: tuple[int, ...]
    """The remarks on differences besides the isolation, as indices into ``remarks``."""
    costs: tuple[MeasuredCost, ...]
    ladder: tuple[Step, ...]
    explanations: tuple[ExplainedCost, ...]
    remarks: tuple[RemarkRow, ...]
    percentiles: tuple[Percentiles, ...]
    curves: tuple[Curve, ...]
    bottlenecks: tuple[Bottlenecks, ...]
    overloaded: tuple[Overloaded, ...]
    left_out: tuple[LeftOut, ...]
    """The environments that were skipped because they could not be opened."""
    trial_lengths: tuple[TrialLengths, ...]
    time_shared: bool
    """Whether some workloads took part in fewer rounds than others, because the time was short."""
    programs: tuple[ProgramMedians, ...]
    power_cuts: tuple[PowerCutResult, ...]
    limits: tuple[LimitAnswer, ...] = ()
    """The outcomes of ``--fail-if``."""
    next_steps: tuple[SuggestedStep, ...] = ()
    """What would decide the undecided costs, or why nothing would."""
