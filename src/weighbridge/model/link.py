"""A cable of known rate."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Link:
    """A cable whose rate is known. ``where``: "host NAME", or the role whose site it belongs to."""

    where: str
    rate: float
    """Bits per second of Ethernet in each direction."""
    carried: Callable[[], Mapping[str, float]]
    """Bits carried so far on the wire (with preamble, FCS, gap), by direction; what is unreadable is absent."""
