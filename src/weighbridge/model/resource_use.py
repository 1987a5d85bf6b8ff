"""Resource use: the metrics that tell it, a family apart from what a workload measures."""

from weighbridge.model.measurement import Metric

CPU_USER = Metric("cpu_user", "s", "lower")
CPU_SYSTEM = Metric("cpu_system", "s", "lower")
PEAK_MEMORY = Metric("peak_memory", "MiB", "lower")
CONTEXT_SWITCHES = Metric("context_switches", "count", "lower")
OF_PROGRAM = (CPU_USER, CPU_SYSTEM, PEAK_MEMORY, CONTEXT_SWITCHES)
"""What the measured process used by itself, as its site's launcher tells it (getrusage(2))."""

SITES_CPU = ("cpu_client_per_", "cpu_server_per_")
"""How the names of metrics begin that tell the CPU time of a site alone."""

PREFIXES = (
    "cpu_all_per_", "cpu_client_", "cpu_server_", "cpu_solo_", "memory_client_", "memory_server_", "memory_solo_",
    "cpu_usage", "memory_usage", "context_switches_per_", "tcp_retransmits_per_", "softirq_share",
)  # fmt: skip
"""How the names of metrics begin that the meters add to what a workload measures."""


def is_resource_use(metric: str) -> bool:
    """Whether a metric is resource use (CPU per Gbit, memory beyond the baseline), not what the workload measures."""
    return metric.startswith(PREFIXES) or any(metric == each.name for each in OF_PROGRAM)
