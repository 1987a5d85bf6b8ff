"""A host that is made on this machine for the length of the run, joined to the others by a switch of their own."""

import os
from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field, model_validator

from weighbridge.model.cpus import CpuList
from weighbridge.model.host import HostTraits
from weighbridge.model.host_kind import HostKind
from weighbridge.model.host_options import HostOptions
from weighbridge.model.plugin import Readiness
from weighbridge.model.quantity import Rate
from weighbridge.model.site import Host, RunContext


class TestbedOptions(HostOptions):
    """A host that is made on this machine for the length of the run, joined to the others by a switch of their own.

    ``link`` is the rate of its cable in each direction in bits per second of Ethernet (preamble, FCS and gap count);
    without it none is set. Without ``offloads`` no frame is larger than the ``mtu`` (bytes) anywhere; a link above
    150 Mbit/s has none. ``cpus`` are the CPUs of this machine that belong to it.
    """

    __test__: ClassVar[bool] = False  # no test, whatever its name begins with

    traits: ClassVar[HostTraits] = HostTraits(here=True, networks=frozenset({"switch"}), gives_addresses=True)
    kind: Literal["testbed"]
    link: Annotated[Rate, Field(ge=1e6, le=1e10, description="Rate of its cable in each direction")] | None = None
    mtu: Annotated[int, Field(ge=576, le=9000, description="Bytes of its cable's largest packet")] = 1500
    offloads: Annotated[
        bool | None, Field(description="Whether packets larger than the cable's go to it (not above 150 Mbit/s)")
    ] = None
    cpus: Annotated[CpuList | None, Field(description="CPUs of this machine that belong to it")] = None

    @property
    def own_cpus(self) -> str | None:
        """``cpus``."""
        return self.cpus

    @property
    def cable_rate(self) -> float | None:
        """``link``."""
        return self.link

    @property
    def description(self) -> str:
        """Words for the plan."""
        rate = f"{self.link / 1e6:g} Mbit/s" if self.link else "no rate limit"
        return f"{self.kind}, made on this machine, {rate}"

    @property
    def fast(self) -> bool:
        """Whether the link's rate is too high for a token bucket that splits packets."""
        return self.link is not None and self.link > 150e6

    @property
    def has_offloads(self) -> bool:
        """What was asked for, or what the link allows."""
        return not self.fast if self.offloads is None else self.offloads

    @model_validator(mode="after")
    def _what_the_link_takes(self) -> "TestbedOptions":
        if self.fast and self.offloads:
            raise ValueError("a link above 150 Mbit/s cannot split large packets: leave offloads out")
        return self


class Testbed(HostKind):
    """Network, mount, UTS, IPC and PID namespaces of this machine."""

    __test__ = False  # no test, whatever its name begins with
    kind = "testbed"
    summary = "a host made on this machine for the run: namespaces joined by a switch, cables with a rate"
    options = TestbedOptions
    programs: ClassVar = {"tini": "tini", "nsenter": "util-linux", "ip": "iproute2", "ethtool": "ethtool"}

    def readiness(self) -> Readiness:
        """Whether this user may make namespaces and links."""
        if os.geteuid() != 0:
            return Readiness(False, "only root may make testbed hosts", "run as root")
        return Readiness(True)

    def open(
        self, name: str, options: Any, run: RunContext, peers: Sequence[HostOptions]
    ) -> AbstractContextManager[Host]:
        """Make it, and end it with everything in it."""
        from weighbridge.hosts.testbed import testbed_host

        return testbed_host(name, options, run)


PLUGIN = Testbed()
