"""The options of the cable of a host that is made on this machine and joined to a switch there."""

from typing import Annotated, Self

from pydantic import Field, model_validator

from weighbridge.model.host_kind import HostOptions
from weighbridge.model.quantity import Rate


class CableOptions(HostOptions):
    """``link`` is the rate of its cable in each direction in bits per second of Ethernet."""

    link: Annotated[Rate | None, Field(ge=1e6, le=1e10, description="Rate of the cable in each direction")] = None
    mtu: Annotated[int, Field(ge=576, le=9000, description="Largest packet on the cable, in bytes")] = 1500
    offloads: Annotated[
        bool | None,
        Field(
            description="Whether the host passes packets larger than the MTU to the cable (links up to 150 Mbit/s)"
        ),
    ] = None

    @property
    def cable_rate(self) -> float | None:
        """Return the cable's rate in each direction, in bits per second of Ethernet: ``link``."""
        return self.link

    @property
    def cable_words(self) -> str:
        """Return the cable's rate in words, for the plan."""
        return f"{self.link / 1e6:g} Mbit/s" if self.link else "no rate limit"

    @property
    def fast(self) -> bool:
        """Return whether the link's rate is too high for a token bucket that splits packets."""
        return self.link is not None and self.link > 150e6

    @property
    def has_offloads(self) -> bool:
        """Return whether the cable's ends have offloads, by the option or by default for the rate."""
        return not self.fast if self.offloads is None else self.offloads

    @model_validator(mode="after")
    def _what_the_link_takes(self) -> Self:
        if self.fast and self.offloads:
            raise ValueError("a link above 150 Mbit/s cannot split large packets: remove 'offloads'")
        return self
