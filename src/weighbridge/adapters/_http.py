"""The metrics of load generators, by the names that the workloads have for them. No adapter."""

from weighbridge.model.measurement import Metric

REQUESTS = Metric("requests", "requests/s", "higher")
LATENCIES = {key: Metric(f"latency_{key}", "ms", "lower") for key in ("mean", "p50", "p90", "p95", "p99")}
SUCCESS = Metric("success", "%", "higher")
