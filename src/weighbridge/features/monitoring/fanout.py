"""The progress of a session, passed on to several listeners."""

from collections.abc import Mapping, Sequence

from weighbridge.model.isolation import SiteLayers
from weighbridge.model.setup import SetupStep
from weighbridge.model.trial import Trial, TrialRecord
from weighbridge.runner.estimate import Forecast
from weighbridge.runner.precision import CostEstimate, OutOfReach, PrecisionStatus
from weighbridge.runner.session import Progress


class ProgressFanout:
    """Passes every event to each listener, in order. Implements ``Progress`` of the session."""

    def __init__(self, *listeners: Progress) -> None:
        self._listeners = listeners

    def say(self, text: str) -> None:
        """Pass on a line about the current step."""
        for listener in self._listeners:
            listener.say(text)

    def waits(self, steps: Sequence[SetupStep]) -> None:
        """Pass on the steps of the set-up."""
        for listener in self._listeners:
            listener.waits(steps)

    def layers_known(self, layers: Mapping[str, tuple[SiteLayers, ...]]) -> None:
        """Pass on the hypervisors of the environments."""
        for listener in self._listeners:
            listener.layers_known(layers)

    def trial_started(self, trial: Trial, finished: int, total: int, left: Forecast) -> None:
        """Pass on the start of a trial."""
        for listener in self._listeners:
            listener.trial_started(trial, finished, total, left)

    def trial_finished(self, record: TrialRecord) -> None:
        """Pass on a finished and saved trial."""
        for listener in self._listeners:
            listener.trial_finished(record)

    def precision_checked(self, blocks: int, statuses: Sequence[PrecisionStatus]) -> None:
        """Pass on the result of an interim look."""
        for listener in self._listeners:
            listener.precision_checked(blocks, statuses)

    def interference_noticed(self, out_of_reach: OutOfReach) -> None:
        """Pass on that other programs put the target precision out of reach."""
        for listener in self._listeners:
            listener.interference_noticed(out_of_reach)

    def time_known(self, trial_s: float, left: Forecast) -> None:
        """Pass on the duration of a trial."""
        for listener in self._listeners:
            listener.time_known(trial_s, left)

    def costs_estimated(self, blocks: int, estimates: Sequence[CostEstimate]) -> None:
        """Pass on the costs so far."""
        for listener in self._listeners:
            listener.costs_estimated(blocks, estimates)
