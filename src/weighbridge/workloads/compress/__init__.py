"""xz and pbzip2: the speed at which a file in memory is compressed or decompressed."""

import re
from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import Field

from weighbridge.model.command import Command, Completed
from weighbridge.model.measurement import Measurement, Metric, ProgramFailed, Unparseable, require_success
from weighbridge.model.options import Options
from weighbridge.model.quantity import Size
from weighbridge.model.study import Role
from weighbridge.model.trial import TrialResult
from weighbridge.model.workload import Endpoint, Workload

SPEED = Metric("speed", "MB/s", "higher")
CORPUS = "/tmp/weighbridge-corpus"  # noqa: S108
"""The text to compress. It is in memory in every environment."""
_SUFFIX = {"xz": ".xz", "pbzip2": ".bz2"}
_USUAL = {("xz", False): 1e6, ("xz", True): 4e7, ("pbzip2", False): 8e6, ("pbzip2", True): 1.5e7}
"""The usual bytes of text per second on one core, by program, to compress and to decompress."""
_UNITS = {"B": 1.0, "KiB": 2.0**10, "MiB": 2.0**20, "GiB": 2.0**30}
_XZ_END = re.compile(r": [0-9.,]+ [KMG]?i?B / ([0-9]{1,6}\.[0-9]|[0-9]{1,6}) ([KMG]iB|B) = [0-9]\.[0-9]{3}[,\n]")
_PBZIP2_ERROR = re.compile(r"pbzip2: \*ERROR: *(.+)")
_PBZIP2_END = re.compile(r"^     Wall Clock: [0-9]+\.[0-9]{6} seconds\n", re.MULTILINE)
_PBZIP2_SIZES = re.compile(
    r"^     Input Size: ([0-9]{1,15}) bytes\n(?:.*\n)*?.* Output Size: [1-9][0-9]*", re.MULTILINE
)


class CompressOptions(Options):
    """Options of compression. Sizes are in bytes."""

    program: Annotated[
        Literal["xz", "pbzip2"], Field(description="The program; results of different programs do not compare")
    ] = "xz"
    direction: Annotated[
        Literal["compress", "decompress"],
        Field(description="What to measure; decompressed data is checked and not kept"),
    ] = "compress"
    size: Annotated[Size, Field(ge=2**16, le=2**32, description="Size of the uncompressed file")] = 2**22
    level: Annotated[int, Field(ge=1, le=9, description="Compression level, from fast to small")] = 6
    threads: Annotated[int, Field(ge=1, le=256, description="Threads; xz gives each thread 1 MiB at a time")] = 1


class Compress(Workload):
    """Integer arithmetic and memory accesses of a real program, which uses all of its CPU: its bottleneck.

    It compresses an artificial text with the same bytes on every machine. Our own program (``programs/corpus``)
    writes it into the site's memory before each trial, outside of the measured time. Other texts have other speeds.
    xz always compresses blocks of 1 MiB, so the number of threads changes only the speed. The corpus and the result
    are in the site's memory.
    """

    kind = "compress"
    summary = "xz or pbzip2 on a text in memory: integer CPU speed of a real program"
    options = CompressOptions
    packages = ("pbzip2", "xz-utils")
    c = "corpus"

    def metrics(self, options: CompressOptions) -> tuple[Metric, ...]:
        """Return ``speed``: MB (10^6 bytes) of text per second of the complete process."""
        return (SPEED,)

    def warm_up(self, options: CompressOptions, at: Endpoint) -> Command:
        """Write the corpus, then become the program: to print its version, or to compress the corpus."""
        then = (
            _arguments(options, "compress") if options.direction == "decompress" else (options.program, "--version")
        )
        deadline_s = self._deadline_s(options, "compress")
        return Command(("weighbridge-corpus", str(options.size), CORPUS, *then), deadline_s)

    def command(self, role: Role, options: CompressOptions, at: Endpoint) -> Command:
        return Command(_arguments(options, options.direction), self._deadline_s(options, options.direction))

    def expected_s(self, options: CompressOptions) -> float:
        """Assume a free core."""
        return _expected_s(options, options.direction)

    def beside_s(self, options: CompressOptions) -> float:
        """Return the time of the warm-up, which compresses the corpus if the measured program decompresses it."""
        return _expected_s(options, "compress") if options.direction == "decompress" else 0.1

    def _deadline_s(self, options: CompressOptions, direction: str) -> float:
        """Allow for an emulated CPU, which is about twenty times slower, and for threads that share one CPU."""
        return 60 + 60 * options.threads * _expected_s(options, direction)

    def parse(self, options: CompressOptions, completed: Mapping[str, Completed]) -> TrialResult:
        """Divide the size of the text by the time of the process, which the launcher measures.

        Raises ProgramFailed, or Unparseable if the program did not report the end of its work, or reported another
        size.
        """
        solo = completed["solo"]
        printed = solo.error_text
        if errors := _PBZIP2_ERROR.findall(printed):
            raise ProgramFailed(f"pbzip2: {errors[0][:300]}")
        require_success(solo, options.program)
        (_check_xz if options.program == "xz" else _check_pbzip2)(options, printed)
        return TrialResult((Measurement(SPEED, options.size / solo.duration_s / 1e6),))


def _expected_s(options: CompressOptions, direction: str) -> float:
    rate = _USUAL[options.program, direction == "decompress"]
    return 0.05 + options.size / rate / min(options.threads, 2)


def _arguments(options: CompressOptions, direction: str) -> tuple[str, ...]:
    threads = f"--threads={options.threads}" if options.program == "xz" else f"-p{options.threads}"
    if direction == "decompress":
        return (options.program, "--verbose", "--test", threads, CORPUS + _SUFFIX[options.program])
    blocks = ("--block-size=1MiB",) if options.program == "xz" else ()
    return (options.program, "--verbose", "--keep", "--force", f"-{options.level}", threads, *blocks, CORPUS)


def _check_xz(options: CompressOptions, printed: str) -> None:
    """Check the sizes in the last line: ``FILE: 2761.5 KiB / 8192.0 KiB = 0.337, 1.1 MiB/s, 0:06``."""
    match = _XZ_END.search(printed)
    if match is None or not printed.endswith("\n"):
        raise Unparseable("xz did not report its sizes")
    size, unit = float(match[1]), _UNITS[match[2]]
    if abs(size * unit - options.size) > 0.051 * unit:
        raise Unparseable(f"xz reports a file of {match[1]} {match[2]}, which is not the corpus")


def _check_pbzip2(options: CompressOptions, printed: str) -> None:
    """Check the sizes after compression, or else the passed test, and the wall clock at the end."""
    if _PBZIP2_END.search(printed) is None:
        raise Unparseable("pbzip2 did not report its end")
    if options.direction == "decompress":
        if "\n        Test: OK\n" not in printed:
            raise Unparseable("pbzip2 did not report a passed test")
        return
    sizes = _PBZIP2_SIZES.search(printed)
    if sizes is None or int(sizes[1]) != options.size:
        raise Unparseable("pbzip2 reports a file other than the corpus, or none")


PLUGIN = Compress()
