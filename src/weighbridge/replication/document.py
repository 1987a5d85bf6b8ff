"""The types of ``replicate --json``, of which its JSON Schema is made. docs/reference.md says what the keys mean."""

from typing import Final, Literal

from pydantic import ConfigDict, with_config
from typing_extensions import TypedDict

from weighbridge.replication.comparison import Direction
from weighbridge.replication.paired import Agreement
from weighbridge.replication.proof import Proof
from weighbridge.report.export.document import Hidden, Interval, Within
from weighbridge.statistics import Scale, Verdict

VERSION: Final = 2


class Estimate(Interval):
    """A comparison with the baseline: a ratio or a difference."""

    estimate: float | None


class PublishedComparison(Estimate):
    """What the published figures prove by their own spread."""

    verdict: Proof


class MeasuredComparison(Within, Estimate):
    """What the run measured."""

    verdict: Verdict
    scale: Scale
    unit: str
    blocks: int
    exploratory: bool
    apart: bool
    comparable_in_size: bool
    hidden: Hidden | None


class ReplicationRow(TypedDict):
    """One published comparison beside the measured one."""

    table: str
    environment: str
    against: str
    level: dict[str, str]
    scale: Scale
    unit: str
    baseline_value: float | None
    value: float | None
    published: PublishedComparison
    measured: MeasuredComparison | None
    direction: Direction
    why: str


class SpreadOfRuns(TypedDict):
    """Mean, standard deviation and coefficient of variation (a fraction)."""

    mean: float | None
    deviation: float | None
    variation: float | None


class PublishedSpreadDocument(SpreadOfRuns):
    """As printed; ``derived`` names what follows from the others."""

    derived: list[str]


class MeasuredSpreadDocument(Within, SpreadOfRuns):
    """Of a run's blocks, with the 95 % limits of the coefficient of variation."""

    variation_low: float | None
    variation_high: float | None
    runs: int
    unit: str


class SpreadRowDocument(TypedDict):
    """How far the runs of one environment differ, as published and as measured."""

    table: str
    published_as: str
    environment: str
    published: PublishedSpreadDocument
    measured: MeasuredSpreadDocument | None
    why: str


class PublishedPairDocument(TypedDict):
    """A printed difference: mean, standard deviation, t and p."""

    mean: float
    deviation: float
    t: float
    p: float


class MeasuredPairDocument(TypedDict):
    """The same of a run's blocks; t and p are null where all differences are the same."""

    mean: float
    deviation: float
    pairs: int
    t: float | None
    p: float | None
    unit: str
    verdict: Verdict | None


class PairDocument(TypedDict):
    """A paired difference with its t-test, as published and as measured."""

    table: str
    first: str
    second: str
    published: PublishedPairDocument
    measured: MeasuredPairDocument | None
    agreement: Agreement
    why: str


@with_config(ConfigDict(extra="forbid"))
class ReplicationDocument(TypedDict):
    """The document of ``weighbridge replicate --json``.

    Version 2: ``layers``, ``emulated`` and ``comparable_in_size`` of what was measured.
    """

    version: Literal[2]
    study: str
    source: str
    run: str
    trusted: bool | None
    counts: dict[Direction, int]
    summary: dict[str, str]
    rows: list[ReplicationRow]
    spreads: list[SpreadRowDocument]
    pairs: list[PairDocument]
    oddities: list[str]
