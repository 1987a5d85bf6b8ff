"""The options of the kinds of hosts whose implementation needs them: testbed, guest and ssh."""

from pathlib import Path
from typing import Annotated, ClassVar, Literal, Self

from pydantic import AfterValidator, Field, model_validator

from weighbridge.guests.accelerator import AcceleratorChoice
from weighbridge.guests.system import Name
from weighbridge.guests.volatile_disk import WriteCache
from weighbridge.model.host import HostTraits
from weighbridge.model.host_kind import HostOptions
from weighbridge.model.options import External
from weighbridge.model.quantity import CpuList, Rate, Size

_LEAST = 512 * 2**20


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
        """The cable's rate in each direction, in bits per second of Ethernet: ``link``."""
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
        """The CPUs of this machine that the host has: ``cpus``."""
        return self.cpus

    @property
    def description(self) -> str:
        """Words for the plan."""
        return f"{self.kind}, simulated on this machine, {self.cable_words}"


class GuestOptions(CableOptions):
    """A machine of our own: a QEMU guest with Debian's full kernel, for the length of the run.

    It supports features that this machine's kernel does not have: ipvlan, encrypted overlay networks, NFS. Its cable
    leads to the switch of the testbed hosts. Figures taken on it are figures of its accelerator: ``auto`` is KVM only
    if a guest really comes up under it, else emulation (TCG). ``memory`` is its RAM, ``cpus`` are the CPUs of this
    machine that belong to it: it has as many, and with ``pin: vcpus`` each of them is on one of these.
    ``system: virtualbox`` is Debian sid with VirtualBox and its modules in place of Debian 12 with Docker's engine,
    NFS and Xen's tools. ``write_cache`` is the cache of its data disk. ``kept`` loses no write, because data is on
    this machine's disk or in its page cache, which outlives QEMU. ``volatile`` loses data that was not flushed when
    power is cut. ``unsafe`` also loses flushed data: it acknowledges a flush and does nothing.
    """

    traits: ClassVar[HostTraits] = HostTraits(
        here=True,
        own_kernel=True,
        networks=frozenset({"switch"}),
        gives_addresses=True,
        disposable=True,
        interface="eth0",
        slows_disk=True,
    )
    kind: Literal["guest"]
    accelerator: Annotated[
        AcceleratorChoice, Field(description="auto: KVM if the guest boots with it, otherwise emulation (tcg)")
    ] = "auto"
    memory: Annotated[Size, Field(ge=_LEAST, description="Its RAM")] = 2 * 2**30
    cpus: Annotated[CpuList | None, Field(description="CPUs of this machine that the guest gets")] = None
    system: Annotated[Name, Field(description="The operating system of the guest")] = "debian"
    pin: Annotated[Literal["vcpus"] | None, Field(description="Pin each virtual CPU to its own CPU")] = None
    hypervisor: Annotated[Literal["xen"] | None, Field(description="Hypervisor that its kernel runs on")] = None
    write_cache: Annotated[WriteCache, Field(description="Which writes to its data disk survive a power cut")] = (
        "kept"
    )

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.hypervisor and self.system != "debian":
            raise ValueError(f"'hypervisor: {self.hypervisor}' needs 'system: debian'")
        return self

    def with_volatile_cache(self) -> Self:
        """Return options with a write cache that is not ``kept``: that would hide a missing flush."""
        return self.model_copy(update={"write_cache": "volatile"}) if self.write_cache == "kept" else self

    @property
    def own_cpus(self) -> str | None:
        """The CPUs of this machine that the host has: ``cpus``."""
        return self.cpus

    @property
    def memory_here(self) -> int:
        """The bytes of this machine's memory that the host has: ``memory``."""
        return self.memory

    @property
    def description(self) -> str:
        """Words for the plan."""
        return f"{self.kind}, a QEMU guest of {self.memory >> 20} MiB on this machine, {self.cable_words}"


def _configuration(path: str) -> str:
    """The absolute path of a configuration; ssh takes ``none`` for none at all."""
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
        """Words for the plan."""
        return f"{self.kind}, {self.destination}"
