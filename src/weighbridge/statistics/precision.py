"""When to stop: on precision, at looks fixed beforehand, never on significance."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from weighbridge.statistics.cost import Cost

LOOKS = (10, 13, 17, 22, 28, 35, 44, 60)
"""Numbers of blocks at which the precision is looked at."""

GROWTH = 1.27
"""How the looks go on after the last one, should more blocks be allowed."""


@dataclass(frozen=True, slots=True)
class Decision:
    """What to do after a block."""

    action: Literal["continue", "reached", "cap"]
    """``continue`` to `next_blocks`; stop, the target is ``reached``; stop at the ``cap`` without it."""
    blocks: int
    """Blocks done."""
    next_blocks: int | None
    """Number of blocks at the next look; None where to stop."""
    width: float
    """Largest relative half-width among the comparisons (0.02 is ±2 %); inf while there is none."""
    target: float
    """The half-width wanted."""
    reached: tuple[bool, ...]
    """Per comparison, in the order given, whether it may leave the schedule; all False between looks."""
    predicted_blocks: int | None
    """Blocks in all after which every comparison should reach the target; None where it cannot be told."""

    @property
    def stop(self) -> bool:
        """Whether no further block is to be run."""
        return self.action != "continue"


def planned_looks(minimum: int = LOOKS[0], maximum: int = LOOKS[-1]) -> tuple[int, ...]:
    """Give the numbers of blocks at which a run with this minimum and maximum is looked at, both included.

    Raises ValueError where the minimum is below 2 or above the maximum.
    """
    if not 2 <= minimum <= maximum:
        raise ValueError(f"Blocks must be at least 2, and at most the maximum: {minimum} to {maximum} is no range.")
    looks = list(LOOKS)
    while looks[-1] < maximum:
        looks.append(round(looks[-1] * GROWTH))
    return (*sorted({minimum, maximum, *(look for look in looks if minimum < look < maximum)}),)


def next_look(
    blocks: int, costs: Sequence[Cost], target: float, *, minimum: int = LOOKS[0], maximum: int = LOOKS[-1]
) -> Decision:
    """Say whether to go on, from the widths of the intervals alone.

    `costs` are those of the comparisons still in the schedule, made with ``looks`` > 1 (see `planned_looks`);
    `target` is the relative half-width wanted. A comparison on the difference scale has no relative width and goes
    on to the maximum unless its interval is one point. The prediction lets the width fall with the
    square root of the blocks. Raises ValueError for a target that is not positive or an impossible range.
    """
    if not 0 < target < math.inf:
        raise ValueError(f"The target must be a positive fraction such as 0.02, not {target}.")
    looks = planned_looks(minimum, maximum)
    widths = [cost.half_width for cost in costs]
    width = max(widths, default=math.inf)
    looking = blocks in looks or blocks >= maximum
    reached = tuple(looking and each <= target for each in widths)
    done = looking and all(reached)
    following = next((look for look in looks if look > blocks), None)
    return Decision(
        action="reached" if done else "cap" if following is None else "continue",
        blocks=blocks,
        next_blocks=None if done else following,
        width=width,
        target=target,
        reached=reached,
        predicted_blocks=_predicted(costs, target, minimum),
    )


def _predicted(costs: Sequence[Cost], target: float, minimum: int) -> int | None:
    factors = [cost.blocks * (math.log1p(cost.half_width) / math.log1p(target)) ** 2 for cost in costs]
    needed = max(factors, default=math.inf)
    return None if math.isinf(needed) else max(minimum, math.ceil(needed))
