"""Options with which each workload can be asked for something: its defaults, and what has none."""

from typing import Any

from weighbridge.model.options import Options
from weighbridge.model.workload import Workload

RATE = {"json": "$.summary.requestsPerSec", "unit": "1/s", "better": "higher"}
NEEDED: dict[str, dict[str, Any]] = {"command": {"run": "oha", "metrics": {"rate": RATE}}}
"""Options without a default, by kind."""


def usual_options(workload: Workload) -> Options:
    """Its options, all with their defaults that have one."""
    return workload.options.model_validate(NEEDED.get(workload.kind, {}))
