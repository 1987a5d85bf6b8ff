"""In how many blocks of a round each workload takes part, where a limited time is shared among them."""

from collections.abc import Sequence
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, model_validator

_Number = Annotated[int, Field(ge=0, le=10**6)]


class Allotment(BaseModel):
    """Of the blocks ``after`` one up to and with ``until``, a workload at a level is in so many ``blocks``."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    after: _Number
    until: _Number
    workload: str
    level: str
    blocks: _Number

    @model_validator(mode="after")
    def _no_more_than_there_are(self) -> "Allotment":
        if not 0 < self.until - self.after >= self.blocks:
            raise ValueError(f"{self.blocks} blocks are not between {self.after} and {self.until}")
        return self

    def includes(self, block: int) -> bool:
        """Whether the workload is in this block: those that it takes part in are spread evenly, up to the last."""
        place, of = block - self.after, self.until - self.after
        return place * self.blocks // of > (place - 1) * self.blocks // of


_EVERY = TypeAdapter(tuple[Allotment, ...])


def allotments_text(allotments: Sequence[Allotment]) -> str:
    """Return them as a run keeps them: JSON."""
    return _EVERY.dump_json(tuple(allotments)).decode()


def allotments_of(text: str) -> tuple[Allotment, ...]:
    """Read what `allotments_text` gives. Raises ValidationError."""
    return _EVERY.validate_json(text)
