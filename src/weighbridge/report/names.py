"""Metrics as people read them."""

DERIVED = {"one_way_latency": "derived: half of 1/rate"}
"""Metrics that no clock measured, and what they are computed from."""

ALL, ALL_WORDS = "cpu_all_per_", "cpu of all of the machine beyond idle per "
"""How the names of metrics begin that tell the CPU time of all who worked, and how they are read."""


def metric_words(metric: str) -> str:
    """A metric's name in words: ``p99 latency``, ``one way latency (derived: half of 1/rate)``."""
    words = metric.replace(ALL, ALL_WORDS).replace("_", " ")
    return f"{words} ({DERIVED[metric]})" if metric in DERIVED else words


def titled(workload: str, label: str, metric: str) -> str:
    """Workload, level and metric in words: ``tcp throughput``; ``latency mean``, not ``latency latency mean``."""
    words = metric_words(metric)
    if words == workload or words.startswith(f"{workload} "):
        return f"{words}{label.removeprefix(workload)}" if label.startswith(workload) else words
    return f"{label} {words}"
