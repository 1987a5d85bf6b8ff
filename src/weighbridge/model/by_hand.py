"""How a study is run without Weighbridge: what a plug-in tells for it, as data."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from weighbridge.model.command import PublishedPort

LOOPBACK = "127.0.0.1"
LOOPBACK_PAYLOAD = 65507
"""Bytes of the largest UDP payload on a loopback interface."""
ETHERNET_PAYLOAD = 1472
"""Bytes of the largest UDP payload that does not fragment on Ethernet."""


@dataclass(frozen=True, slots=True)
class Setting:
    """A value that only the user's machine can tell; it stands in the kit's settings under ``name``."""

    name: str
    value: str
    about: str


@dataclass(frozen=True, slots=True)
class ByHandRequest:
    """What an environment is asked for: both roles are on one machine.

    ``number``: from 1 on, another one for each environment of a study, so that their subnets differ. ``ports``: those
    on which clients reach its servers. ``inside``: the roles in the environment. ``network``: whether a workload
    needs one.
    """

    number: int
    ports: tuple[PublishedPort, ...] = ()
    inside: frozenset[str] = frozenset({"server"})
    network: bool = True


@dataclass(frozen=True, slots=True)
class ByHand:
    """How an environment is made by hand; where ``cannot`` says why, it is not.

    ``listen``, ``address``, ``client`` and ``udp_payload`` are those of `weighbridge.model.workload.Endpoint`.
    ``services`` has what Docker Compose is told of the service of each role inside, beside image, command, limits and
    mounts; without services the programs run natively. A ``Setting`` may stand for any value. ``first`` are sentences
    about what is to be done before, ``differs`` about what is otherwise than in a run of Weighbridge.
    """

    cannot: str = ""
    listen: str = LOOPBACK
    address: str = LOOPBACK
    client: str = LOOPBACK
    udp_payload: int = LOOPBACK_PAYLOAD
    services: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    networks: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    first: tuple[str, ...] = ()
    differs: tuple[str, ...] = ()
    published: bool = False
    """Whether clients use the ports of the host."""


@dataclass(frozen=True, slots=True)
class Build:
    """A program of ours that an image builds from its sources: ``packages`` and ``commands`` are those of the build.

    ``files`` are the sources, by path; ``product`` is what comes of them, which belongs at ``place``.
    """

    name: str
    packages: tuple[str, ...]
    files: Mapping[str, bytes]
    commands: tuple[tuple[str, ...], ...]
    product: str
    place: str


@dataclass(frozen=True, slots=True)
class Recipe:
    """How an image with a study's programs is built by hand; where ``cannot`` says why, it is not.

    ``base`` is the image that it begins with, ``packages`` are Debian's, from the archive's ``components``.
    """

    cannot: str = ""
    base: str = ""
    components: tuple[str, ...] = ()
    packages: tuple[str, ...] = ()
    builds: tuple[Build, ...] = ()
