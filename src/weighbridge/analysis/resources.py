"""Metrics of CPU time, and differences of memory that are too small to count."""

from weighbridge.model.measurement import ALL_CPU, CPU_USAGE, SITES_CPU, is_difference_itself

CPU_TIME = (ALL_CPU, CPU_USAGE, "cpu_solo_", *SITES_CPU)
"""Prefixes of all metrics of CPU time."""

SAME_MEMORY_MIB = 1.0
"""A smaller difference of a host's or site's memory does not count, however often it is seen: it is a few pages."""


def negligible(metric: str, typical: float) -> bool:
    """Return whether a typical difference of memory, in the metric's unit, is too small to be called different."""
    return is_difference_itself(metric) and metric.startswith("memory_") and abs(typical) < SAME_MEMORY_MIB
