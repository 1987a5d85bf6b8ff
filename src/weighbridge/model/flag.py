"""What a reader has to know about one trial beside its numbers: a code with figures. The report has the words."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple


class FlagCode(StrEnum):
    """Every code that Weighbridge itself gives, with its figures. Codes are stable: they are stored and exported."""

    STEAL = "steal"
    """``share`` of the CPU time that the hypervisor took."""
    OTHER_WORK = "other-work"
    """``cpus`` that were busy outside of the sites."""
    LOAD = "load"
    """``load`` when the trial began; only older runs have it."""
    MEMORY_PRESSURE = "memory-pressure"
    """``share`` of the time in which programs waited for memory."""
    IO_PRESSURE = "io-pressure"
    """``share`` of the time in which programs waited for disks."""
    THROTTLED = "throttled"
    """``share`` of the time in which the CPU limit held a role (``where``) back."""
    GENERATOR_SATURATED = "generator-saturated"
    """The client used all of the CPU that it can use, or was throttled."""
    GENERATOR_TOOK = "generator-took"
    """``client`` and ``server``: CPUs that each used, of ``cpus`` that they share and that were full."""
    GENERATOR_LATE = "generator-late"
    """``share`` of the requests that the client sent late by itself."""
    GENERATOR_RESTED = "generator-rested"
    """``share`` of its time in which the client rested."""
    CONNECTION_WAIT = "connection-wait"
    """``share`` of the requests that waited for a free connection."""
    CONNECTION_LOST = "connection-request-lost"
    """For so many ``seconds`` a program waited for a connection whose request was lost, and sent again."""
    CONNECTION_TABLE = "connection-table-full"
    """``share`` of the kernel's table of connections that was taken; when it is full, new ones are dropped."""
    SEARCH_GENERATOR = "search-ended-by-generator"
    """Above the rate that a search found the generator missed the objective, and not the server."""
    SEARCH_CONNECTIONS = "search-ended-by-connections"
    """All connections were in use where a search missed its objective."""
    SEARCH_TO = "search-ended-by-its-limit"
    """No rate that a search was allowed to try missed the objective."""
    PROGRAM_ERRORS = "program-errors"
    """``count`` of errors that a program reported beside its result."""
    READ_AGAIN = "read-again"
    """The files were read ``times`` over, through a page cache that was empty only at the beginning."""
    CLOCKS = "clocks-apart"
    """The measured program (role ``where``) took ``site_s`` by its site's clock and ``here_s`` by this machine's;
    they are apart by a ``share`` of the latter."""
    UNHEARD = "connection-broke"
    """There was no connection to a site (``where``: its role) for ``seconds``, in which its program went on."""
    NO_READINGS = "no-readings"
    """The meters of a host (``where``) failed; ``text`` says how."""
    PROMETHEUS = "prometheus"
    """Samples of a query are missing or too many; ``text`` says of which and why."""
    CABLE = "bottleneck-cable"
    """A cable (``where``: its host, or the role that it belongs to) carried ``share`` of its ``rate`` in bit/s."""
    ASKED_RATE = "bottleneck-asked-rate"
    """The program was told a ``rate`` (``text``: its unit), and reached ``share`` of it."""
    GENERATOR = "bottleneck-generator"
    """The client, outside of the environment, used ``share`` of its CPU; the server had some left."""
    CPU_QUOTA = "bottleneck-cpu-quota"
    """The CPU limit of a role (``where``) held it back in ``share`` of the time."""
    CPUS = "bottleneck-cpus"
    """``share`` of the CPUs of a role (``where``), or of those that all roles share, was used."""
    DISK = "bottleneck-disk"
    """Programs waited for disks in ``share`` of the time."""
    NO_BOTTLENECK = "bottleneck-none"
    """None is known."""
    OTHER = "other"
    """Something that only ``text`` says: of a plug-in without a code for it, or of an older run."""


OF_MEASURED_TIME = frozenset({FlagCode.THROTTLED, FlagCode.GENERATOR_SATURATED, FlagCode.GENERATOR_TOOK})
"""Flags about what was used in a trial's measured time."""
BOTTLENECKS = frozenset(code for code in FlagCode if code.startswith("bottleneck-"))
"""Exactly one of them is in the flags of each trial that gave measurements."""


class FlagKind(NamedTuple):
    """What flags are about, without their figures; ``text`` only of flags without a code of their own."""

    code: str
    where: str
    text: str


@dataclass(frozen=True, slots=True)
class Flag:
    """One thing about one trial. ``code`` is a `FlagCode` or a plug-in's own; shares are fractions of 1."""

    code: str
    where: str = ""
    """A role or "host NAME"; empty for this machine."""
    figures: Mapping[str, float] = field(default_factory=dict, hash=False)
    text: str = ""
    """The words of a program, as they came."""
