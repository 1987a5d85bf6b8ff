"""Which metrics of resource use tell CPU time, are compared by difference, and what of them is negligible."""

from weighbridge.model.measurement import ALL_CPU, CPU_USAGE, MEMORY_USAGE, RETRANSMITS, SITES_CPU

CPU_TIME = (ALL_CPU, CPU_USAGE, "cpu_solo_", *SITES_CPU)
"""How the names of all metrics begin that tell CPU time."""

BEYOND = "_beyond_baseline"
"""How the names of metrics end that are themselves differences: these are compared by difference alone."""

HOST_WIDE = (CPU_USAGE, MEMORY_USAGE)
"""What a whole host used: like those, compared by difference alone. Both can be next to nothing, or nothing."""


def by_difference(metric: str) -> bool:
    """Whether a metric is compared by difference, whatever its values: a ratio of two noises is no cost.

    Retransmits are rare: 40 against 1 are not 4 000 %.
    """
    return metric.endswith(BEYOND) or metric in HOST_WIDE or metric.startswith(RETRANSMITS)


SAME_MEMORY_MIB = 1.0
"""Less memory than this is no difference of a host or a site, however often it is seen: a few pages of its own."""


def negligible(metric: str, typical: float) -> bool:
    """Whether a typical difference (in the metric's unit) is too small to be called different: of memory alone."""
    return by_difference(metric) and metric.startswith("memory_") and abs(typical) < SAME_MEMORY_MIB
