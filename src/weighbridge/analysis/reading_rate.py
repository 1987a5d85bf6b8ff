"""How often the meters read during the trials, and whether that is often enough."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from weighbridge.analysis.plan import FASTEST_HZ, meters_hz
from weighbridge.model.measurement import Outcome
from weighbridge.model.trial import PROMETHEUS
from weighbridge.store.run import RunStore

ENOUGH_READINGS = 5
"""Readings in the measured time of a trial below which a mean or a peak says little."""


@dataclass(frozen=True, slots=True)
class ReadingRate:
    """Readings a second, the measured seconds of each trial, and whether a pilot block has chosen how many."""

    hz: float
    measured_s: Mapping[int, float]
    chosen: bool = False

    def median_s(self, trials: Sequence[int]) -> float:
        """Return the median of the trials' measured seconds; infinite without trials."""
        return median(self.measured_s[each] for each in trials) if trials else math.inf

    def enough(self, trials: Sequence[int]) -> bool:
        """Whether the median trial has enough readings."""
        return self.median_s(trials) * self.hz >= ENOUGH_READINGS

    def enough_hz(self, trials: Sequence[int]) -> int | None:
        """Return how many readings a second would be enough; None where the meters cannot read so often."""
        seconds = self.median_s(trials)
        wanted = math.ceil(ENOUGH_READINGS / seconds) if seconds > 0 else math.inf
        return None if wanted > FASTEST_HZ else int(max(wanted, math.floor(self.hz) + 1))


def readings(store: RunStore) -> ReadingRate | None:
    """How often the meters of a run read; None where its trials have no readings over time."""
    measured = {trial.id: trial.measured_s for trial in store.trials() if trial.outcome is Outcome.OK}
    first = next(iter(measured), None)
    if first is None or all(series.place == PROMETHEUS for _, series in store.series(first)):
        return None
    return ReadingRate(meters_hz(store), measured, bool(store.lengths()))
