"""The decisions that a run stores: left-out environments, lengths, block schedules, looks of a gate."""

from collections.abc import Callable, Sequence
from typing import Annotated, TypeVar

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, TypeAdapter, model_validator

from weighbridge.model.address import ArmId, HasCell
from weighbridge.model.level import LevelText

_Decision = TypeVar("_Decision", bound=BaseModel)


def _as_json(
    model: type[_Decision],
) -> tuple[Callable[[Sequence[_Decision]], str], Callable[[str], tuple[_Decision, ...]]]:
    """Return the writer and the reader of decisions as JSON. The reader raises ValidationError."""
    adapter = TypeAdapter(tuple[model, ...])  # type: ignore[valid-type]
    return lambda decisions: adapter.dump_json(tuple(decisions)).decode(), adapter.validate_json


class LeftOut(BaseModel):
    """An optional environment that could not be opened: the reason, and a remedy ("" if unknown)."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    environment: str
    kind: str
    why: str
    remedy: str = ""

    @property
    def reason(self) -> str:
        """The reason and the remedy: ``podman is not installed; apt-get install podman``."""
        return f"{self.why}; {self.remedy}" if self.remedy else self.why


left_out_text, left_out_of = _as_json(LeftOut)


_Seconds = Annotated[float, Field(gt=0, le=1e6, allow_inf_nan=False)]


class TrialLength(HasCell, BaseModel):
    """The length chosen for a workload at a level, in seconds of its work.

    ``asked_s`` is how long the work took in the pilot block, as the study requests it. ``beside_s`` is the time of a
    trial for everything else: servers that start, connections, a warm-up, saving.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)
    workload: str
    level: LevelText
    asked_s: _Seconds
    chosen_s: _Seconds
    beside_s: Annotated[float, Field(ge=0, le=1e6, allow_inf_nan=False)]


def chosen_length(asked_s: float, shortest_s: float, beside_s: float, warm_up: float = 0.0) -> float:
    """Return the seconds of work per trial that reach a precision in nearly the shortest time.

    Values of fresh trials of length L have the variance b^2 + w^2 / L: differences between starts, and differences
    within them. Each trial takes L + c, so the time for a given precision is proportional to (b^2 + w^2 / L)(c + L).
    Its minimum, (b sqrt(c) + w)^2, is at L = (w / b) sqrt(c).

    At L = c the time is 2 (b^2 c + w^2): at most twice the minimum, for any b and w. No other length has a smaller
    bound. So a trial works for as many seconds as the rest of it takes (``beside_s``), but never less than is sound
    and never more than was requested. No measured value is used, so the choice cannot favour a result. A warm-up of k
    L (``warm_up`` is k) makes a trial take (1 + k) L + c; the same argument then gives L = c / (1 + k).
    """
    return min(asked_s, max(shortest_s, beside_s / (1 + warm_up)))


def length_text(length: TrialLength) -> str:
    """Return text for users: ``tcp (clients=2): 0.3 s instead of 1 s, plus 0.04 s of overhead``."""
    lasts = f"{length.chosen_s:.2g} s instead of {length.asked_s:.2g} s"
    return f"{length.cell.label}: {lasts}, plus {length.beside_s:.2g} s of overhead"


lengths_text, lengths_of = _as_json(TrialLength)


_BlockNumber = Annotated[int, Field(ge=0, le=10**6)]


class BlockSchedule(HasCell, BaseModel):
    """The number of ``blocks`` with a workload at a level, among the blocks from ``after`` + 1 to ``until``."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    after: _BlockNumber
    until: _BlockNumber
    workload: str
    level: LevelText
    blocks: _BlockNumber

    @model_validator(mode="after")
    def _no_more_than_there_are(self) -> "BlockSchedule":
        if not 0 < self.until - self.after >= self.blocks:
            raise ValueError(f"{self.blocks} blocks are not between {self.after} and {self.until}")
        return self

    def includes(self, block: int) -> bool:
        """Return whether the workload is in this block; its blocks are spread evenly, and include the last one."""
        place, of = block - self.after, self.until - self.after
        return place * self.blocks // of > (place - 1) * self.blocks // of


block_schedules_text, block_schedules_of = _as_json(BlockSchedule)


LEAST_SHARE = 1e-6
"""The smallest share of the error that a look can spend; a smaller one would give an infinite interval."""
LARGEST_COUNT = 10**6
"""The largest plausible number of blocks in a stored decision."""


def _tellable(share: float) -> float:
    if 0 < share < LEAST_SHARE:
        raise ValueError("no look spends so little")
    return share


class GateLook(BaseModel):
    """A look after ``blocks`` blocks, which spent a ``share`` of the error of all looks (1 is all)."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    blocks: Annotated[int, Field(ge=0, le=LARGEST_COUNT)]
    share: Annotated[float, Field(ge=0, le=1), AfterValidator(_tellable)]
    open: tuple[ArmId, ...]
    until: Annotated[int, Field(ge=0, le=LARGEST_COUNT)] | None = None
    """The total number of blocks that was requested then, for the open comparisons alone; None if no more were.

    If ``open`` is empty, every comparison takes part. This marks a run as looked at if others have extended it.
    """
    trials: Annotated[int, Field(ge=0)] | None = None
    """The number of trials of the run, which shows blocks that were completed later; None if not stored."""

    def goes_on(self, arm: ArmId) -> bool:
        """Return whether a comparison takes part in the requested blocks."""
        return self.until is not None and (not self.open or arm in self.open)


gate_looks_text, gate_looks_of = _as_json(GateLook)
