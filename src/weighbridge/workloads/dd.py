"""dd: the speed at which one file is written sequentially, for comparison with the literature."""

import re
from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import Field, model_validator

from weighbridge.model.command import Command, Completed
from weighbridge.model.measurement import Measurement, Metric, Unparseable, require_success
from weighbridge.model.options import Options
from weighbridge.model.plugin import Durability
from weighbridge.model.quantity import Size
from weighbridge.model.study import Role
from weighbridge.model.trial import TrialResult
from weighbridge.model.workload import Endpoint, Workload

THROUGHPUT = Metric("throughput", "MiB/s", "higher")
_SYNCED = {"end": ("conv=fsync",), "each": ("oflag=dsync",), "never": ()}
_SLOW_DISK = 4e6
"""The fewest bytes per second that a disk writes, for the deadline."""
_ERROR = re.compile(r"^dd: ([^\n]+)$", re.MULTILINE)
_LAST_LINE = re.compile(r"^([0-9]{1,18}) bytes .*copied, ([0-9.e+-]{1,20}) s, [^\n]+/s\n\Z", re.MULTILINE)


class DdOptions(Options):
    """Options of dd. Sizes are in bytes."""

    file_size: Annotated[Size, Field(ge=512, le=2**40, description="Bytes to write")] = 2**28
    block_size: Annotated[Size, Field(ge=512, le=2**30, description="Bytes per write")] = 2**20
    sync: Annotated[
        Literal["end", "each", "never"], Field(description="Sync once at the end, after each write, or never")
    ] = "end"

    @model_validator(mode="after")
    def _check_options(self) -> "DdOptions":
        if self.file_size % self.block_size:
            raise ValueError(f"file_size ({self.file_size} B) must be a multiple of block_size ({self.block_size} B)")
        return self


class Dd(Workload):
    """Writes zeros to a new file in each trial. A file system that compresses or deduplicates is not measured."""

    kind = "dd"
    summary = "writes one file sequentially: throughput, for comparison with the literature"
    options = DdOptions
    packages = ("coreutils",)

    def metrics(self, options: DdOptions) -> tuple[Metric, ...]:
        """Return ``throughput``: MiB (2^20 bytes) per second."""
        return (THROUGHPUT,)

    def room(self, options: DdOptions) -> int:
        return options.file_size

    def durability(self, options: DdOptions) -> Durability:
        """Return "synchronous" if each write is synced."""
        return "synchronous" if options.sync == "each" else "asynchronous"

    def restore(self, options: DdOptions, at: Endpoint) -> Command:
        return Command(("rm", "-f", _file(at)), deadline_s=120)

    def command(self, role: Role, options: DdOptions, at: Endpoint) -> Command:
        count = options.file_size // options.block_size
        argv = (
            "dd",
            "if=/dev/zero",
            f"of={_file(at)}",
            f"bs={options.block_size}",
            f"count={count}",
            *_SYNCED[options.sync],
        )
        return Command(("env", "LC_ALL=C", *argv), deadline_s=120 + options.file_size / _SLOW_DISK)

    def expected_s(self, options: DdOptions) -> float:
        """Assume 200 MB per second."""
        return 0.1 + options.file_size / 2e8

    def further_requests(self, options: DdOptions) -> int:
        """Return two for each synced write: the block, and the journal of its file system."""
        return 2 * options.file_size // options.block_size if options.sync == "each" else 0

    def parse(self, options: DdOptions, completed: Mapping[str, Completed]) -> TrialResult:
        """Divide bytes by seconds, both as printed. Raises ProgramFailed or Unparseable."""
        printed = completed["solo"].error_text
        complaint = _ERROR.search(printed)  # the counts are after it
        require_success(completed["solo"], "dd", complaint[1] if complaint else "")
        match = _LAST_LINE.search(printed)
        try:
            size, seconds = (int(match[1]), float(match[2])) if match else (0, 0.0)
        except ValueError:
            size, seconds = 0, 0.0
        if size != options.file_size or seconds <= 0:
            raise Unparseable(f"dd's last line does not report the time for {options.file_size} bytes")
        return TrialResult((Measurement(THROUGHPUT, size / 2**20 / seconds),), work_s=seconds)


def _file(at: Endpoint) -> str:
    return f"{at.data}/dd"


PLUGIN = Dd()
