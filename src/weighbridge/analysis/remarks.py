"""What a reader has to know beside a number, as typed values: a code, and figures and names in the fields.

`weighbridge.report.text.remarks` has the words. Nothing here changes a number.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import ClassVar

from weighbridge.analysis.overload import Broke
from weighbridge.model.flag import FlagKind
from weighbridge.statistics import Interval


class RemarkCode(StrEnum):
    """Every code. They are stable: ``report --json`` has them."""

    AA = "aa"
    NO_BLOCKS = "no-blocks"
    ONE_BLOCK = "one-block"
    EXPLORATORY = "exploratory"
    INCOMPLETE = "incomplete"
    EXTENDED = "extended"
    TARGET = "target"
    DIFFERENCE = "difference"
    HOLM = "holm"
    NOISE = "noise"
    IDENTICAL = "identical"
    STALLS = "stalls"
    SELECTED = "selected"
    OUTLIERS = "outliers"
    DRIFT = "drift"
    AUTOCORRELATION = "autocorrelation"
    BROKE = "broke"
    FAILED = "failed"
    ERRORS = "errors"
    TRIAL = "trial"
    READINGS = "readings"
    UNRESOLVED = "unresolved"
    PACKET_SIZE = "packet-size"
    CAPPED = "capped"
    FRAGMENTS = "fragments"
    PATH = "path"
    NO_PATH = "no-path"
    INTERRUPT_TIME = "interrupt-time"
    DURABILITY = "durability"
    CONFOUNDER = "confounder"
    EMULATED = "emulated"
    NESTED = "nested"
    GUEST_TICKS = "guest-ticks"
    UNVERIFIED = "unverified"


@dataclass(frozen=True, slots=True)
class Remark:
    """A remark; each class is one thing that can be said."""

    code: ClassVar[RemarkCode]

    @property
    def unresolved_in(self) -> str:
        """The environment whose value is below what can be resolved; empty of other remarks."""
        return ""


# -- about the blocks of a comparison --------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class AAArm(Remark):
    """The comparison is that of the baseline with itself."""

    code = RemarkCode.AA
    baseline: str


@dataclass(frozen=True, slots=True)
class NoBlocks(Remark):
    """No block has a value of both sides."""

    code = RemarkCode.NO_BLOCKS


@dataclass(frozen=True, slots=True)
class OneBlock(Remark):
    """A single block gives no interval."""

    code = RemarkCode.ONE_BLOCK


@dataclass(frozen=True, slots=True)
class Exploratory(Remark):
    """Fewer than ten blocks."""

    code = RemarkCode.EXPLORATORY
    blocks: int


@dataclass(frozen=True, slots=True)
class Incomplete(Remark):
    """Fewer blocks than were planned or tried."""

    code = RemarkCode.INCOMPLETE
    blocks: int
    planned: int


@dataclass(frozen=True, slots=True)
class Extended(Remark):
    """The number of blocks was changed; ``looked_after``: how many had finished at each change."""

    code = RemarkCode.EXTENDED
    planned: int
    blocks: int
    looked_after: tuple[int, ...]


# -- about its cost --------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class TargetMissed(Remark):
    """The precision asked for was not reached. ``target`` and ``half_width`` are fractions, this perhaps infinite."""

    code = RemarkCode.TARGET
    target: float
    half_width: float
    blocks: int
    predicted_blocks: int | None


@dataclass(frozen=True, slots=True)
class AsDifference(Remark):
    """The cost is a difference in ``unit``."""

    code = RemarkCode.DIFFERENCE
    difference: Interval
    unit: str


@dataclass(frozen=True, slots=True)
class NotAfterHolm(Remark):
    """The interval excludes no cost, the adjusted p-value does not."""

    code = RemarkCode.HOLM
    adjusted_p: float


@dataclass(frozen=True, slots=True)
class WithinNoise(Remark):
    """The cost is no larger than the metric's noise floor.

    It is a fraction, and the costs within it in percent; None where the cost is a difference.
    """

    code = RemarkCode.NOISE
    noise_floor: float | None = None
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True, slots=True)
class Identical(Remark):
    """All blocks say the same, and are too few to rule out chance."""

    code = RemarkCode.IDENTICAL
    blocks: int


@dataclass(frozen=True, slots=True)
class Stalls(Remark):
    """The mean cost, in percent, is far from the typical one."""

    code = RemarkCode.STALLS
    mean_percent: Interval


# -- about the values and trials of one environment ------------------------------------------------


@dataclass(frozen=True, slots=True)
class AboutEnvironment(Remark):
    """What is about one environment's own values, trials or sites."""

    environment: str


@dataclass(frozen=True, slots=True)
class Selected(AboutEnvironment):
    """So many trials failed that the cost is that of a selection."""

    code = RemarkCode.SELECTED


@dataclass(frozen=True, slots=True)
class Outliers(AboutEnvironment):
    """How many of its runs are far from the others."""

    code = RemarkCode.OUTLIERS
    outliers: int
    runs: int


@dataclass(frozen=True, slots=True)
class Drift(AboutEnvironment):
    """Its values rise or fall during the session (Kendall's tau)."""

    code = RemarkCode.DRIFT
    tau: float


@dataclass(frozen=True, slots=True)
class Autocorrelation(AboutEnvironment):
    """Its successive runs resemble one another."""

    code = RemarkCode.AUTOCORRELATION


@dataclass(frozen=True, slots=True)
class BrokeUnderLoad(AboutEnvironment):
    """Its trials broke under their load."""

    code = RemarkCode.BROKE
    broke: Broke


@dataclass(frozen=True, slots=True)
class FailedTrials(AboutEnvironment):
    """How many of its ``trials`` gave no measurement; ``outcomes`` by frequency."""

    code = RemarkCode.FAILED
    trials: int
    outcomes: tuple[tuple[str, int], ...]


@dataclass(frozen=True, slots=True)
class FigureRange:
    """The smallest and largest value of one figure of several flags."""

    name: str
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class FlaggedTrials(AboutEnvironment):
    """How many of its ``trials`` have a flag of one kind."""

    code = RemarkCode.TRIAL
    flag: FlagKind
    count: int
    trials: int
    figures: tuple[FigureRange, ...] = ()


@dataclass(frozen=True, slots=True)
class ProgramErrors(FlaggedTrials):
    """How many of its trials' programs reported errors."""

    code = RemarkCode.ERRORS
