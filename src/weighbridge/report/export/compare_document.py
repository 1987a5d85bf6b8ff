"""The types of ``compare --json`` and ``history --json``, of which their JSON Schemas are made.

docs/reference/json.md says what the keys mean.
"""

from typing import Any, Final, Literal

from pydantic import ConfigDict, with_config
from typing_extensions import TypedDict

from weighbridge.analysis.between_runs import NoChange, WhyNot
from weighbridge.analysis.compared_run import FactKind, Part
from weighbridge.report.export.disturbance import DisturbanceRow
from weighbridge.report.export.document import Worsening
from weighbridge.statistics import Better, Scale, Verdict

COMPARE_VERSION: Final = 1
HISTORY_VERSION: Final = 1


class RunRow(TypedDict):
    """One of the runs."""

    letter: str
    name: str
    run: str
    study: str
    question: str
    date: str | None
    version: str
    trusted: bool | None
    noise_floor: float | None
    disturbance: DisturbanceRow


class FactRow(TypedDict):
    """A fact that differs between the runs; null if a run does not have it."""

    kind: FactKind
    fact: str
    host: str
    environments: list[str]
    before: str | None
    after: str | None
    of_machine: bool


class SettingRow(TypedDict):
    """A setting of the study that differs between the runs."""

    part: Part
    name: str
    setting: str
    before: Any
    after: Any


class OnlyRow(TypedDict):
    """What only one of the two runs has; ``run`` is its letter."""

    part: Part
    name: str
    run: str


class CostInRun(Worsening):
    """A cost in one of the runs."""

    verdict: Verdict
    blocks: int


class ChangeJson(TypedDict):
    """How much a cost changed.

    ``typical``, ``low`` and ``high``: the second run's cost ratio divided by the first's, or the second's difference
    minus the first's. ``change`` and its limits are the same in ``change_unit``, positive is worse;
    ``allowed_low`` and ``allowed_high`` are its limits with the session allowance.
    """

    scale: Scale
    typical: float | None
    low: float | None
    high: float | None
    change: float | None
    change_low: float | None
    change_high: float | None
    allowed_low: float | None
    allowed_high: float | None
    change_unit: str
    exploratory: bool
    adjusted_p: float | None
    noise_floor: float | None
    allowance: float
    margin: float | None


class ChangedCost(TypedDict):
    """One environment in one metric, in both runs."""

    environment: str
    aa: bool
    workload: str
    level: dict[str, str]
    metric: str
    unit: str
    better: Better
    headline: bool
    resource_use: bool
    before: CostInRun
    after: CostInRun
    change: ChangeJson | None
    unknown: NoChange | None
    verdict: Verdict


class ChangedValue(TypedDict):
    """An environment's own medians in both runs, and the shift between them (positive is worse); without verdict."""

    environment: str
    workload: str
    level: dict[str, str]
    metric: str
    unit: str
    before: float
    after: float
    change: float | None
    change_low: float | None
    change_high: float | None
    change_unit: str


class NotCompared(TypedDict):
    """Why absolute values are not compared."""

    reason: WhyNot
    about: list[str]


class PairRow(TypedDict):
    """One run against the first; ``first`` and ``second`` are letters.

    ``disturbed_alike``: whether other load was about the same in both runs; else no cost is "different".
    """

    first: str
    second: str
    disturbed_alike: bool
    facts: list[FactRow]
    on_purpose: list[FactRow]
    settings: list[SettingRow]
    only: list[OnlyRow]
    costs: list[ChangedCost]
    values: list[ChangedValue]
    values_not_compared: list[NotCompared]


@with_config(ConfigDict(extra="forbid"))
class CompareDocument(TypedDict):
    """The document of ``weighbridge compare --json``."""

    version: Literal[1]
    runs: list[RunRow]
    pairs: list[PairRow]


class PastCost(Worsening):
    """A headline cost of one run."""

    environment: str
    workload: str
    level: dict[str, str]
    metric: str
    unit: str
    verdict: Verdict
    blocks: int


class PastRunRow(TypedDict):
    """One run of a folder; ``changed``: facts that differ from the previous run of the same ``series``."""

    name: str
    run: str
    study: str
    series: int
    date: str | None
    blocks: int
    trusted: bool | None
    costs: list[PastCost]
    changed: list[FactRow]


class SkippedRow(TypedDict):
    """Something in the folder that is not a readable run."""

    name: str
    why: str


@with_config(ConfigDict(extra="forbid"))
class HistoryDocument(TypedDict):
    """The document of ``weighbridge history --json``; ``runs`` are in time order, the oldest first."""

    version: Literal[1]
    folder: str
    runs: list[PastRunRow]
    skipped: list[SkippedRow]
