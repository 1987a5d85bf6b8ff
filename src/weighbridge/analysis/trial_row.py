"""One trial as a report shows it: frozen data."""

from collections.abc import Mapping
from typing import NamedTuple

from weighbridge.model.address import ArmId, CellId
from weighbridge.model.flag import Flag
from weighbridge.model.level import Level


class TrialRow(NamedTuple):
    """One trial that ended, whatever its outcome. Times are seconds; ``started_at`` is seconds since the epoch.

    A run has thousands of them, and a tuple is created faster than a dataclass.
    """

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
    def cell(self) -> CellId:
        """Return the workload and level as one key."""
        return CellId(self.workload, self.level)

    @property
    def label(self) -> str:
        """Return the label of the workload and level that reports show: ``redis (clients=50)``."""
        return self.cell.label

    @property
    def arm(self) -> ArmId:
        """Return the workload, level and environment as one key."""
        return ArmId(self.cell, self.environment)

    @property
    def ok(self) -> bool:
        """Whether it gave measurements."""
        return self.outcome == "ok"

    @property
    def broke(self) -> bool:
        """Whether the load exceeded the server's capacity: a result without measurements, not a failure."""
        return self.outcome == "broke"
