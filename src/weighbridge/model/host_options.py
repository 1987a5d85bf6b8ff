"""What a study file may say about a host, whatever its kind."""

from typing import ClassVar, Self

from weighbridge.model.host import HostTraits
from weighbridge.model.options import Options


class HostOptions(Options):
    """Base of what a study file may say about a host, and of what can be asked of it before it is open."""

    traits: ClassVar[HostTraits]
    kind: str

    @property
    def own_cpus(self) -> str | None:
        """The CPUs of this machine that belong to it, where the study names them."""
        return None

    @property
    def memory_here(self) -> int:
        """Bytes of this machine's memory that it takes, as a machine that has a size; else 0."""
        return 0

    @property
    def cable_rate(self) -> float | None:
        """The rate limit that the study puts on its cable, in bits per second."""
        return None

    def with_volatile_cache(self) -> Self | None:
        """As it is, with a disk that loses at a power cut what was not flushed; None: its power cannot be cut."""
        return None

    @property
    def description(self) -> str:
        """A few words for the plan: which machine it is, and its cable."""
        return self.kind
