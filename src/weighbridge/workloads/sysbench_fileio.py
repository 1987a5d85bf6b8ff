"""sysbench fileio: reads, writes and fsyncs per second of a set of files."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Annotated, Literal

from pydantic import Field, ValidationError, ValidatorFunctionWrapHandler, WrapValidator, model_validator

from weighbridge.model.command import Command, Completed
from weighbridge.model.measurement import Measurement, Metric, Unparseable
from weighbridge.model.options import Options
from weighbridge.model.plugin import Durability
from weighbridge.model.quantity import Size
from weighbridge.model.study import Role
from weighbridge.model.trial import TrialResult, Work
from weighbridge.model.validation import but_is
from weighbridge.model.workload import Endpoint, Workload
from weighbridge.workloads import _sysbench, _sysbench_latency
from weighbridge.workloads._read_again import read_again
from weighbridge.workloads._seconds import WholeSeconds

_EVERY, _RATIO, _BACKLOG = 100, 1.5, 128
"""The defaults of sysbench."""
_SECTOR = 512
"""Direct I/O needs multiples of a disk's logical block, which has at least this many bytes."""


def _in_one_sentence(value: object, handler: ValidatorFunctionWrapHandler) -> object:
    try:
        return handler(value)
    except ValidationError:
        raise ValueError(f"must be never, end, all or a number of requests{but_is(value, ())}") from None


Fsync = Annotated[
    Literal["never", "end", "all"] | Annotated[int, Field(ge=1, le=10**9)], WrapValidator(_in_one_sentence)
]
"""When files are synced. A number means: after this many requests."""


class SysbenchFileioOptions(Options):
    """Options of sysbench fileio. Sizes are in bytes, ``duration`` is in seconds.

    ``fsync``: ``never``; at the ``end``, within the measured time; ``all``: its file after each write; or a number:
    all files after so many requests and at the end, as sysbench does by default after 100. 1 is not ``all``: as many
    fsyncs as there are files follow each write.
    """

    mode: Annotated[
        Literal["rndrw", "rndrd", "rndwr", "seqrd", "seqwr", "seqrewr"],
        Field(description="Random or sequential; reads, writes or both; seqwr makes new files, seqrewr does not"),
    ] = "rndrw"
    file_size: Annotated[Size, Field(ge=512, le=2**44, description="Size of all files together")] = 2**31
    files: Annotated[int, Field(ge=1, le=10_000, description="Files, all of them open")] = 128
    block_size: Annotated[Size, Field(ge=512, le=2**30, description="Bytes per request")] = 2**14
    fsync: Annotated[Fsync, Field(description="Never, at the end, after each write, or after this many requests")] = (
        _EVERY
    )
    sync_mode: Annotated[Literal["fsync", "fdatasync"], Field(description="System call for it")] = "fsync"
    io_mode: Annotated[
        Literal["sync", "async", "mmap"],
        Field(description="pread and pwrite, Linux AIO, or mapped memory"),
    ] = "sync"
    backlog: Annotated[int, Field(ge=1, le=65536, description="Requests in flight per thread, with async")] = _BACKLOG
    extra_flags: Annotated[
        Literal["none", "sync", "dsync", "direct"], Field(description="Flags to open the files with: O_SYNC, ...")
    ] = "none"
    read_write_ratio: Annotated[float, Field(ge=0.001, le=1000, description="Reads per write of rndrw")] = _RATIO
    threads: Annotated[int, Field(ge=1, le=1024, description="Worker threads")] = 1
    duration: Annotated[WholeSeconds, Field(ge=1, le=86400, description="Measured time, in whole seconds")] = 10.0
    cold: Annotated[bool, Field(description="Start each trial with empty page caches")] = True

    @property
    def reads(self) -> bool:
        """Return whether the mode reads."""
        return self.mode in ("rndrw", "rndrd", "seqrd")

    @property
    def writes(self) -> bool:
        """Return whether the mode writes."""
        return self.mode not in ("rndrd", "seqrd")

    @property
    def synced(self) -> Fsync:
        """Return when writes are synced, which is never if there are none."""
        return self.fsync if self.writes else "never"

    @property
    def synced_at_end(self) -> bool:
        """Return whether each thread syncs every file at its end."""
        return self.synced not in ("never", "all")

    @model_validator(mode="after")
    def _check_options(self) -> "SysbenchFileioOptions":
        if self.file_size % (self.files * self.block_size):
            raise ValueError(
                f"file_size: {self.file_size} bytes in {self.files} files are not a whole number of blocks of "
                f"{self.block_size} bytes in each file"
            )
        if self.extra_flags == "direct" and self.block_size % _SECTOR:
            raise ValueError(f"extra_flags: direct needs a block_size that is a multiple of {_SECTOR} bytes")
        if self.mode != "rndrw" and self.read_write_ratio != _RATIO:
            raise ValueError(f"read_write_ratio is for mode rndrw; {self.mode} does not mix reads and writes")
        if self.io_mode != "async" and self.backlog != _BACKLOG:
            raise ValueError(f"backlog is for io_mode async; with {self.io_mode} a thread has one request at a time")
        if not self.writes:
            self._check_no_syncs()
        if self.io_mode == "mmap" and (self.extra_flags != "none" or self.sync_mode != "fsync"):
            raise ValueError("io_mode mmap uses msync: extra_flags and sync_mode have no effect, remove them")
        if self.sync_mode == "fdatasync" and self.fsync == "never":
            raise ValueError("sync_mode has no effect with 'fsync: never'. Remove one of them")
        return self

    def _check_no_syncs(self) -> None:
        sync_options = {
            f"fsync: {self.fsync}": self.fsync not in (_EVERY, "never"),
            "sync_mode: fdatasync": self.sync_mode != "fsync",
            f"extra_flags: {self.extra_flags}": self.extra_flags in ("sync", "dsync"),
        }
        for option, is_set in sync_options.items():
            if is_set:
                raise ValueError(f"{option} has no effect with mode {self.mode}, which writes nothing: remove it")


def files(options: SysbenchFileioOptions) -> tuple[str, ...]:
    """Return the arguments that define the files."""
    return f"--file-num={options.files}", f"--file-total-size={options.file_size}"


def folder(options: SysbenchFileioOptions, at: Endpoint) -> str:
    """Return the folder of the files. Modes share none, because some file systems write to new places, and reads
    change."""
    return f"{at.data}/sysbench-fileio/{options.mode}-{options.files}x{options.file_size // options.files}"


def syncs(options: SysbenchFileioOptions) -> tuple[str, ...]:
    """Return all arguments about syncs, because sysbench's own defaults also sync."""
    every = 0 if options.synced in ("never", "end", "all") else options.synced
    return (
        f"--file-fsync-freq={every}",
        f"--file-fsync-end={'on' if options.synced_at_end else 'off'}",
        f"--file-fsync-all={'on' if options.synced == 'all' else 'off'}",
        f"--file-fsync-mode={options.sync_mode}",
    )


READS = Metric("reads", "1/s", "higher")
WRITES = Metric("writes", "1/s", "higher")
FSYNCS = Metric("fsyncs", "1/s", "higher")
READ_THROUGHPUT = Metric("read_throughput", "MiB/s", "higher")
WRITE_THROUGHPUT = Metric("write_throughput", "MiB/s", "higher")

_ROUNDED = 0.0051
"""The error of a figure with two decimals."""


def figures(text: str) -> dict[Metric, float]:
    """Return the rates of a report for every kind of request. Raises Unparseable."""
    labels = {
        READS: "reads/s",
        WRITES: "writes/s",
        FSYNCS: "fsyncs/s",
        READ_THROUGHPUT: "read, MiB/s",
        WRITE_THROUGHPUT: "written, MiB/s",
    }
    return {
        metric: _sysbench.figure(text, rf"\n    {label}: +{_sysbench.NUMBER}\n", label)
        for metric, label in labels.items()
    }


def require_requested_work(options: SysbenchFileioOptions, figure_by_metric: Mapping[Metric, float]) -> None:
    """Raise Unparseable if the report has requests that were not asked for, or no fsync for each write."""
    unasked = [
        metric
        for metric, asked in ((READS, options.reads), (WRITES, options.writes), (FSYNCS, options.synced != "never"))
        if not asked and figure_by_metric[metric]
    ]
    if unasked:
        rates = ", ".join(f"{figure_by_metric[metric]} {metric.name}/s" for metric in (READS, WRITES, FSYNCS))
        raise Unparseable(f"sysbench's report of {options.mode} with fsync: {options.fsync} has {rates}")
    if options.synced == "all" and abs(figure_by_metric[FSYNCS] - figure_by_metric[WRITES]) > 2 * _ROUNDED:
        raise Unparseable(
            f"sysbench's report has {figure_by_metric[FSYNCS]} fsyncs/s for {figure_by_metric[WRITES]} writes/s, "
            f"not one per write"
        )


MEAN = Metric("latency_mean", "ms", "lower")
P95 = Metric("latency_p95", "ms", "lower")
P99 = Metric("latency_p99", "ms", "lower")

_SLOW_DISK = 4e6
"""The fewest bytes per second that a disk writes, for the data that is still unwritten at a deadline."""
_IN_FOLDER = 'mkdir -p "$1" && cd "$1" && shift && exec "$@"'
_EMPTIED = 'rm -rf "$1" && mkdir -p "$1"'


class SysbenchFileio(Workload):
    """Reads and writes files of zeros. Each thread starts its next request when the last one has ended.

    The files of a mode, a number and a size are created once in a site, and then overwritten in place. Only seqwr
    starts each trial without files. Once it has created all of them, it starts again with the first. A file system
    that compresses or deduplicates zeros is not measured.

    Latency covers all requests together. If ``fsync`` is a number, fsyncs are requests; with ``all`` they are a part
    of the writes. With ``io_mode: async`` there is no latency, because sysbench times only the submission of a
    request.
    """

    kind = "sysbench-fileio"
    summary = "file reads and writes with fsync: the file system and the layers below it"
    options = SysbenchFileioOptions
    packages = ("sysbench",)
    overhead_s = 0.2

    def metrics(self, options: SysbenchFileioOptions) -> tuple[Metric, ...]:
        """Return the mode's requests of each kind per second, MiB (2^20 bytes) per second, and latency in ms."""
        return (
            *((READS,) if options.reads else ()),
            *((WRITES,) if options.writes else ()),
            *((FSYNCS,) if options.synced not in ("never", "end") else ()),
            *((READ_THROUGHPUT,) if options.reads else ()),
            *((WRITE_THROUGHPUT,) if options.writes else ()),
            *((MEAN, P95, P99) if options.io_mode != "async" else ()),
        )

    def room(self, options: SysbenchFileioOptions) -> int:
        return options.file_size

    def durability(self, options: SysbenchFileioOptions) -> Durability | None:
        """Return "synchronous" if a write is synced before the thread's next request.

        With several threads and an fsync after every request, a write can be counted before an fsync follows it.
        """
        if not options.writes:
            return None
        each = options.synced == "all" or (options.synced == 1 and options.threads == 1)
        synced = options.extra_flags in ("sync", "dsync") or (each and options.io_mode != "async")
        return "synchronous" if synced else "asynchronous"

    def prepare(self, options: SysbenchFileioOptions, at: Endpoint) -> Command | None:
        """Create the files with sysbench, and sync them. seqwr creates its own."""
        if options.mode == "seqwr":
            return None
        argv = ("sysbench", "fileio", *files(options), "prepare")
        command = Command(argv, deadline_s=120 + options.file_size / _SLOW_DISK)
        return command.wrapped("sh", "-c", _IN_FOLDER, "prepare", folder(options, at))

    def restore(self, options: SysbenchFileioOptions, at: Endpoint) -> Command | None:
        """Empty the folder for seqwr, or else write unwritten data, as Weighbridge does before it empties caches."""
        deadline_s = 120 + options.file_size / _SLOW_DISK
        if options.mode == "seqwr":
            return Command(("sh", "-c", _EMPTIED, "restore", folder(options, at)), deadline_s)
        return None if options.cold else Command(("sync", "--file-system", folder(options, at)), deadline_s)

    def prepare_s(self, options: SysbenchFileioOptions) -> float:
        """Assume a disk of 100 MB per second."""
        return 0.0 if options.mode == "seqwr" else 0.5 + options.file_size / 1e8

    def further_requests(self, options: SysbenchFileioOptions) -> int:
        """Return the requests in flight, the writes since the last sync, and the last sync of each file."""
        in_flight = options.threads * (options.backlog if options.io_mode == "async" else 1)
        unsynced = options.synced // 2 if isinstance(options.synced, int) else 0
        return in_flight + unsynced + (2 * options.files if options.synced_at_end else 0)

    def command(self, role: Role, options: SysbenchFileioOptions, at: Endpoint) -> Command:
        """Run sysbench in the folder of its files. Its deadline leaves time for the fsyncs at the end."""
        command = _sysbench.command(
            "fileio",
            options.threads,
            options.duration,
            *files(options),
            f"--file-test-mode={options.mode}",
            f"--file-block-size={options.block_size}",
            *syncs(options),
            f"--file-io-mode={options.io_mode}",
            *((f"--file-async-backlog={options.backlog}",) if options.io_mode == "async" else ()),
            f"--file-extra-flags={'' if options.extra_flags == 'none' else options.extra_flags}",
            f"--file-rw-ratio={options.read_write_ratio:.6g}",
            *_sysbench_latency.ARGUMENTS,
        )
        unwritten_s = options.file_size / _SLOW_DISK if options.writes else 0
        command = replace(command, deadline_s=command.deadline_s + unwritten_s)
        return command.wrapped("env", f"--chdir={folder(options, at)}")

    def parse(self, options: SysbenchFileioOptions, completed: Mapping[str, Completed]) -> TrialResult:
        """Read the report, with percentiles from its histogram. Raises ProgramFailed or Unparseable.

        The work is its reads and writes.
        """
        text = _sysbench.report(completed["solo"])
        figure_by_metric = figures(text)
        total_s, events = _sysbench.totals(text)
        require_requested_work(options, figure_by_metric)
        if not events:
            raise Unparseable("sysbench made no request at all")
        histogram = _sysbench_latency.latencies(text, events)
        total_ms = _sysbench.figure(text, rf"\n +sum: +{_sysbench.NUMBER}\n", "sum of latencies")
        figure_by_metric |= {MEAN: total_ms / events, P95: histogram.percentile(95), P99: histogram.percentile(99)}
        metrics = self.metrics(options)
        times = figure_by_metric[READS] * total_s * options.block_size / options.file_size
        return TrialResult(
            tuple(Measurement(metric, figure_by_metric[metric]) for metric in metrics),
            Work((figure_by_metric[READS] + figure_by_metric[WRITES]) * total_s / 1000, "1000_transactions"),
            work_s=total_s,
            histograms={"latency": histogram.encoded()} if MEAN in metrics else {},
            flags=read_again(times) if options.cold and options.extra_flags != "direct" else (),
        )


PLUGIN = SysbenchFileio()
