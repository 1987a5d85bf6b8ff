"""Flags: warnings about one trial, as a code with figures. The report has the sentences."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple


class FlagCode(StrEnum):
    """The codes of Weighbridge's own flags, with their figures. Codes are stable: they are stored and exported."""

    STEAL = "steal"
    """``share`` of the CPU time that the hypervisor used."""
    OTHER_WORK = "other-work"
    """``cpus`` that were busy outside of the sites."""
    LOAD = "load"
    """``load`` when the trial began; only older runs have it."""
    MEMORY_PRESSURE = "memory-pressure"
    """``share`` of the time for which programs waited for memory."""
    IO_PRESSURE = "io-pressure"
    """``share`` of the time for which programs waited for disks."""
    THROTTLED = "throttled"
    """``share`` of the time for which the CPU limit throttled a role (``where``)."""
    GENERATOR_SATURATED = "generator-saturated"
    """The client used all of the CPU that it can use, or was throttled."""
    GENERATOR_TOOK = "generator-took"
    """``client`` and ``server``: CPUs that each used, of ``cpus`` that they share and that were full."""
    GENERATOR_LATE = "generator-late"
    """``share`` of the requests that the client itself sent late."""
    GENERATOR_RESTED = "generator-rested"
    """``share`` of its time for which the client was idle."""
    CONNECTION_WAIT = "connection-wait"
    """``share`` of the requests that waited for a free connection."""
    CONNECTION_LOST = "connection-request-lost"
    """A program waited for ``seconds`` for a connection whose request was lost, and sent again."""
    CONNECTION_TABLE = "connection-table-full"
    """``share`` of the kernel's connection table that was used; when it is full, new connections are dropped."""
    SEARCH_GENERATOR = "search-ended-by-generator"
    """Above the rate that a search found, the generator missed the objective, not the server."""
    SEARCH_CONNECTIONS = "search-ended-by-connections"
    """All connections were in use when a search missed its objective."""
    SEARCH_TO = "search-ended-by-its-limit"
    """No rate within the limits of a search missed the objective."""
    PROGRAM_ERRORS = "program-errors"
    """``count`` of errors that a program reported in addition to its result."""
    READ_AGAIN = "read-again"
    """The files were read ``times`` over, through a page cache that was empty only at the beginning."""
    CLOCKS = "clocks-apart"
    """The measured program (role ``where``) took ``site_s`` by its site's clock and ``here_s`` by this machine's;
    they differ by a ``share`` of the latter.
    """
    CONNECTION_BROKE = "connection-broke"
    """A site (``where``: its role) was disconnected for ``seconds`` while its program continued."""
    NO_READINGS = "no-readings"
    """The meters of a host (``where``) failed; ``text`` says how."""
    PROMETHEUS = "prometheus"
    """Samples of a query are missing or too many; ``text`` has the query and the reason."""
    CABLE = "bottleneck-cable"
    """A cable (``where``: its host or role) carried ``share`` of its ``rate`` in bit/s."""
    ASKED_RATE = "bottleneck-asked-rate"
    """The program was given a ``rate`` (``text``: its unit), and reached ``share`` of it."""
    GENERATOR = "bottleneck-generator"
    """The client, outside of the environment, used ``share`` of its CPU; the server had some left."""
    CPU_QUOTA = "bottleneck-cpu-quota"
    """The CPU limit of a role (``where``) throttled it for ``share`` of the time."""
    CPUS = "bottleneck-cpus"
    """``share`` of the CPUs of a role (``where``), or of the CPUs that all roles share, was used."""
    DISK = "bottleneck-disk"
    """Programs waited for disks for ``share`` of the time."""
    NO_BOTTLENECK = "bottleneck-none"
    """No bottleneck is known."""
    OTHER = "other"
    """Something that only ``text`` says: from a plug-in without a code for it, or in an older run."""


OF_MEASURED_TIME = frozenset({FlagCode.THROTTLED, FlagCode.GENERATOR_SATURATED, FlagCode.GENERATOR_TOOK})
"""Flags about resource use in a trial's measured time."""
BOTTLENECKS = frozenset(code for code in FlagCode if code.startswith("bottleneck-"))
"""Each trial that gave measurements has exactly one of these flags."""


class FlagKind(NamedTuple):
    """The kind of a flag, without its figures; ``text`` is only set for flags without a code of their own."""

    code: str
    where: str
    text: str


@dataclass(frozen=True, slots=True)
class Flag:
    """A warning about one trial. ``code`` is a `FlagCode` or a plug-in's own; shares are fractions of 1."""

    code: str
    where: str = ""
    """A role or "host NAME"; empty for this machine."""
    figures: Mapping[str, float] = field(default_factory=dict, hash=False)
    text: str = ""
    """The text of a program, as it printed it."""
