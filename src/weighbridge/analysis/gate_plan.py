"""The looks of a gate that has time for more blocks of a run, planned before it looks at the first one."""

from dataclasses import dataclass

from weighbridge.analysis.gate_spending import Spending, blocks_of
from weighbridge.model.study import MOST_BLOCKS
from weighbridge.statistics import decision_looks, look_shares
from weighbridge.store.run import RunStore


@dataclass(frozen=True, slots=True)
class GatePlan:
    """Numbers of blocks at which it is looked, the present one first, and the share of the error that each spends."""

    looks: tuple[int, ...]
    shares: tuple[float, ...]

    @property
    def goes_on(self) -> bool:
        """Whether at least one more block fits into the time."""
        return len(self.looks) > 1

    def share(self, blocks: int) -> float:
        """Give what the look after so many blocks spends; 0 where none is planned."""
        return sum(share for look, share in self._each if look == blocks)

    def left(self, blocks: int) -> float:
        """Give what the looks after more blocks have to spend."""
        return sum(share for look, share in self._each if look > blocks)

    def next_share(self, blocks: int) -> float:
        """Give what the first look after more blocks spends; 0 after the last one."""
        return next((share for look, share in self._each if look > blocks), 0.0)

    def following(self, blocks: int) -> int | None:
        """Give the blocks of the next look; None after the last one."""
        return next((look for look in self.looks if look > blocks), None)

    def plans(self, blocks: int) -> bool:
        """Whether a look after so many blocks is one of them."""
        return blocks in self.looks

    @property
    def _each(self) -> list[tuple[int, float]]:
        return list(zip(self.looks, self.shares, strict=True))


def plan_gate(store: RunStore, limit_s: float, spending: Spending) -> GatePlan:
    """Plan for so many seconds, by what a block of the run took so far, and by what is left of the error.

    A look that was taken before at what there is spends nothing more.
    """
    done, spent_s = blocks_of(store), store.spent_s()
    further = int(limit_s * done / spent_s) if spent_s > 0 else 0
    looks = decision_looks(done, max(done, min(MOST_BLOCKS, done + further))) if done else (done,)
    if spending.now is None:
        return GatePlan(looks, (0.0, *look_shares(looks[1:], spending.left)))
    return GatePlan(looks, look_shares(looks, spending.left))
