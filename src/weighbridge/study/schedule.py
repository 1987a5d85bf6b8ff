"""Orders the trials of a run: randomised complete blocks, the same for the same seed. Pure."""

import random
from collections.abc import Iterable, Sequence

from weighbridge.model.study import Cell, Study
from weighbridge.model.trial import Trial


def block(
    study: Study,
    number: int,
    *,
    attempt: int = 0,
    cells: Iterable[Cell] | None = None,
    arms: Sequence[str] | None = None,
) -> list[Trial]:
    """Return one block: every cell once in random order, with each of its environments once in random order.

    The environments of a cell run one after the other, so compared trials are close in time. ``cells`` and ``arms``
    restrict the block if it is repeated or if comparisons are finished. The order depends only on the seed, the
    number and the attempt.
    """
    rng = random.Random(f"{study.file.seed}/{number}/{attempt}")  # noqa: S311 - a schedule, not a secret
    included = {cell.id for cell in (study.cells if cells is None else cells)}
    trials = []
    for cell in rng.sample(study.cells, len(study.cells)):
        measured = {arm.name for arm in study.arms_of(cell)}
        for arm in rng.sample(study.arms, len(study.arms)):
            if arm.name in measured and cell.id in included and (arms is None or arm.name in arms):
                trials.append(Trial(number, attempt, cell.workload, cell.level, arm.name))
    return trials
