"""Which metrics of resource use tell CPU time, and what of them is negligible."""

from weighbridge.model.measurement import ALL_CPU, CPU_USAGE, SITES_CPU, is_difference_itself

CPU_TIME = (ALL_CPU, CPU_USAGE, "cpu_solo_", *SITES_CPU)
"""How the names of all metrics begin that tell CPU time."""

SAME_MEMORY_MIB = 1.0
"""Less memory than this is no difference of a host or a site, however often it is seen: a few pages of its own."""


def negligible(metric: str, typical: float) -> bool:
    """Whether a typical difference (in the metric's unit) is too small to be called different: of memory alone."""
    return is_difference_itself(metric) and metric.startswith("memory_") and abs(typical) < SAME_MEMORY_MIB
