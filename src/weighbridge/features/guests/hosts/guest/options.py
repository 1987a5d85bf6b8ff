"""The options of a host that is a QEMU guest."""

from typing import Annotated, ClassVar, Literal, Self

from pydantic import Field, model_validator

from weighbridge.features.guests.accelerator import AcceleratorChoice
from weighbridge.features.guests.system import Name
from weighbridge.features.guests.volatile_disk import WriteCache
from weighbridge.hosts.options import CableOptions
from weighbridge.model.host import HostTraits
from weighbridge.model.quantity import CpuList, Size

_LEAST = 512 * 2**20


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
