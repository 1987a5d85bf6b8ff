"""What a run decides as it goes on, as it keeps that: each kind has a model, its text and what reads it back.

Environments that are left out, lengths of trials, blocks that each workload takes part in, and looks of a gate.
"""

from collections.abc import Sequence
from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, TypeAdapter, model_validator

from weighbridge.model.address import ArmId, HasCell
from weighbridge.model.level import LevelText


class LeftOut(BaseModel):
    """An optional environment that could not be opened: why, and what would make it ready ("" where not known)."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    environment: str
    kind: str
    why: str
    remedy: str = ""

    @property
    def reason(self) -> str:
        """Why, and what helps: ``podman is not installed; apt-get install podman``."""
        return f"{self.why}; {self.remedy}" if self.remedy else self.why


_LEFT_OUT = TypeAdapter(tuple[LeftOut, ...])


def left_out_text(left_out: Sequence[LeftOut]) -> str:
    """Return them as a run keeps them: JSON."""
    return _LEFT_OUT.dump_json(tuple(left_out)).decode()


def left_out_of(text: str) -> tuple[LeftOut, ...]:
    """Read what `left_out_text` gives. Raises ValidationError."""
    return _LEFT_OUT.validate_json(text)


_Seconds = Annotated[float, Field(gt=0, le=1e6, allow_inf_nan=False)]


class TrialLength(HasCell, BaseModel):
    """The length chosen for a workload at a level, in seconds of its work.

    ``asked_s`` is how long the work lasted in the pilot block, as the study says it; ``beside_s`` is what a trial
    takes beside it: servers that start, connections, a warm-up, what is saved.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)
    workload: str
    level: LevelText
    asked_s: _Seconds
    chosen_s: _Seconds
    beside_s: Annotated[float, Field(ge=0, le=1e6, allow_inf_nan=False)]


def chosen_length(asked_s: float, shortest_s: float, beside_s: float, warm_up: float = 0.0) -> float:
    """Seconds of work with which trials give a comparison its precision in nearly the shortest time.

    Of fresh trials of length L the values have the variance b^2 + w^2 / L: what differs between starts, and what
    differs within them. Each takes L + c, so that a precision takes a time in proportion to (b^2 + w^2 / L)(c + L),
    which is least, (b sqrt(c) + w)^2, at L = (w / b) sqrt(c). With L = c it is 2 (b^2 c + w^2): at most twice the
    least, whatever b and w are, and no other length has such a bound that is smaller. So trials work for as long as
    the rest of them takes (``beside_s``), never for less than is sound or for longer than was asked for. Nothing that
    was measured decides it, so that it can favour no result. A warm-up of k L (``warm_up``: k) makes a trial take
    (1 + k) L + c, for which the same holds at L = c / (1 + k).
    """
    return min(asked_s, max(shortest_s, beside_s / (1 + warm_up)))


def length_text(length: TrialLength) -> str:
    """As people read it: ``tcp (clients=2): 0.3 s instead of 1 s, plus 0.04 s of overhead``."""
    lasts = f"{length.chosen_s:.2g} s instead of {length.asked_s:.2g} s"
    return f"{length.cell.label}: {lasts}, plus {length.beside_s:.2g} s of overhead"


_LENGTHS = TypeAdapter(tuple[TrialLength, ...])


def lengths_text(lengths: Sequence[TrialLength]) -> str:
    """Return them as a run keeps them: JSON."""
    return _LENGTHS.dump_json(tuple(lengths)).decode()


def lengths_of(text: str) -> tuple[TrialLength, ...]:
    """Read what `lengths_text` gives. Raises ValidationError."""
    return _LENGTHS.validate_json(text)


_BlockNumber = Annotated[int, Field(ge=0, le=10**6)]


class BlockSchedule(HasCell, BaseModel):
    """Of the blocks ``after`` one up to and with ``until``, a workload at a level is in so many ``blocks``."""

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
        """Whether the workload is in this block: those that it takes part in are spread evenly, up to the last."""
        place, of = block - self.after, self.until - self.after
        return place * self.blocks // of > (place - 1) * self.blocks // of


_BLOCK_SCHEDULES = TypeAdapter(tuple[BlockSchedule, ...])


def block_schedules_text(block_schedules: Sequence[BlockSchedule]) -> str:
    """Return them as a run keeps them: JSON."""
    return _BLOCK_SCHEDULES.dump_json(tuple(block_schedules)).decode()


def block_schedules_of(text: str) -> tuple[BlockSchedule, ...]:
    """Read what `block_schedules_text` gives. Raises ValidationError."""
    return _BLOCK_SCHEDULES.validate_json(text)


LEAST_SHARE = 1e-6
"""The least that a look spends of the error: no interval of a higher confidence is told from the whole line."""
LARGEST_COUNT = 10**6
"""Of blocks; more is damage."""


def _tellable(share: float) -> float:
    if 0 < share < LEAST_SHARE:
        raise ValueError("no look spends so little")
    return share


class GateLook(BaseModel):
    """A look after so many ``blocks``, which spent a ``share`` of the error that all looks may spend (1 is all)."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    blocks: Annotated[int, Field(ge=0, le=LARGEST_COUNT)]
    share: Annotated[float, Field(ge=0, le=1), AfterValidator(_tellable)]
    open: tuple[ArmId, ...]
    """The comparisons that were not decided."""
    until: Annotated[int, Field(ge=0, le=LARGEST_COUNT)] | None = None
    """How many blocks were asked for then, in which those that are open take part alone; None: no more were.

    With none open everything takes part: that is how a run counts as looked at that others have extended.
    """
    trials: Annotated[int, Field(ge=0)] | None = None
    """How many trials the run had, by which a block that was completed later is seen; None: not kept."""

    def goes_on(self, arm: ArmId) -> bool:
        """Whether a comparison takes part in the blocks that were asked for."""
        return self.until is not None and (not self.open or arm in self.open)


_LOOKS = TypeAdapter(tuple[GateLook, ...])


def gate_looks_text(looks: Sequence[GateLook]) -> str:
    """Return them as a run keeps them: JSON."""
    return _LOOKS.dump_json(tuple(looks)).decode()


def gate_looks_of(text: str) -> tuple[GateLook, ...]:
    """Read what `gate_looks_text` gives. Raises ValidationError."""
    return _LOOKS.validate_json(text)
