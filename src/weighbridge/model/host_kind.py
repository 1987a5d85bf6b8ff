"""What a kind of host has to be. One object per module of ``hosts/kinds``; the registry finds it."""

from abc import abstractmethod
from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Any, ClassVar

from weighbridge.model.host_options import HostOptions
from weighbridge.model.plugin import Plugin, Readiness
from weighbridge.model.site import Host, RunContext


class HostKind(Plugin):
    """A kind of machine on which sites are opened."""

    options: ClassVar[type[HostOptions]]

    def readiness(self, options: Any | None = None) -> Readiness:
        """Whether such hosts can be had from this machine, as far as can be told without one.

        With these options where some are given. Changes nothing.
        """
        return Readiness(True)

    @abstractmethod
    def open(
        self, name: str, options: Any, run: RunContext, peers: Sequence[HostOptions]
    ) -> AbstractContextManager[Host]:
        """Make or reach the host ``name``; ``peers`` are all hosts that roles are on, this one among them.

        Raises Unavailable, in one sentence, where it cannot be had. What was made is gone when the context ends.
        """
