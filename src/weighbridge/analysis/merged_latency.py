"""The latency of all requests of all runs of an environment, merged: frozen data."""

from dataclasses import dataclass

from weighbridge.model.level import Level
from weighbridge.statistics import Cost


@dataclass(frozen=True, slots=True)
class Latency:
    """The merged latency of one environment: percentiles of all requests of all runs, never averaged.

    ``costs`` compare the runs' own percentiles with the baseline's block by block; None where there is no pair, for
    the baseline itself, and for percentiles with too few requests beyond them.
    """

    environment: str
    runs: int
    requests: int
    percentiles: tuple[float, ...]
    """In seconds, of the percents in `weighbridge.analysis.latency.PERCENTS`."""
    costs: tuple[Cost | None, ...]
    curve: tuple[tuple[float, float], ...]
    """Percent and seconds, ever nearer to 100 %."""


@dataclass(frozen=True, slots=True)
class LatencyReport:
    """Every environment's merged latency for one metric of one workload at one level."""

    workload: str
    level: Level
    label: str
    metric: str
    rows: tuple[Latency, ...]
    """In the study's order."""
