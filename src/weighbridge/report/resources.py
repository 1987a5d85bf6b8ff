"""Resource use: which metrics are about it. They are told apart from what a workload measures, as a family apart."""

PREFIXES = (
    "cpu_client_", "cpu_server_", "cpu_solo_", "memory_client_", "memory_server_", "memory_solo_", "cpu_usage",
    "memory_usage",
)  # fmt: skip
"""How the names of metrics begin that the meters add to what a workload measures."""

BEYOND = "_beyond_baseline"
"""How the names of metrics end that are themselves differences: these are compared by difference alone."""


def is_resource_use(metric: str) -> bool:
    """Whether a metric is resource use (CPU per Gbit, memory beyond the baseline), not what the workload measures."""
    return metric.startswith(PREFIXES)
