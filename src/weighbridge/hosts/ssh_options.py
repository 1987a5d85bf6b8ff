"""The options of ssh hosts: machines that OpenSSH reaches."""

from pathlib import Path
from typing import Annotated, ClassVar, Literal

from pydantic import AfterValidator, Field

from weighbridge.model.host import HostTraits
from weighbridge.model.host_kind import HostOptions
from weighbridge.model.options import Brings


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
        Brings.MACHINE,
    ]
    address: Annotated[
        str | None, Field(pattern=r"^[0-9.]{7,15}$", description="IPv4 address of the machine"), Brings.MACHINE
    ] = None
    interface: Annotated[
        str | None,
        Field(pattern=r"^[A-Za-z0-9_.@-]{1,15}$", description="Interface for macvlan, ipvlan and bridges"),
    ] = None
    sudo: Annotated[bool, Field(description="Become root with sudo, without a password")] = False
    config: Annotated[
        Annotated[str, AfterValidator(_configuration)] | None,
        Field(description="An OpenSSH configuration file to use instead of your own"),
        Brings.SSH_CONFIGURATION,
    ] = None

    @property
    def description(self) -> str:
        """Words for the plan."""
        return f"{self.kind}, {self.destination}"
