"""The paired t-test as papers print it: mean and standard deviation of the differences, t and p."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True, slots=True)
class PairedTest:
    """``mean`` and ``deviation`` (n - 1) of the differences, in their unit; ``p`` is two-sided.

    ``t`` and ``p`` are None where all differences are the same, and nothing can be tested.
    """

    mean: float
    deviation: float
    pairs: int
    t: float | None
    p: float | None


def paired_test(first: Sequence[float], second: Sequence[float]) -> PairedTest | None:
    """Test that the mean of first - second is 0 (Student, Biometrika 6, 1908); None below two pairs.

    The values are of the same blocks, in the same order. Raises ValueError where one has more of them.
    """
    from scipy.special import stdtr

    pairs = list(zip(first, second, strict=True))
    if len(pairs) < 2:
        return None
    differences = np.asarray([one - other for one, other in pairs], dtype=np.float64)
    mean, deviation = float(differences.mean()), float(differences.std(ddof=1))
    if not np.any(differences != differences[0]) or deviation == 0:
        return PairedTest(mean, 0.0, len(pairs), None, None)
    t = mean / (deviation / len(pairs) ** 0.5)
    return PairedTest(mean, deviation, len(pairs), t, float(2 * stdtr(len(pairs) - 1, -abs(t))))
