"""bonnie: bonnie++, one pass over large files and many small ones, for comparison with the literature."""

from collections.abc import Mapping
from typing import Annotated

from pydantic import Field, model_validator

from weighbridge.model.command import Command, Completed
from weighbridge.model.measurement import Measurement, Metric, Unparseable, require_success
from weighbridge.model.options import Options
from weighbridge.model.plugin import Durability
from weighbridge.model.quantity import Size
from weighbridge.model.study import Role
from weighbridge.model.trial import TrialResult
from weighbridge.model.workload import Endpoint, Workload

_LARGE = {
    11: Metric("block_write", "MiB/s", "higher"), 13: Metric("rewrite", "MiB/s", "higher"),
    17: Metric("block_read", "MiB/s", "higher"), 19: Metric("seeks", "1/s", "higher"),
}  # fmt: skip
_SMALL = {
    26: Metric("small_created", "1/s", "higher"), 28: Metric("small_read", "1/s", "higher"),
    30: Metric("small_deleted", "1/s", "higher"), 32: Metric("small_random_created", "1/s", "higher"),
    34: Metric("small_random_read", "1/s", "higher"), 36: Metric("small_random_deleted", "1/s", "higher"),
}  # fmt: skip
"""The fields of a line of format 1.98 (bon_csv2html(1)). Rates of large files are in KiB per second there."""
_FIELDS, _IDENTITY = 50, (0, 5, 21)
"""The number of fields, and the fields with the format, the size of the files and the number of small ones."""
_TOO_FAST = "+++++"
_MIB, _GIB = 2**20, 2**30
_SLOW_DISK, _SLOW_FILES = 4e6, 20.0
"""The fewest bytes per second that a disk writes, and the fewest small files per second, for the deadline."""
_RESTORE = 'rm -rf "$1" && mkdir -p "$1" && exec sync --file-system "$1"'


class BonnieOptions(Options):
    """Options of bonnie++. Sizes are in bytes."""

    file_size: Annotated[Size, Field(ge=_MIB, le=2**44, description="Size of the large files, in whole MiB")] = (
        2 * _GIB
    )
    block_size: Annotated[Size, Field(ge=256, le=_MIB, description="Size of each read and write: a power of two")] = (
        8192
    )
    files: Annotated[int, Field(ge=0, le=10_000, description="Small files, in units of 1024; 0 means none")] = 16
    sync_small: Annotated[bool, Field(description="Sync small files and the writes of the seek test (-b)")] = False
    cold: Annotated[bool, Field(description="Start each trial with empty page caches")] = True

    @model_validator(mode="after")
    def _check_options(self) -> "BonnieOptions":
        if self.file_size % _MIB:
            raise ValueError(f"file_size: {self.file_size} bytes are not a whole number of MiB")
        if self.block_size & (self.block_size - 1):
            raise ValueError(f"block_size: {self.block_size} is not a power of two")
        return self


class Bonnie(Workload):
    """Runs each part once: write, rewrite and read large files, seek in them, then create, read and delete small
    ones.

    bonnie++ prints no figure for a part that ran for less than half a second. Only the first part starts with empty
    page caches: choose a ``file_size`` of at least twice the memory of the site, and of an NFS server.
    """

    kind = "bonnie"
    summary = "bonnie++: large files and many small files, each test once, for comparison with the literature"
    options = BonnieOptions
    packages = ("bonnie++",)
    in_phases = True

    def metrics(self, options: BonnieOptions) -> tuple[Metric, ...]:
        """Return MiB (2^20 bytes) and seeks per second of large files, and small files per second."""
        return (*_LARGE.values(), *(_SMALL.values() if options.files else ()))

    def room(self, options: BonnieOptions) -> int:
        """Count the large files, and an inode for each small file, which is empty."""
        return options.file_size + options.files * 1024 * 512

    def inodes(self, options: BonnieOptions) -> int:
        return options.files * 1024

    def durability(self, options: BonnieOptions) -> Durability:
        """Return "asynchronous": even with ``-b`` large files are synced only at their end."""
        return "asynchronous"

    def restore(self, options: BonnieOptions, at: Endpoint) -> Command:
        return Command(("sh", "-c", _RESTORE, "restore", _folder(at)), deadline_s=300)

    def command(self, role: Role, options: BonnieOptions, at: Endpoint) -> Command:
        """Run bonnie++ without its tests of single characters and of memory. Its random places are the same in each
        trial."""
        argv = (
            "bonnie++", "-d", _folder(at), "-s", f"{options.file_size // _MIB}M:{options.block_size}", "-r", "0",
            "-n", str(options.files), "-f", "-q", "-u", "root", "-m", "weighbridge", "-z", "1",
            *(("-b",) if options.sync_small else ()),
        )  # fmt: skip
        large_s = 4 * options.file_size / (_SLOW_DISK / (10 if options.sync_small else 1))
        return Command(argv, deadline_s=300 + large_s + 6 * 1024 * options.files / _SLOW_FILES)

    def expected_s(self, options: BonnieOptions) -> float:
        """Assume 200 MB and 5,000 small files per second."""
        return 2 + 3 * options.file_size / 2e8 + 1.2 * options.files

    def parse(self, options: BonnieOptions, completed: Mapping[str, Completed]) -> TrialResult:
        """Read the figures of the line. Raises ProgramFailed, or Unparseable, also if there is no figure at all."""
        solo = completed["solo"]
        require_success(solo, "bonnie++", "; ".join(solo.error_text.strip().splitlines())[:300])
        fields = solo.text.removesuffix("\n").split(",")
        size = options.file_size
        size_text = f"{size // _GIB}G" if size % _GIB == 0 else f"{size // _MIB}M"
        about = ["1.98", size_text, str(options.files or "")]
        if not solo.text.endswith("\n") or len(fields) != _FIELDS or [fields[at] for at in _IDENTITY] != about:
            raise Unparseable(
                f"bonnie++ did not print a line of format 1.98 about {size_text} and {options.files} files"
            )
        columns = _LARGE | (_SMALL if options.files else {})
        figures = {metric: _figure(fields[at], metric) for at, metric in columns.items()}
        measurements = tuple(Measurement(metric, value) for metric, value in figures.items() if value is not None)
        if not measurements:
            raise Unparseable("each part took under 0.5 s, too short for bonnie++: use more")
        return TrialResult(measurements)


def _figure(field: str, metric: Metric) -> float | None:
    if field == _TOO_FAST:
        return None
    if not field.isascii() or not field.replace(".", "", 1).isdecimal() or len(field) > 15 or not float(field):
        raise Unparseable(f"bonnie++ has {field[:40]!r} for {metric.name}")
    return float(field) / (1024 if metric.unit == "MiB/s" else 1)


def _folder(at: Endpoint) -> str:
    return f"{at.data}/bonnie"


PLUGIN = Bonnie()
