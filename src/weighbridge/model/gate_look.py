"""A look at which a gate judged a run, as the run keeps it."""

from collections.abc import Sequence
from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, TypeAdapter

LEAST_SHARE = 1e-6
"""The least that a look spends of the error: no interval of a higher confidence is told from the whole line."""
LARGEST_COUNT = 10**6
"""Of blocks; more is damage."""
Comparison = tuple[str, str, str]
"""Workload, level (JSON object) and environment: what takes part in blocks together with the baseline."""


def _tellable(share: float) -> float:
    if 0 < share < LEAST_SHARE:
        raise ValueError("no look spends so little")
    return share


class GateLook(BaseModel):
    """A look after so many ``blocks``, which spent a ``share`` of the error that all looks may spend (1 is all)."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    blocks: Annotated[int, Field(ge=0, le=LARGEST_COUNT)]
    share: Annotated[float, Field(ge=0, le=1), AfterValidator(_tellable)]
    open: tuple[Comparison, ...]
    """The comparisons that were not decided."""
    until: Annotated[int, Field(ge=0, le=LARGEST_COUNT)] | None = None
    """How many blocks were asked for then, in which those that are open take part alone; None: no more were.

    With none open everything takes part: that is how a run counts as looked at that others have extended.
    """
    trials: Annotated[int, Field(ge=0)] | None = None
    """How many trials the run had, by which a block that was completed later is seen; None: not kept."""

    def goes_on(self, place: Comparison) -> bool:
        """Whether a comparison takes part in the blocks that were asked for."""
        return self.until is not None and (not self.open or place in self.open)


_EVERY = TypeAdapter(tuple[GateLook, ...])


def gate_looks_text(looks: Sequence[GateLook]) -> str:
    """Return them as a run keeps them: JSON."""
    return _EVERY.dump_json(tuple(looks)).decode()


def gate_looks_of(text: str) -> tuple[GateLook, ...]:
    """Read what `gate_looks_text` gives. Raises ValidationError."""
    return _EVERY.validate_json(text)
