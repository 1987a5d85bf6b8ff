"""Who is told how a session goes on."""

from collections.abc import Mapping, Sequence
from typing import Protocol

from weighbridge.model import isolation
from weighbridge.model.trial import Trial, TrialRecord
from weighbridge.runner.precision import Standing


class Progress(Protocol):
    """A terminal, a page, a monitoring server; each is told everything."""

    def say(self, text: str) -> None:
        """One line about what happens now."""

    def layers_known(self, layers: Mapping[str, tuple[isolation.SiteLayers, ...]]) -> None:
        """Before the first trial: the environments that are in hypervisors, and in which."""

    def trial_started(self, trial: Trial, done: int, total: int, left_s: float) -> None:
        """A trial begins; ``done`` of ``total`` planned trials have ended, about ``left_s`` seconds are left."""

    def trial_finished(self, record: TrialRecord) -> None:
        """A trial ended and is saved."""

    def precision_checked(self, blocks: int, standings: Sequence[Standing]) -> None:
        """After ``blocks`` blocks the precision was looked at: how far each open comparison is."""
