"""The options of sysbench fileio, what of them fits together, and the arguments that they are."""

from typing import Annotated, Literal

from pydantic import Field, ValidationError, ValidatorFunctionWrapHandler, WrapValidator, model_validator

from weighbridge.model.options import Options
from weighbridge.model.quantity import Size
from weighbridge.model.workload import Endpoint
from weighbridge.workloads._seconds import WholeSeconds

_EVERY, _RATIO, _BACKLOG = 100, 1.5, 128
"""sysbench's own."""
_SECTOR = 512
"""Direct I/O takes multiples of a disk's logical block: at least of this."""


def _in_one_sentence(value: object, handler: ValidatorFunctionWrapHandler) -> object:
    try:
        return handler(value)
    except ValidationError:
        raise ValueError(f"'{value!s:.60}' is not never, end or all, nor a number of requests from 1 on") from None


Fsync = Annotated[
    Literal["never", "end", "all"] | Annotated[int, Field(ge=1, le=10**9)], WrapValidator(_in_one_sentence)
]
"""When files are synced; a number: after so many requests."""


class SysbenchFileioOptions(Options):
    """What a study file may say about sysbench fileio: sizes in bytes, ``duration`` in seconds.

    ``fsync``: ``never``; at the ``end``, within the measured time; ``all``: its file after each write; or a number:
    all files after so many requests and at the end, as sysbench does by default after 100. 1 is not ``all``: as many
    fsyncs as there are files follow each write.
    """

    mode: Annotated[
        Literal["rndrw", "rndrd", "rndwr", "seqrd", "seqwr", "seqrewr"],
        Field(description="Random or sequential; reads, writes or both; seqwr makes new files, seqrewr does not"),
    ] = "rndrw"
    file_size: Annotated[Size, Field(ge=512, le=2**44, description="Of all files together")] = 2**31
    files: Annotated[int, Field(ge=1, le=10_000, description="Files, all of them open")] = 128
    block_size: Annotated[Size, Field(ge=512, le=2**30, description="What a request reads or writes")] = 2**14
    fsync: Annotated[Fsync, Field(description="Never, at the end, after all writes, or after so many requests")] = (
        _EVERY
    )
    sync_mode: Annotated[Literal["fsync", "fdatasync"], Field(description="The system call that does it")] = "fsync"
    io_mode: Annotated[
        Literal["sync", "async", "mmap"],
        Field(description="pread and pwrite, Linux AIO, or memory that is mapped"),
    ] = "sync"
    backlog: Annotated[int, Field(ge=1, le=65536, description="Requests of each thread at a time, with async")] = (
        _BACKLOG
    )
    extra_flags: Annotated[
        Literal["none", "sync", "dsync", "direct"], Field(description="With what the files are opened: O_SYNC, ...")
    ] = "none"
    read_write_ratio: Annotated[float, Field(ge=0.001, le=1000, description="Reads to a write of rndrw")] = _RATIO
    threads: Annotated[int, Field(ge=1, le=1024, description="Worker threads")] = 1
    duration: Annotated[WholeSeconds, Field(ge=1, le=86400, description="How long it runs, in whole seconds")] = 10.0
    cold: Annotated[bool, Field(description="Whether each trial begins with empty page caches")] = True

    @property
    def reads(self) -> bool:
        """Whether the mode reads."""
        return self.mode in ("rndrw", "rndrd", "seqrd")

    @property
    def writes(self) -> bool:
        """Whether the mode writes."""
        return self.mode not in ("rndrd", "seqrd")

    @property
    def synced(self) -> Fsync:
        """When writes are synced: never where there are none."""
        return self.fsync if self.writes else "never"

    @property
    def synced_at_end(self) -> bool:
        """Whether each thread syncs every file at its end."""
        return self.synced not in ("never", "all")

    @model_validator(mode="after")
    def _what_fits_together(self) -> "SysbenchFileioOptions":
        if self.file_size % (self.files * self.block_size):
            raise ValueError(
                f"file_size: {self.file_size} bytes in {self.files} files are not a whole number of blocks of "
                f"{self.block_size} bytes in each file"
            )
        if self.extra_flags == "direct" and self.block_size % _SECTOR:
            raise ValueError(f"extra_flags: direct needs a block_size of a multiple of {_SECTOR} bytes")
        if self.mode != "rndrw" and self.read_write_ratio != _RATIO:
            raise ValueError(f"read_write_ratio is for mode rndrw; {self.mode} does not mix reads and writes")
        if self.io_mode != "async" and self.backlog != _BACKLOG:
            raise ValueError(f"backlog is for io_mode async; with {self.io_mode} a thread has one request at a time")
        if not self.writes:
            self._must_sync_nothing()
        if self.io_mode == "mmap" and (self.extra_flags != "none" or self.sync_mode != "fsync"):
            raise ValueError("io_mode mmap uses msync: neither extra_flags nor sync_mode change anything with it")
        if self.sync_mode == "fdatasync" and self.fsync == "never":
            raise ValueError("sync_mode: fdatasync contradicts fsync: never")
        return self

    def _must_sync_nothing(self) -> None:
        asked = {
            f"fsync: {self.fsync}": self.fsync not in (_EVERY, "never"),
            "sync_mode: fdatasync": self.sync_mode != "fsync",
            f"extra_flags: {self.extra_flags}": self.extra_flags in ("sync", "dsync"),
        }
        for option, given in asked.items():
            if given:
                raise ValueError(f"{option} does nothing with mode {self.mode}, which writes nothing")


def files(options: SysbenchFileioOptions) -> tuple[str, ...]:
    """The arguments that say which files there are."""
    return f"--file-num={options.files}", f"--file-total-size={options.file_size}"


def folder(options: SysbenchFileioOptions, at: Endpoint) -> str:
    """Where the files are. Modes share none: where a file system writes elsewhere, writes change what is read."""
    return f"{at.data}/sysbench-fileio/{options.mode}-{options.files}x{options.file_size // options.files}"


def syncs(options: SysbenchFileioOptions) -> tuple[str, ...]:
    """The arguments that say when files are synced, all of them: sysbench's own defaults sync too."""
    every = 0 if options.synced in ("never", "end", "all") else options.synced
    return (
        f"--file-fsync-freq={every}",
        f"--file-fsync-end={'on' if options.synced_at_end else 'off'}",
        f"--file-fsync-all={'on' if options.synced == 'all' else 'off'}",
        f"--file-fsync-mode={options.sync_mode}",
    )
