"""The metrics of load generators, with the names that the workloads use. This module is not an adapter."""

from weighbridge.model.measurement import Metric

REQUESTS = Metric("requests", "requests/s", "higher")
LATENCIES = {key: Metric(f"latency_{key}", "ms", "lower") for key in ("mean", "p50", "p90", "p95", "p99")}
SUCCESS = Metric("success", "%", "higher")
