"""sysbench fileio: reads, writes and fsyncs per second of a set of files."""

from collections.abc import Iterator, Mapping
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
"""sysbench's own."""
_SECTOR = 512
"""Direct I/O takes multiples of a disk's logical block: at least of this."""


def _in_one_sentence(value: object, handler: ValidatorFunctionWrapHandler) -> object:
    try:
        return handler(value)
    except ValidationError:
        raise ValueError(f"must be never, end, all or a number of requests{but_is(value, ())}") from None


Fsync = Annotated[
    Literal["never", "end", "all"] | Annotated[int, Field(ge=1, le=10**9)], WrapValidator(_in_one_sentence)
]
"""When files are synced; a number: after so many requests."""


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
            raise ValueError(f"extra_flags: direct needs a block_size that is a multiple of {_SECTOR} bytes")
        if self.mode != "rndrw" and self.read_write_ratio != _RATIO:
            raise ValueError(f"read_write_ratio is for mode rndrw; {self.mode} does not mix reads and writes")
        if self.io_mode != "async" and self.backlog != _BACKLOG:
            raise ValueError(f"backlog is for io_mode async; with {self.io_mode} a thread has one request at a time")
        if not self.writes:
            self._must_sync_nothing()
        if self.io_mode == "mmap" and (self.extra_flags != "none" or self.sync_mode != "fsync"):
            raise ValueError("io_mode mmap uses msync: extra_flags and sync_mode have no effect, remove them")
        if self.sync_mode == "fdatasync" and self.fsync == "never":
            raise ValueError("sync_mode has no effect with 'fsync: never'. Remove one of them")
        return self

    def _must_sync_nothing(self) -> None:
        sync_options = {
            f"fsync: {self.fsync}": self.fsync not in (_EVERY, "never"),
            "sync_mode: fdatasync": self.sync_mode != "fsync",
            f"extra_flags: {self.extra_flags}": self.extra_flags in ("sync", "dsync"),
        }
        for option, is_set in sync_options.items():
            if is_set:
                raise ValueError(f"{option} has no effect with mode {self.mode}, which writes nothing: remove it")


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


READS = Metric("reads", "1/s", "higher")
WRITES = Metric("writes", "1/s", "higher")
FSYNCS = Metric("fsyncs", "1/s", "higher")
READ_THROUGHPUT = Metric("read_throughput", "MiB/s", "higher")
WRITE_THROUGHPUT = Metric("write_throughput", "MiB/s", "higher")

_ROUNDED = 0.0051
"""How far a figure of two decimals may be from what it was."""


def figures(text: str) -> dict[Metric, float]:
    """The rates of a report, of every kind of request. Raises Unparseable."""
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


def must_agree(
    options: SysbenchFileioOptions, figure_by_metric: Mapping[Metric, float], total_s: float, events: int
) -> None:
    """Raise Unparseable unless the rates are those of the events, and of what was asked for."""
    for metric, rate in ((READ_THROUGHPUT, figure_by_metric[READS]), (WRITE_THROUGHPUT, figure_by_metric[WRITES])):
        mebibytes = rate * options.block_size / 2**20
        if abs(figure_by_metric[metric] - mebibytes) > _ROUNDED * (1 + options.block_size / 2**20):
            raise Unparseable(
                f"sysbench's report has {figure_by_metric[metric]} MiB/s, but its requests are {mebibytes:.2f} MiB/s"
            )
    if any(figure_by_metric[metric] for metric in _not_asked_for(options)):
        rates = ", ".join(f"{figure_by_metric[metric]} {metric.name}/s" for metric in (READS, WRITES, FSYNCS))
        raise Unparseable(f"sysbench's report of {options.mode} with fsync: {options.fsync} has {rates}")
    if options.synced == "all" and abs(figure_by_metric[FSYNCS] - figure_by_metric[WRITES]) > 2 * _ROUNDED:
        raise Unparseable(
            f"sysbench's report has {figure_by_metric[FSYNCS]} fsyncs/s for {figure_by_metric[WRITES]} writes/s, "
            f"not one per write"
        )
    _must_be_all(options, figure_by_metric, total_s, events)


def _not_asked_for(options: SysbenchFileioOptions) -> Iterator[Metric]:
    if not options.reads:
        yield READS
    if not options.writes:
        yield WRITES
    if options.synced == "never":
        yield FSYNCS


def _must_be_all(
    options: SysbenchFileioOptions, figure_by_metric: Mapping[Metric, float], total_s: float, events: int
) -> None:
    """Raise Unparseable unless the rates make the number of events in about the total time.

    An fsync is an event, but those at the end, of every file by each thread, and those within the writes of ``all``.
    sysbench takes its rates over the time until it reports, which is a little longer than the total time.
    """
    rate = (
        figure_by_metric[READS]
        + figure_by_metric[WRITES]
        + (0 if options.synced == "all" else figure_by_metric[FSYNCS])
    )
    counted = events + (options.threads * options.files if options.synced_at_end else 0)
    took_s = counted / rate if rate else 0.0
    least_s, most_s = 0.999 * total_s - 3 * _ROUNDED * total_s / (rate or 1), 1.1 * total_s + 1
    if not events or not least_s <= took_s <= most_s:
        raise Unparseable(f"sysbench's report has {rate:.2f} requests/s, but {counted} in {total_s} s")


MEAN = Metric("latency_mean", "ms", "lower")
P95 = Metric("latency_p95", "ms", "lower")
P99 = Metric("latency_p99", "ms", "lower")

_SLOW_DISK = 4e6
"""Bytes per second that a disk writes at least: what is still to be written at a deadline."""
_IN_FOLDER = 'mkdir -p "$1" && cd "$1" && shift && exec "$@"'
_EMPTIED = 'rm -rf "$1" && mkdir -p "$1"'


class SysbenchFileio(Workload):
    """Reads and writes of files of zeros; each thread begins its next request when the last has ended.

    The files of a mode, a number and a size are made once in a site, and written over in place from then on: only
    seqwr begins each trial without files, and goes on in place with the first once it has made all of them. As they
    hold zeros, a file system that compresses or deduplicates is not measured.
    Latency is that of all requests together: where ``fsync`` is a number its fsyncs are requests too, with ``all``
    they are a part of the writes. With ``io_mode: async`` there is none: sysbench clocks how long it takes to hand a
    request in.
    """

    kind = "sysbench-fileio"
    summary = "file reads and writes with fsync: the file system and the layers below it"
    options = SysbenchFileioOptions
    packages = ("sysbench",)

    def metrics(self, options: SysbenchFileioOptions) -> tuple[Metric, ...]:
        """What the mode does: requests of each kind per second, MiB (2^20 bytes) per second, latency in ms."""
        return (
            *((READS,) if options.reads else ()),
            *((WRITES,) if options.writes else ()),
            *((FSYNCS,) if options.synced not in ("never", "end") else ()),
            *((READ_THROUGHPUT,) if options.reads else ()),
            *((WRITE_THROUGHPUT,) if options.writes else ()),
            *((MEAN, P95, P99) if options.io_mode != "async" else ()),
        )

    def needs_data(self, options: SysbenchFileioOptions) -> bool:
        """Always."""
        return True

    def cold(self, options: SysbenchFileioOptions) -> bool:
        """As the option says."""
        return options.cold

    def room(self, options: SysbenchFileioOptions) -> int:
        """All files."""
        return options.file_size

    def durability(self, options: SysbenchFileioOptions) -> Durability | None:
        """Of a write that sysbench has counted: synchronous where it is synced before the thread's next request.

        With several threads and an fsync after every request, a write may be counted that no fsync has followed yet.
        """
        if not options.writes:
            return None
        each = options.synced == "all" or (options.synced == 1 and options.threads == 1)
        synced = options.extra_flags in ("sync", "dsync") or (each and options.io_mode != "async")
        return "synchronous" if synced else "asynchronous"

    def prepare(self, options: SysbenchFileioOptions, at: Endpoint) -> Command | None:
        """The files, made by sysbench and synced; none for seqwr, which makes its own."""
        if options.mode == "seqwr":
            return None
        argv = ("sysbench", "fileio", *files(options), "prepare")
        command = Command(argv, deadline_s=120 + options.file_size / _SLOW_DISK)
        return command.wrapped("sh", "-c", _IN_FOLDER, "prepare", folder(options, at))

    def restore(self, options: SysbenchFileioOptions, at: Endpoint) -> Command | None:
        """An empty folder for seqwr; else what is not written yet is written, as it is before caches are emptied."""
        deadline_s = 120 + options.file_size / _SLOW_DISK
        if options.mode == "seqwr":
            return Command(("sh", "-c", _EMPTIED, "restore", folder(options, at)), deadline_s)
        return None if options.cold else Command(("sync", "--file-system", folder(options, at)), deadline_s)

    def command(self, role: Role, options: SysbenchFileioOptions, at: Endpoint) -> Command:
        """sysbench in the folder of its files. Its deadline leaves time for the fsyncs at the end."""
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
            *_sysbench_latency.ASKED,
        )
        unwritten_s = options.file_size / _SLOW_DISK if options.writes else 0
        command = replace(command, deadline_s=command.deadline_s + unwritten_s)
        return command.wrapped("env", f"--chdir={folder(options, at)}")

    def expected_s(self, options: SysbenchFileioOptions) -> float:
        """Seconds."""
        return options.duration + 0.2

    def parse(self, options: SysbenchFileioOptions, completed: Mapping[str, Completed]) -> TrialResult:
        """What sysbench printed; percentiles from its histogram. Raises ProgramFailed or Unparseable.

        The work is its reads and writes.
        """
        text = _sysbench.report(completed["solo"])
        figure_by_metric = figures(text)
        total_s, events = _sysbench.totals(text)
        must_agree(options, figure_by_metric, total_s, events)
        histogram = _sysbench_latency.checked_latencies(text, events)
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

    def generator_threads(self, options: SysbenchFileioOptions) -> int:
        """As many as it is told."""
        return options.threads


PLUGIN = SysbenchFileio()
