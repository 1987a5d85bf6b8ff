"""Which workloads the blocks of a limited time go to: where a second narrows the intervals most."""

import heapq
import math
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Contender:
    """A workload at a level, with comparisons that are not precise enough yet."""

    blocks: int
    """Blocks done."""
    needed: tuple[float, ...]
    """Of each open comparison: after how many blocks in all it is precise enough; inf where that cannot be told."""
    trial_s: tuple[float, ...]
    """Of each of them: seconds of a trial of its environment."""
    base_s: float
    """Seconds of the trials that each block has beside those: the baseline's and those of its A/A arm."""

    def gain(self, further: int) -> tuple[float, float]:
        """What the block after ``further`` more gains, and its seconds; nothing where all is precise enough then.

        An interval's width falls with the square root of the blocks: its logarithm by half of log((n + 1) / n). So
        halving a wide interval is worth as much as halving a narrow one.
        """
        done = self.blocks + further
        open_s = [each for needed, each in zip(self.needed, self.trial_s, strict=True) if needed > done]
        if not open_s:
            return 0.0, 0.0
        return 0.5 * len(open_s) * math.log1p(1 / max(1, done)), self.base_s + sum(open_s)


def allotted(contenders: Sequence[Contender], left_s: float, most: int) -> list[int]:
    """Give how many more blocks each gets in the time that is left: each goes where a second gains most.

    None has more than ``most`` blocks in all. It is decided on blocks, times and widths, never on a difference seen.
    Where the gains of more blocks become ever smaller, as here, nothing gains more than this greedy choice, but for
    the last block of each.
    """
    further = [0] * len(contenders)
    waiting: list[tuple[float, int]] = []

    def enter(number: int) -> None:
        gain, seconds = contenders[number].gain(further[number])
        if gain and contenders[number].blocks + further[number] < most:
            heapq.heappush(waiting, (-gain / max(seconds, 1e-9), number))

    for number in range(len(contenders)):
        enter(number)
    while waiting:
        number = heapq.heappop(waiting)[1]
        _, seconds = contenders[number].gain(further[number])
        if seconds <= left_s:
            left_s -= seconds
            further[number] += 1
            enter(number)
    return further


def shared(further: Sequence[int], contenders: Sequence[Contender], blocks: int) -> list[int]:
    """Give in how many of the next ``blocks`` blocks each takes part, where it gets so many ``further`` in all.

    In all of them where the time suffices for everybody: then none has to wait.
    """
    pairs = list(zip(further, contenders, strict=True))
    enough = all(each.blocks + more >= max(each.needed) for more, each in pairs)
    largest = max(further, default=0)
    if enough or not largest:
        return [blocks] * len(pairs)
    return [min(blocks, round(blocks * more / largest)) for more, _ in pairs]
