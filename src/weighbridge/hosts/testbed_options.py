"""The options of testbed hosts, and the program that each of them starts first."""

import shutil
from typing import Annotated, ClassVar, Literal

from pydantic import Field

from weighbridge.hosts.cable_options import CableOptions
from weighbridge.linux.packages import install_here
from weighbridge.model.host import HostTraits
from weighbridge.model.quantity import CpuList


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


def init_program() -> str | None:
    """The program that reaps a host's orphans: tini, which Debian's docker.io brings, or Docker's copy of it."""
    return shutil.which("tini") or shutil.which("docker-init", path="/usr/libexec/docker:/usr/bin")


def no_init() -> tuple[str, str]:
    """Return the message for a machine without an `init_program`, and what helps."""
    return "testbed hosts need tini as their first process", install_here(["tini"])
