"""Many comparisons in one report."""

from collections.abc import Sequence


def holm(p_values: Sequence[float]) -> tuple[float, ...]:
    """Give the p-values adjusted for their number, in the order given: reject where one is <= 0.05.

    The chance of any false rejection is then at most 5 %, whatever the dependence (Holm, "A simple sequentially
    rejective multiple test procedure", Scand. J. Statist. 6 (1979)).
    Raises ValueError for a value outside 0 to 1.
    """
    if not all(0 <= p <= 1 for p in p_values):
        raise ValueError("Every p-value must be between 0 and 1.")
    adjusted, largest, number = [0.0] * len(p_values), 0.0, len(p_values)
    for rank, place in enumerate(sorted(range(number), key=lambda each: p_values[each])):
        largest = max(largest, (number - rank) * p_values[place])
        adjusted[place] = min(1.0, largest)
    return tuple(adjusted)
