"""The types of ``fleet report --json``, which its JSON Schema is made from."""

from typing import Final, Literal

from pydantic import ConfigDict, with_config
from typing_extensions import TypedDict

from weighbridge.features.fleets.analysis import WhyLeftOut, WhyNotCounted
from weighbridge.features.fleets.unit import Purpose
from weighbridge.statistics import Better, Scale, Verdict

FLEET_VERSION: Final = 1


class FleetInterval(TypedDict):
    """An estimate with its limits; an infinite limit is null."""

    estimate: float | None
    low: float | None
    high: float | None


class MachineRow(TypedDict):
    """A machine, and the facts of it that all of its runs agree on."""

    machine: str
    facts: dict[str, str]


class FleetRunRow(TypedDict):
    """One run of the fleet; ``machines`` are one, or the client's and the server's."""

    name: str
    machines: list[str]
    purpose: Purpose
    run: str
    date: str | None
    blocks: int
    trusted: bool | None
    unfinished: bool
    disturbed: bool
    trials: int
    failed: int


class RunEffectRow(TypedDict):
    """The effect of one run on a metric, with its own interval; ``not_counted`` is the reason if any."""

    name: str
    blocks: int
    effect: FleetInterval | None
    not_counted: WhyNotCounted | None


class FleetEffectRow(TypedDict):
    """A machine's distance from the others, or a pair's distance from its machines; the interval is simultaneous."""

    machines: list[str]
    distance: FleetInterval
    adjusted_p: float | None
    odd: bool
    runs: int | None


class SpreadRow(TypedDict):
    """Standard deviations in ``effect_unit``; of ratios exp(deviation) - 1 in percent. Null: not known."""

    between_machines: float | None
    between_machines_high: float | None
    pairs: float | None
    between_sessions: float | None
    within_run: float | None


class FleetMetricRow(TypedDict):
    """One environment's cost on one primary metric, or the baseline's own value (``own``).

    For costs, ``typical`` and ``next`` are in ``effect_unit``, like all effects and distances. For own values, these
    two and the runs' effects are in ``unit``. Positive costs and distances are worse.
    """

    environment: str
    own: bool
    workload: str
    level: dict[str, str]
    metric: str
    unit: str
    better: Better
    scale: Scale
    effect_unit: str
    machines: int
    typical: FleetInterval | None
    next: FleetInterval | None
    spread: SpreadRow | None
    judged_together: int
    effects: list[FleetEffectRow]
    pairs: list[FleetEffectRow]
    runs: list[RunEffectRow]


class UnlikeFactRow(TypedDict):
    """A fact of an outlier that differs from ``peers`` of ``of`` others; null if it has no value."""

    fact: str
    value: str | None
    usual: str | None
    peers: int
    of: int


class OddMachineRow(TypedDict):
    """A machine that is odd in some metric."""

    machine: str
    unlike: list[UnlikeFactRow]


class UnitChangeRow(TypedDict):
    """A machine's or a pair's change of a metric; own values have no verdict."""

    machines: list[str]
    change: FleetInterval
    adjusted_p: float | None
    verdict: Verdict | None


class ShiftRow(TypedDict):
    """One metric's changes: ``typical`` over the machines, ``proven`` if it exceeds differences of sessions."""

    environment: str
    own: bool
    workload: str
    level: dict[str, str]
    metric: str
    effect_unit: str
    typical: FleetInterval | None
    proven: bool
    unlike: list[str]
    changes: list[UnitChangeRow]


class NotComparedRow(TypedDict):
    """A metric of both fleets without a change because its units differ."""

    environment: str
    own: bool
    workload: str
    level: dict[str, str]
    metric: str
    why: Literal["unit"]


class AgainstRow(TypedDict):
    """The changes against an earlier fleet; ``other_machine_id``: machines of the same name, but not the same id."""

    folder: str
    only_before: list[str]
    only_after: list[str]
    other_machine_id: list[str]
    shifts: list[ShiftRow]
    not_compared: list[NotComparedRow]


class LeftOutRow(TypedDict):
    """A directory that is none of the fleet's runs; ``why`` is for people."""

    name: str
    reason: WhyLeftOut
    why: str


@with_config(ConfigDict(extra="forbid"))
class FleetDocument(TypedDict):
    """The document of ``weighbridge fleet report --json``."""

    version: Literal[1]
    folder: str
    study: str
    question: str
    baseline: str
    margin: float
    machines: list[MachineRow]
    runs: list[FleetRunRow]
    left_out: list[LeftOutRow]
    odd_machines: list[OddMachineRow]
    odd_pairs: list[list[str]]
    metrics: list[FleetMetricRow]
    controls: list[ShiftRow]
    against: AgainstRow | None
