"""What has happened so far in a trial."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from weighbridge.model.command import Completed, Running
from weighbridge.model.trial import Times
from weighbridge.model.workload import Endpoint
from weighbridge.runner.bottleneck import Watch
from weighbridge.runner.metering import Metering


@dataclass(slots=True)
class TrialState:
    """The programs that ran, and what was read of them and of the meters."""

    metering: Metering
    completed: dict[str, Completed] = field(default_factory=dict)
    """What each role's program left; of a warm-up under its own name."""
    endpoints: Sequence[Endpoint] = ()
    """Where each site of the measured role works."""
    server: Running | None = None
    measured_s: float = 0.0
    """How long the measured process ran."""
    load: str = ""
    """The option that is the workload's load; "" where it has none."""
    opens: bool = False
    """Whether it opens sites of its own: who works for them works outside of the stage's."""
    threads: int = 1
    """Threads of the measured process that can be busy at once."""
    times: Times = field(default_factory=lambda: Times(0.0, 0.0, 0.0))
    """For how long it did what: as long as it ran, until its output was read."""
    watch: Watch = field(default_factory=Watch)
    measured_use: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    """What each site used while the measured process ran: not the warm-up, nor the start of the server."""

    def measured(self, seconds: float) -> None:
        """Note how long the measured process ran."""
        self.measured_s, self.times = seconds, Times(seconds, seconds, seconds)
