"""The options of the kinds of hosts whose implementation needs them: testbed and ssh."""

from pathlib import Path
from typing import Annotated, ClassVar, Literal, Self

from pydantic import AfterValidator, Field, model_validator

from weighbridge.model.host import HostTraits
from weighbridge.model.host_kind import HostOptions
from weighbridge.model.options import External
from weighbridge.model.quantity import CpuList, Rate


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
        return self.link

    @property
    def cable_words(self) -> str:
        """The cable's rate, in words for the plan."""
        return f"{self.link / 1e6:g} Mbit/s" if self.link else "no rate limit"

    @property
    def fast(self) -> bool:
        """Whether the link's rate is too high for a token bucket that splits packets."""
        return self.link is not None and self.link > 150e6

    @property
    def has_offloads(self) -> bool:
        """Whether the cable's ends have offloads: as the options say, else as the rate allows."""
        return not self.fast if self.offloads is None else self.offloads

    @model_validator(mode="after")
    def _what_the_link_takes(self) -> Self:
        if self.fast and self.offloads:
            raise ValueError("a link above 150 Mbit/s cannot split large packets: remove 'offloads'")
        return self


class TestbedOptions(CableOptions):
    """A host that is made on this machine for the length of the run, joined to the others by a switch of their own.

    ``link`` is the rate of its cable in each direction in bits per second of Ethernet (preamble, FCS and gap count);
    without it none is set. Without ``offloads`` no frame is larger than the ``mtu`` (bytes) anywhere; a link above
    150 Mbit/s has none. ``cpus`` are the CPUs of this machine that belong to it.
    """

    __test__: ClassVar[bool] = False  # no test, whatever its name begins with

    traits: ClassVar[HostTraits] = HostTraits(
        here=True, networks=frozenset({"switch"}), gives_addresses=True, disposable=True, interface="eth0"
    )
    kind: Literal["testbed"]
    cpus: Annotated[CpuList | None, Field(description="CPUs of this machine that the host gets")] = None

    @property
    def own_cpus(self) -> str | None:
        return self.cpus

    @property
    def description(self) -> str:
        return f"{self.kind}, simulated on this machine, {self.cable_words}"


def _configuration(path: str) -> str:
    """Return the absolute path of a configuration; ssh takes ``none`` for none at all."""
    return path if path == "none" else str(Path(path).absolute())


class SshOptions(HostOptions):
    """A machine that OpenSSH reaches with the user's own configuration and keys.

    ``address`` is where the other hosts reach it (default: that of ``interface``, else the one at
    which the ssh connection came in); ``interface`` is the
    interface to which macvlan, ipvlan and bridged networks are attached.
    """

    traits: ClassVar[HostTraits] = HostTraits(networks=frozenset({"ssh"}))
    kind: Literal["ssh"]
    destination: Annotated[
        str,
        Field(
            pattern=r"^[A-Za-z0-9_][A-Za-z0-9_.@:-]{0,252}$", description="Destination, as you would give it to ssh"
        ),
        External.MACHINE,
    ]
    address: Annotated[
        str | None, Field(pattern=r"^[0-9.]{7,15}$", description="IPv4 address of the machine"), External.MACHINE
    ] = None
    interface: Annotated[
        str | None,
        Field(pattern=r"^[A-Za-z0-9_.@-]{1,15}$", description="Interface for macvlan, ipvlan and bridges"),
    ] = None
    sudo: Annotated[bool, Field(description="Become root with sudo, without a password")] = False
    config: Annotated[
        Annotated[str, AfterValidator(_configuration)] | None,
        Field(description="An OpenSSH configuration file to use instead of your own"),
        External.SSH_CONFIGURATION,
    ] = None

    @property
    def description(self) -> str:
        return f"{self.kind}, {self.destination}"
