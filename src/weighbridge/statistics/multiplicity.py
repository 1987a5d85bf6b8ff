"""Many comparisons in one report."""

from collections.abc import Sequence


def holm(p_values: Sequence[float]) -> tuple[float, ...]:
    """Give the p-values adjusted for their number, in the order given: reject where one is <= 0.05.

    The chance of any false rejection is then at most 5 %, whatever the dependence (Holm, "A simple sequentially
    rejective multiple test procedure", Scand. J. Statist. 6 (1979); `statsmodels` computes it).
    Raises ValueError for a value outside 0 to 1.
    """
    if not all(0 <= p <= 1 for p in p_values):
        raise ValueError("Every p-value must be between 0 and 1.")
    if not len(p_values):
        return ()
    from statsmodels.stats.multitest import multipletests

    return tuple(float(p) for p in multipletests(list(p_values), method="holm")[1])
