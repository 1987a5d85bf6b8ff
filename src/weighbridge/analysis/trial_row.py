"""One trial as a report shows it: frozen data."""

from collections.abc import Mapping
from dataclasses import dataclass

from weighbridge.model.address import HasArm
from weighbridge.model.flag import Flag
from weighbridge.model.level import Level


@dataclass(frozen=True, slots=True)
class TrialRow(HasArm):
    """One trial that ended, whatever its outcome. Times are seconds; ``started_at`` is seconds since the epoch."""

    id: int
    order: int
    """The trial's position in the session, from 1."""
    block: int
    attempt: int
    environment: str
    workload: str
    level: Level
    outcome: str
    message: str
    started_at: float
    duration_s: float
    flags: tuple[Flag, ...]
    values: Mapping[str, float]
    """Metric -> value in the metric's unit; empty for a trial that failed."""

    @property
    def ok(self) -> bool:
        """Whether it gave measurements."""
        return self.outcome == "ok"

    @property
    def broke(self) -> bool:
        """Whether the load exceeded the server's capacity: a result without measurements, not a failure."""
        return self.outcome == "broke"
