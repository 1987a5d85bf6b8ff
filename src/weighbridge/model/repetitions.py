"""How often a study measures: so many blocks, or until its intervals are narrow enough."""

from typing import Annotated, Any

from pydantic import Field, model_validator

from weighbridge.model.options import Options
from weighbridge.model.quantity import Duration, Share

MOST_BLOCKS = 1000
"""That a run may have; the default of ``max`` where trials are made short."""


class Repetitions(Options):
    """How often: a fixed number of ``blocks``, or until every interval is within ``target`` (a share).

    ``within`` so much time: how long trials last is chosen then, from a pilot block that is not counted.
    """

    blocks: Annotated[int, Field(ge=1, le=MOST_BLOCKS)] | None = None
    target: Annotated[Share, Field(gt=0, lt=1)] | None = None
    min: Annotated[int, Field(ge=2)] = 10
    max: Annotated[int, Field(ge=2, le=MOST_BLOCKS)] = 60
    budget: Duration | None = None
    within: Annotated[
        Duration | None,
        Field(gt=0, description="The time for all blocks; trials are made as short as is worth their time"),
    ] = None

    @property
    def limit_s(self) -> float | None:
        """The seconds that all blocks may take; None: as long as they take."""
        return self.budget if self.within is None else self.within

    @model_validator(mode="before")
    @classmethod
    def _many_short_ones(cls, given: Any) -> Any:
        short = isinstance(given, dict) and given.get("within") is not None and "max" not in given
        return {**given, "max": MOST_BLOCKS} if short else given

    @model_validator(mode="after")
    def _one_rule(self) -> "Repetitions":
        if self.within is not None and (self.blocks is not None or self.target is None):
            raise ValueError("within needs a target beside it, and no blocks: {target: 2%, within: 10min}")
        if self.within is not None and self.budget is not None:
            raise ValueError(
                "take within or budget, not both: with within trials are made short, with budget they are not"
            )
        if (self.blocks is None) == (self.target is None):
            told = "one of the two" if self.blocks is None else "not both"
            raise ValueError(f"say either how many blocks (blocks: 10) or how precise (target: 2%), {told}")
        if self.min > self.max:
            raise ValueError(f"min ({self.min}) is more than max ({self.max})")
        return self
