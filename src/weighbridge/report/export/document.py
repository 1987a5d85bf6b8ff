"""The types of ``report --json``: mypy checks what is written by them, and its JSON Schema is made of them.

docs/reference/json.md says what the keys mean.
"""

from typing import Annotated, Any, Final, Literal, NotRequired

from pydantic import ConfigDict, WithJsonSchema, with_config
from typing_extensions import TypedDict

from weighbridge.analysis.gate import GateOutcome, Reason
from weighbridge.analysis.judgement import Family
from weighbridge.analysis.results import ProofState, TrustReason
from weighbridge.report.text.remarks import CODES
from weighbridge.statistics import Better, Scale, Verdict

VERSION: Final = 7
"""Of the document and of ``costs.csv``; `Report` says what changed in which."""


class Interval(TypedDict):
    """95 % limits; null without an interval."""

    low: float | None
    high: float | None


class LayerRow(TypedDict):
    """A hypervisor or an emulator."""

    name: str
    emulated: bool


class Within(TypedDict):
    """The hypervisors around an environment, the outermost first, and whether one of them emulates."""

    layers: list[LayerRow]
    emulated: bool


class Penalty(TypedDict):
    """A cost; positive is worse."""

    cost: float | None
    cost_low: float | None
    cost_high: float | None
    cost_unit: str | None


class Noise(TypedDict):
    """The limits of the noise floor, in the unit of costs; null if unknown."""

    noise_low: float | None
    noise_high: float | None


class Hidden(TypedDict):
    """The limit that both sides of a comparison hit."""

    by: str
    share: float
    rate: float | None
    unit: str | None
    trials: int
    of: int


@with_config(ConfigDict(extra="allow"))
class RemarkRow(TypedDict):
    """A remark on the numbers; further keys are its figures and names, and depend on its code."""

    code: Annotated[str, WithJsonSchema({"enum": [*CODES], "type": "string"})]
    text: str


class CostFigures(Within, Penalty, Noise, Interval):
    """One environment's cost on one metric against the baseline, as in ``costs.csv``."""

    environment: str
    aa: bool
    workload: str
    metric: str
    level: dict[str, str]
    unit: str
    better: Better
    headline: bool
    resource_use: bool
    family: Family | None
    baseline_value: float | None
    value: float | None
    scale: Scale | None
    typical: float | None
    geometric: float | None
    arithmetic: float | None
    blocks: int
    exploratory: bool | None
    adjusted_p: float | None
    verdict: Verdict | None
    visible_cost: float | None
    blocks_to_settle: int | None
    seconds_to_settle: float | None
    baseline_emulated: bool
    unresolved: list[str]
    hidden: Hidden | None


class Pairs(TypedDict):
    """The blocks that were compared, and both sides' values in each, in the metric's unit."""

    block: list[int]
    baseline: list[float]
    environment: list[float]


class CostRow(CostFigures):
    """A cost with the values it is computed from, and indices into the document's ``remarks``."""

    pairs: Pairs
    remarks: list[int]


class Step(CostRow):
    """One step of a ladder, against the environment that it adds to."""

    against: str
    change: str


Proof = TypedDict("Proof", {"state": ProofState, "with": str | None, "without": str | None})
"""Whether a mechanism is off by what its sites say, and what they say with it and without it."""


Rules = TypedDict("Rules", {"with": str | None, "without": str | None})
"""How many rules of packet filters a probe of the path matched with a mechanism and without it."""


class MechanismRow(TypedDict):
    """What one mechanism costs: ``cost`` is of the environment with it against ``without``, the arm that has it off.

    Both are without ``off_with``. ``why_not``: why it was not switched off. ``counters``: the same of resource use.
    """

    kind: str
    title: str
    switched: str
    off_with: list[str]
    remedy: str
    source: str
    why_not: str | None
    proof: Proof
    rules: Rules
    without: str | None
    cost: CostFigures | None
    counters: list[CostFigures]


class MechanismPairRow(TypedDict):
    """Two mechanisms, by kind, and what the one costs more beside the other than without it."""

    one: str
    other: str
    cost: CostFigures


class ExplanationRow(TypedDict):
    """Why an environment costs what it does on a headline metric; every part is measured.

    ``crossed``: the mechanisms were switched in every combination; ``pairs`` are of these. ``interaction``: what all
    mechanisms cost together beyond the single ones. ``unexplained``: the environment with all of them off against
    the baseline.
    """

    environment: str
    workload: str
    metric: str
    level: dict[str, str]
    text: str
    crossed: bool
    mechanisms: list[MechanismRow]
    pairs: list[MechanismPairRow]
    interaction: CostFigures | None
    unexplained: CostFigures | None


class Percentile(Penalty, Interval):
    """One percentile of one environment's latencies."""

    value: float
    typical: float | None


class Percentiles(Within):
    """Latency percentiles of one environment."""

    environment: str
    workload: str
    metric: str
    level: dict[str, str]
    unit: str
    runs: int
    requests: int
    percentiles: dict[str, Percentile]


class Peak(TypedDict):
    """The level with the highest throughput."""

    level: str
    value: float
    highest: int
    of: int


class PeakCost(Interval):
    """The ratio of each block's highest value to the baseline's."""

    typical: float
    blocks: int


class CurveRow(Within):
    """The throughput of one environment over the load."""

    environment: str
    workload: str
    metric: str
    unit: str
    load: str
    fixed: str
    peak: Peak | None
    peak_cost: PeakCost | None
    errors_from: str | None


class Bottlenecks(Within):
    """What limited the good trials of one environment, counted by kind."""

    environment: str
    workload: str
    level: dict[str, str]
    trials: dict[str, int]
    of: int


class Broke(Within):
    """Trials of one environment that broke under their load."""

    environment: str
    workload: str
    level: dict[str, str]
    broke: int
    of: int
    reason: str


class ProgramRow(Within):
    """The resources that one role's program used in one environment: medians over the rounds, by name."""

    environment: str
    workload: str
    level: dict[str, str]
    role: str
    blocks: int
    medians: dict[str, float]


class LeftOutRow(TypedDict):
    """An environment that was skipped because it could not be opened."""

    environment: str
    kind: str
    why: str
    remedy: str


class UserlandRow(TypedDict):
    """What identifies a userland; ``measured``: the packages of measured programs, with versions."""

    digest: str | None
    packages: int
    measured: dict[str, str]


class Versions(TypedDict):
    """Versions of Weighbridge and of the host's programs, and the userlands."""

    weighbridge: str | None
    host: dict[str, str]
    userlands: dict[str, UserlandRow]


class Provenance(TypedDict):
    """Where a run's numbers come from."""

    date: str | None
    kernel: str | None
    engine: dict[str, str]
    versions: Versions
    hosts: dict[str, dict[str, str]]
    paths: dict[str, Any]


class SessionRow(TypedDict):
    """One session of the run: its start, its blocks, and its facts that differ between sessions."""

    started: str
    blocks: list[int]
    facts: dict[str, str]


class PowerCutRow(TypedDict):
    """What a power cut left of an environment's acknowledged records (`weighbridge.model.power_cut.PowerCut`)."""

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


class LimitAnswer(Within, Penalty):
    """The outcome of one ``--fail-if`` limit in one comparison."""

    limit: str
    environment: str
    workload: str
    metric: str
    outcome: GateOutcome
    reason: Reason
    blocks: int


@with_config(ConfigDict(extra="forbid"))
class TrialLengthRow(TypedDict):
    """How long trials of a workload at a level lasted, in seconds; see ``weighbridge.model.decisions``."""

    workload: str
    level: dict[str, str]
    asked_s: float
    chosen_s: float
    beside_s: float


class PlaceEffectRow(TypedDict):
    """A metric whose value depends on a trial's place in its block; ``per_place`` is in ``per_place_unit``."""

    workload: str
    metric: str
    level: dict[str, str]
    per_place: float
    per_place_unit: str
    adjusted_p: float
    blocks: int


class EnvironmentRow(Within):
    """An environment of the study; ``workloads``: options of workloads that differ in it."""

    kind: str
    aa_of: str | None
    options: dict[str, Any]
    workloads: dict[str, dict[str, Any]]


class MetricPlace(TypedDict):
    """A metric of a workload at a level."""

    workload: str
    metric: str
    level: dict[str, str]


@with_config(ConfigDict(extra="forbid"))
class Report(Provenance, Noise):
    """The document of ``weighbridge report RUN --json``.

    Version 7: ``explanations``.
    Version 6: ``unchecked``, ``disturbed``, ``control_error_share``; ``visible_shift`` is that of the noisiest
    headline, not of the median one; ``of`` of ``bottlenecks``; ``userlands`` of ``versions`` in place of
    ``userland``: that listed every package.
    Version 5: it stands alone. ``question``, ``baseline``, ``aa_arm``, ``equivalence``, ``looks``, ``families``,
    ``trust_reason``, ``shifted``, ``confounders`` and ``notices``; each remark once, in ``remarks``, and in costs its
    places there, without ``flags``; beside costs ``aa``, ``headline``, ``family``, ``value``, ``scale``,
    ``adjusted_p`` and ``pairs``; the A/A arm has no ``verdict``, and what has no cost is not ``exploratory``;
    ``environments`` with ``kind``, ``aa_of``, ``options`` and ``workloads``.
    Version 4: ``layers`` and ``emulated`` beside every environment, ``environments``, ``programs``, ``noise_low``,
    ``noise_high``, ``sessions``, ``mixed_blocks`` and ``power_cuts``; ``trial_lengths``, ``time_shared`` and
    ``place_effects``; ``visible_shift``, and beside costs ``visible_cost`` and what would settle them.
    Version 3: ``version`` was ``format`` and ``schema``. Version 2: ``cost`` with its limits and unit, in
    differences too; ``date``, ``kernel``, ``engine``, ``versions``, ``hosts``, ``paths``, ``bottlenecks``,
    ``hidden``; in ``curves`` ``peak`` was ``knee`` and ``peak_cost`` was ``peak``; a step of a ladder that branches
    is not against the row before.
    """

    version: Literal[7]
    study: str
    run: str
    question: str
    baseline: str
    aa_arm: str | None
    equivalence: float | None
    looks: int
    error_share: float
    control_error_share: float
    families: dict[Family, int]
    noise_floor: float | None
    trusted: bool | None
    trust_reason: TrustReason
    shifted: list[MetricPlace]
    unchecked: list[MetricPlace]
    disturbed: bool
    visible_shift: float | None
    place_effects: list[PlaceEffectRow]
    sessions: list[SessionRow]
    mixed_blocks: list[int]
    environments: dict[str, EnvironmentRow]
    notices: list[int]
    confounders: list[int]
    costs: list[CostRow]
    ladder: list[Step]
    explanations: list[ExplanationRow]
    remarks: list[RemarkRow]
    percentiles: list[Percentiles]
    curves: list[CurveRow]
    bottlenecks: list[Bottlenecks]
    broke: list[Broke]
    left_out: list[LeftOutRow]
    trial_lengths: list[TrialLengthRow]
    time_shared: bool
    programs: list[ProgramRow]
    power_cuts: list[PowerCutRow]
    limits: NotRequired[list[LimitAnswer]]
