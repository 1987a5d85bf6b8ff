"""A gate's looks at a run, which share one error: what they have spent of it, and those that are planned.

Every look is kept with the run, whoever took it and however: so all of them together, those after an interruption
and those after somebody made the run longer too, never spend more than the whole. A look spends for the whole run, of
which any budget may be asked: other budgets at the same blocks are the same look.
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
    """How much of the error the judgement of a comparison spends: 1 is all of the 5 %."""

    looks: tuple[GateLook, ...] = ()
    """Those that were taken before; without ``now`` the last one is this look."""
    now: float | None = None
    """The share of a look that is taken now; None where the run has not grown since the last one."""

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
        """Return the share of the last look that saw new blocks of a comparison: of this one if it does."""
        extended = [arm is not None and each.goes_on(arm) for each in self.looks]
        following = len(extended) - extended[::-1].index(True) if any(extended) else 0
        if following < len(self.looks):
            return self.looks[following].share
        return self.spent


def spending_of(store: RunStore) -> Spending:
    """Return how a run is judged that is not to be extended: as at its last look, or at a new one where it has grown.

    It has grown where it has more trials, so that a block completed after a look is a new one. Beyond the blocks that
    the last look had asked for every comparison has grown.
    """
    looks, blocks = store.gate_looks(), blocks_of(store)
    if looks and not _has_grown(looks[-1], store):
        return Spending(looks)
    if looks and not blocks <= (looks[-1].until or 0):
        looks = (*looks[:-1], looks[-1].model_copy(update={"until": blocks, "open": ()}))
    spending = Spending(looks)
    return replace(spending, now=look_shares((blocks,), spending.left)[0] * share_of_end(store))


def share_of_end(store: RunStore) -> float:
    """The share of the error of the run's end that a look may spend now: before that it may be any block's."""
    return INTERIM_SHARE if unfinished(store.info()) else 1.0


def look_of(store: RunStore, spending: Spending, still_open: tuple[ArmId, ...]) -> GateLook:
    """Return the look at the run as it is, as the run is to keep it."""
    trials = len(store.trials())
    return GateLook(blocks=blocks_of(store), trials=trials, share=spending.spent, open=still_open)


def looks_beside(store: RunStore) -> Looks:
    """Return how often a run was looked at, the looks of gates excepted, which share the error themselves."""
    return plan_of(store).looks_beside_gates


def looks_of_both(store: RunStore, earlier: Comparisons | None) -> Looks:
    """Return the looks of a run, or of the earlier one it is held against, whichever leave less of the error."""
    return min(looks_beside(store), earlier.looks if earlier else Looks(), key=looks_share)


def blocks_of(store: RunStore) -> int:
    """Return how many blocks a run has trials of. RunDirectoryError: more than any run has."""
    blocks = max((trial.block for trial in store.trials()), default=0)
    if blocks > LARGEST_COUNT:
        raise RunDirectoryError(f"{store.directory} is damaged: a trial has the impossible round number {blocks}")
    return blocks


def _has_grown(last: GateLook, store: RunStore) -> bool:
    more_trials = last.trials is not None and len(store.trials()) > last.trials
    return more_trials or blocks_of(store) > last.blocks


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
        """Return what the look after so many blocks spends; 0 where none is planned."""
        return sum(share for look, share in self._spent() if look == blocks)

    def left(self, blocks: int) -> float:
        """Return what the looks after more blocks have to spend."""
        return sum(share for look, share in self._spent() if look > blocks)

    def next_share(self, blocks: int) -> float:
        """Return what the first look after more blocks spends; 0 after the last one."""
        return next((share for look, share in self._spent() if look > blocks), 0.0)

    def following(self, blocks: int) -> int | None:
        """Return the blocks of the next look; None after the last one."""
        return next((look for look in self.looks if look > blocks), None)

    def _spent(self) -> Iterator[tuple[int, float]]:
        return zip(self.looks, self.shares, strict=True)


def plan_gate(store: RunStore, limit_s: float, spending: Spending) -> GatePlan:
    """Plan the looks of so many seconds, by what a block of the run took so far, and by what is left of the error.

    They are planned before the first is taken. A look that was taken before at what there is spends nothing more.
    """
    blocks, trials = blocks_of(store), store.trials()
    spent_s = store.spent_s() + len(trials) * pause_s(trials)
    further = int(limit_s * blocks / spent_s) if spent_s > 0 else 0
    looks = decision_looks(blocks, max(blocks, min(MOST_BLOCKS, blocks + further))) if blocks else (blocks,)
    if spending.now is None:
        return GatePlan(looks, (0.0, *look_shares(looks[1:], spending.left)))
    return GatePlan(looks, look_shares(looks, spending.left))
