"""Describes how to run a study without Weighbridge, as plug-ins provide it: data for ``weighbridge kit``."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from weighbridge.model.command import PublishedPort

LOOPBACK = "127.0.0.1"
LOOPBACK_PAYLOAD = 65507
"""The bytes of the largest UDP payload on a loopback interface."""
ETHERNET_PAYLOAD = 1472
"""The bytes of the largest UDP payload that does not fragment on Ethernet."""


@dataclass(frozen=True, slots=True)
class Setting:
    """A value that depends on the user's machine; it is in the kit's settings under ``name``."""

    name: str
    value: str
    description: str


@dataclass(frozen=True, slots=True)
class ByHandRequest:
    """The kit's request to an environment; both roles are on one machine.

    ``number`` counts the environments of a study from 1, so that their subnets differ. ``ports`` are the ports on
    which clients reach its servers, ``inside`` the roles in the environment, and ``network`` says whether a workload
    needs a network.
    """

    number: int
    ports: tuple[PublishedPort, ...] = ()
    inside: frozenset[str] = frozenset({"server"})
    network: bool = True


@dataclass(frozen=True, slots=True)
class ByHand:
    """How to create an environment by hand; ``cannot`` has the reason if that is impossible.

    ``listen``, ``address``, ``client`` and ``udp_payload`` are as in `weighbridge.model.workload.Endpoint`.
    ``services`` has the settings for Docker Compose of each role inside, without image, command, limits and mounts;
    without services the programs run natively. Any value can be a ``Setting``. ``first`` has sentences about the
    preparations, ``differs`` about differences from a run of Weighbridge.
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


@dataclass(frozen=True, slots=True)
class Build:
    """A program of Weighbridge that an image builds from its sources.

    ``packages`` and ``commands`` are for the build. ``files`` has the sources by path. The build makes ``product``,
    which belongs at ``place``.
    """

    name: str
    packages: tuple[str, ...]
    files: Mapping[str, bytes]
    commands: tuple[tuple[str, ...], ...]
    product: str
    place: str


@dataclass(frozen=True, slots=True)
class Recipe:
    """How to build an image with a study's programs by hand; ``cannot`` has the reason if that is impossible.

    ``base`` is its base image; ``packages`` are Debian's, from the ``components`` of its archive.
    """

    cannot: str = ""
    base: str = ""
    components: tuple[str, ...] = ()
    packages: tuple[str, ...] = ()
    builds: tuple[Build, ...] = ()
