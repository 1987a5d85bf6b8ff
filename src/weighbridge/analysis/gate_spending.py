"""What a gate's looks at a run have spent of the error, and what the one that is taken now may spend.

Every look is kept with the run, whoever took it and however: so all of them together, those after an interruption
and those after somebody made the run longer too, never spend more than the whole. A look spends for the whole run, of
which any budget may be asked: other budgets at the same blocks are the same look.
"""

from dataclasses import dataclass, replace

from weighbridge.errors import RunDirectoryError
from weighbridge.model.decisions import LARGEST_COUNT, Comparison, GateLook
from weighbridge.statistics import look_shares
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
        """What is left of the error, besides this look."""
        return max(0.0, 1 - sum(each.share for each in self.looks))

    @property
    def earlier(self) -> tuple[GateLook, ...]:
        """The looks before this one."""
        return self.looks if self.now is not None else self.looks[:-1]

    @property
    def spent(self) -> float:
        """What this look spends, or has spent."""
        return self.now if self.now is not None else self.looks[-1].share if self.looks else 1.0

    def share(self, place: Comparison | None) -> float:
        """Give the share of the last look that saw new blocks of a comparison: of this one if it does."""
        seen = [place is not None and each.goes_on(place) for each in self.looks]
        following = len(seen) - seen[::-1].index(True) if any(seen) else 0
        if following < len(self.looks):
            return self.looks[following].share
        return self.spent


def spending_of(store: RunStore) -> Spending:
    """Give how a run is judged that is not to be extended: as at its last look, or at a new one where it has grown.

    It has grown where it has more trials, so that a block completed after a look is a new one. Beyond the blocks that
    the last look had asked for every comparison has grown.
    """
    looks, done = store.gate_looks(), blocks_of(store)
    if looks and not _grown(looks[-1], store):
        return Spending(looks)
    if looks and not done <= (looks[-1].until or 0):
        looks = (*looks[:-1], looks[-1].model_copy(update={"until": done, "open": ()}))
    spending = Spending(looks)
    return replace(spending, now=look_shares((done,), spending.left)[0])


def look_of(store: RunStore, spending: Spending, still_open: tuple[Comparison, ...]) -> GateLook:
    """Give the look at the run as it is, as the run is to keep it."""
    trials = len(store.trials())
    return GateLook(blocks=blocks_of(store), trials=trials, share=spending.spent, open=still_open)


def blocks_of(store: RunStore) -> int:
    """Give how many blocks a run has trials of. RunDirectoryError: more than any run has."""
    done = max((trial.block for trial in store.trials()), default=0)
    if done > LARGEST_COUNT:
        raise RunDirectoryError(f"{store.directory} is damaged: a trial is of block {done}, which no run has")
    return done


def _grown(last: GateLook, store: RunStore) -> bool:
    more = last.trials is not None and len(store.trials()) > last.trials
    return more or blocks_of(store) > last.blocks
