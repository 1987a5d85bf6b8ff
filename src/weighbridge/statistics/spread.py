"""How far the runs of one environment differ from each other."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True, slots=True)
class Spread:
    """Mean and standard deviation of runs, in their unit, and the coefficient of variation (0.08 is 8 %)."""

    mean: float
    deviation: float
    runs: int

    @property
    def variation(self) -> float | None:
        """The coefficient of variation: deviation / mean; None where the mean is not positive."""
        return self.deviation / self.mean if self.mean > 0 else None

    @property
    def limits(self) -> tuple[float, float] | None:
        """The 95 % limits of the coefficient of variation; None below two runs.

        Those of the deviation by the chi-square distribution, divided by the mean: right where the coefficient is
        small (McKay, J. R. Statist. Soc. 95, 1932, below a third) and runs are about normal.
        """
        from scipy.special import chdtri

        variation = self.variation
        if variation is None or self.runs < 2:
            return None
        degrees = self.runs - 1
        low, high = (math.sqrt(degrees / float(chdtri(degrees, share))) for share in (0.025, 0.975))
        return variation * low, variation * high


def spread(values: Sequence[float]) -> Spread | None:
    """Return mean and standard deviation (n - 1) of fresh runs; None below two."""
    if len(values) < 2:
        return None
    every = np.asarray(values, dtype=np.float64)
    return Spread(float(every.mean()), float(every.std(ddof=1)), len(values))
