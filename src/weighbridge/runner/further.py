"""Who reads a run while it goes on, and may ask for more blocks: a gate that cannot decide yet."""

from collections.abc import Callable
from dataclasses import dataclass

from weighbridge.model.study import Study
from weighbridge.store.extensions import extend
from weighbridge.store.run import RunStore


@dataclass(frozen=True, slots=True)
class Further:
    """How a run goes on after its last planned look. ``limit_s``: how long, from the begin of the session."""

    limit_s: float
    wanted: Callable[[RunStore], int | None]
    """Gives how many blocks the run is to have in all; None: what there are will do."""

    def extended(self, study: Study, store: RunStore) -> bool:
        """Record the blocks that are asked for; whether there are any."""
        blocks = self.wanted(store)
        if blocks is not None:
            extend(store, study.file.repetitions, blocks)
        return blocks is not None
