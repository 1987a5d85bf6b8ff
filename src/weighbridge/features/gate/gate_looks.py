"""The looks of gates at a run, which share one error: how much they have spent, and which are planned.

The run records every look. All looks together never spend more than the whole error, including looks after an
interruption or after the run was made longer. A look spends for the whole run and for any budget, so other budgets at
the same blocks belong to the same look.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from weighbridge.analysis.plan import Comparisons, plan_of
from weighbridge.errors import RunDirectoryError
from weighbridge.features.gate.sequential import decision_looks, look_shares
from weighbridge.model.address import ArmId
from weighbridge.model.decisions import LARGEST_COUNT, GateLook
from weighbridge.model.study import MOST_BLOCKS
from weighbridge.statistics import Looks, looks_share
from weighbridge.statistics.contrast import INTERIM_SHARE
from weighbridge.store.extensions import unfinished
from weighbridge.store.pace import pause_s
from weighbridge.store.run import RunStore


@dataclass(frozen=True, slots=True)
class Spending:
    """The share of the error that judging a comparison spends; 1 is the whole 5%."""

    looks: tuple[GateLook, ...] = ()
    """Earlier looks; if ``now`` is None, the last one is this look."""
    now: float | None = None
    """The share of a look that happens now; None if the run has not grown since the last look."""

    @property
    def left(self) -> float:
        """The share of the error that the recorded looks have not spent."""
        return max(0.0, 1 - sum(each.share for each in self.looks))

    @property
    def earlier(self) -> tuple[GateLook, ...]:
        """The looks before this one."""
        return self.looks if self.now is not None else self.looks[:-1]

    @property
    def spent(self) -> float:
        """The share of the error that this look spends, or has spent."""
        return self.now if self.now is not None else self.looks[-1].share if self.looks else 1.0

    def share(self, arm: ArmId | None) -> float:
        """Return the share of the last look that saw new blocks of a comparison; this look counts too."""
        extended = [arm is not None and each.goes_on(arm) for each in self.looks]
        following = len(extended) - extended[::-1].index(True) if any(extended) else 0
        if following < len(self.looks):
            return self.looks[following].share
        return self.spent


def spending_of(store: RunStore) -> Spending:
    """Return the spending for judging a run without extending it: at its last look, or a new one if it has grown.

    A run has grown if it has more trials, so a block completed after a look is new. Beyond the blocks that the last
    look asked for, every comparison has grown.
    """
    looks, blocks = store.gate_looks(), blocks_of(store)
    if looks and not _has_grown(looks[-1], store):
        return Spending(looks)
    if looks and not blocks <= (looks[-1].until or 0):
        looks = (*looks[:-1], looks[-1].model_copy(update={"until": blocks, "open": ()}))
    spending = Spending(looks)
    return replace(spending, now=look_shares((blocks,), spending.left)[0] * share_of_end(store))


def share_of_end(store: RunStore) -> float:
    """Return the share of the error for a look at the run's end; an unfinished run could end at any block."""
    return INTERIM_SHARE if unfinished(store.info()) else 1.0


def look_of(store: RunStore, spending: Spending, still_open: tuple[ArmId, ...]) -> GateLook:
    """Return the look at the run as it is now, to record in the run."""
    trials = len(store.trials())
    return GateLook(blocks=blocks_of(store), trials=trials, share=spending.spent, open=still_open)


def looks_beside(store: RunStore) -> Looks:
    """Return how often a run was looked at, without looks of gates, which share their own error."""
    return plan_of(store).looks_beside_gates


def looks_of_both(store: RunStore, earlier: Comparisons) -> Looks:
    """Return the looks of a run or of the earlier run to compare with, whichever leaves less of the error."""
    return min(looks_beside(store), earlier.looks, key=looks_share)


def blocks_of(store: RunStore) -> int:
    """Return the number of blocks with trials. Raises RunDirectoryError if the number is impossible."""
    blocks = max((trial.block for trial in store.trials()), default=0)
    if blocks > LARGEST_COUNT:
        raise RunDirectoryError(f"{store.directory} is damaged: a trial has the impossible round number {blocks}")
    return blocks


def _has_grown(last: GateLook, store: RunStore) -> bool:
    more_trials = last.trials is not None and len(store.trials()) > last.trials
    return more_trials or blocks_of(store) > last.blocks


@dataclass(frozen=True, slots=True)
class GatePlan:
    """The numbers of blocks for looks, the present one first, and the share of the error that each look spends."""

    looks: tuple[int, ...]
    shares: tuple[float, ...]

    @property
    def goes_on(self) -> bool:
        """Whether at least one more block fits into the time."""
        return len(self.looks) > 1

    def share(self, blocks: int) -> float:
        """Return the share that the look after this many blocks spends; 0 if none is planned."""
        return sum(share for look, share in self._spent() if look == blocks)

    def left(self, blocks: int) -> float:
        """Return the share that looks after more blocks spend."""
        return sum(share for look, share in self._spent() if look > blocks)

    def next_share(self, blocks: int) -> float:
        """Return the share that the first look after more blocks spends; 0 after the last one."""
        return next((share for look, share in self._spent() if look > blocks), 0.0)

    def following(self, blocks: int) -> int | None:
        """Return the blocks of the next look; None after the last one."""
        return next((look for look in self.looks if look > blocks), None)

    def _spent(self) -> Iterator[tuple[int, float]]:
        return zip(self.looks, self.shares, strict=True)


def plan_gate(store: RunStore, limit_s: float, spending: Spending) -> GatePlan:
    """Plan the looks within a number of seconds, from the time per block so far and the remaining error.

    All looks are planned before the first one. If there was already a look at the present blocks, it spends nothing
    more.
    """
    blocks, trials = blocks_of(store), store.trials()
    spent_s = store.spent_s() + len(trials) * pause_s(trials)
    further = int(limit_s * blocks / spent_s) if spent_s > 0 else 0
    looks = decision_looks(blocks, max(blocks, min(MOST_BLOCKS, blocks + further))) if blocks else (blocks,)
    if spending.now is None:
        return GatePlan(looks, (0.0, *look_shares(looks[1:], spending.left)))
    return GatePlan(looks, look_shares(looks, spending.left))
