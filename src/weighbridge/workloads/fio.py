"""fio: reads and writes of files, singly or many in flight, with the latencies of each kind of request."""

from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import Field, model_validator

from weighbridge.model.command import Command, Completed
from weighbridge.model.measurement import Measurement, Metric, Unparseable
from weighbridge.model.options import Options
from weighbridge.model.plugin import Durability
from weighbridge.model.quantity import Size
from weighbridge.model.study import Role
from weighbridge.model.trial import TrialResult, Work
from weighbridge.model.workload import Endpoint, Workload
from weighbridge.workloads import _fio
from weighbridge.workloads._read_again import read_again
from weighbridge.workloads._seconds import WholeSeconds

_RATES = {kind: Metric(f"{kind}s", "1/s", "higher") for kind in ("read", "write", "fsync")}
_THROUGHPUT = {kind: Metric(f"{kind}_throughput", "MiB/s", "higher") for kind in ("read", "write")}
_COMPLETE_LATENCY = "--lat_percentiles=1", "--clat_percentiles=0"
"""The arguments for histograms of the complete latency, from the request until it is done."""
_SLOW_DISK = 4e6
"""The fewest bytes per second that a disk writes, for the data that is still unwritten at a deadline."""
_SECTOR = 512
"""Direct I/O needs multiples of a disk's logical block, which has at least this many bytes."""
_HALF = 50
_IN_FOLDER = 'mkdir -p "$1" && cd "$1" && shift && exec "$@"'
_PART = {"read": "read", "write": "write", "fsync": "sync"}


class FioOptions(Options):
    """Options of fio. Sizes are in bytes, ``duration`` is in seconds.

    ``depth`` is the number of requests of each job that are in flight at the same time. ``psync`` (pread, pwrite)
    allows one, ``libaio`` (Linux AIO) allows more only with direct I/O, and ``io_uring`` always allows more.
    """

    mode: Annotated[
        Literal["randread", "randwrite", "randrw", "read", "write", "rw"],
        Field(description="Random or sequential; reads, writes or both"),
    ] = "randrw"
    file_size: Annotated[Size, Field(ge=512, le=2**44, description="Total size of the files of all jobs")] = 2**30
    block_size: Annotated[Size, Field(ge=512, le=2**30, description="Bytes per request")] = 2**12
    jobs: Annotated[int, Field(ge=1, le=1024, description="Processes, each with its own file")] = 1
    engine: Annotated[Literal["psync", "libaio", "io_uring"], Field(description="I/O engine")] = "psync"
    depth: Annotated[int, Field(ge=1, le=4096, description="Requests in flight per job")] = 1
    direct: Annotated[bool, Field(description="Bypass the page cache (O_DIRECT)")] = False
    read_share: Annotated[int, Field(ge=1, le=99, description="Percentage of reads in a mixed mode")] = _HALF
    fsync: Annotated[
        Literal["never"] | Annotated[int, Field(ge=1, le=10**9)],
        Field(description="Never, or after this many writes of a job"),
    ] = "never"
    sync_mode: Annotated[Literal["fsync", "fdatasync"], Field(description="System call that syncs")] = "fsync"
    extra_flags: Annotated[
        Literal["none", "sync", "dsync"], Field(description="Flags to open the files with: O_SYNC or O_DSYNC")
    ] = "none"
    duration: Annotated[WholeSeconds, Field(ge=1, le=86400, description="Measured time, in whole seconds")] = 10.0
    cold: Annotated[bool, Field(description="Start each trial with empty page caches")] = True

    @property
    def reads(self) -> bool:
        """Return whether the mode reads."""
        return self.mode not in ("randwrite", "write")

    @property
    def writes(self) -> bool:
        """Return whether the mode writes."""
        return self.mode not in ("randread", "read")

    @property
    def kinds(self) -> tuple[str, ...]:
        """Return the kinds of requests that this job makes."""
        uses = {"read": self.reads, "write": self.writes, "fsync": self.fsync != "never"}
        return tuple(kind for kind, used in uses.items() if used)

    @model_validator(mode="after")
    def _check_options(self) -> "FioOptions":
        if self.file_size % (self.jobs * self.block_size):
            raise ValueError(
                f"file_size: {self.file_size} bytes are not a whole number of blocks of {self.block_size} bytes for "
                f"each of {self.jobs} jobs"
            )
        if self.depth > 1 and self.engine == "psync":
            raise ValueError("depth: with engine psync a job has one request at a time; use libaio or io_uring")
        if self.depth > 1 and self.engine == "libaio" and not self.direct:
            raise ValueError("depth: libaio sends one request at a time through the page cache. Try: direct: true")
        if self.direct and self.block_size % _SECTOR:
            raise ValueError(f"direct needs a block_size that is a multiple of {_SECTOR} bytes")
        if not self.writes and (self.fsync != "never" or self.extra_flags != "none"):
            raise ValueError(f"fsync and extra_flags have no effect with mode {self.mode}, which writes nothing")
        if self.read_share != _HALF and not (self.reads and self.writes):
            raise ValueError(f"read_share has no effect with mode {self.mode}: remove it")
        if self.sync_mode == "fdatasync" and self.fsync == "never":
            raise ValueError("sync_mode has no effect with 'fsync: never'. Remove one of them")
        return self


class Fio(Workload):
    """Reads and writes files of random bytes. Each trial requests the same places in the same order.

    The files of a mode, a number and a size are created once in a site, and then overwritten in place. Each kind has
    its own latency, from a request until it is done: an fsync does not count as a part of the writes before it.
    """

    kind = "fio"
    summary = "file reads and writes, singly or many in flight, with the latency of each kind"
    options = FioOptions
    packages = ("fio",)
    overhead_s = 0.5

    def metrics(self, options: FioOptions) -> tuple[Metric, ...]:
        """Return for each kind: requests and MiB (2^20 bytes) per second, mean and percentiles of latency in ms."""
        return (
            *(_RATES[kind] for kind in options.kinds),
            *(_THROUGHPUT[kind] for kind in options.kinds if kind in _THROUGHPUT),
            *(metric for kind in options.kinds for metric in _fio.latency_metrics(f"{kind}_latency")),
        )

    def room(self, options: FioOptions) -> int:
        return options.file_size

    def needs_io_uring(self, options: FioOptions) -> bool:
        return options.engine == "io_uring"

    def durability(self, options: FioOptions) -> Durability | None:
        """Return "synchronous" if a write is synced before the job's next request."""
        if not options.writes:
            return None
        each = options.fsync == 1 and options.depth == 1
        return "synchronous" if each or options.extra_flags != "none" else "asynchronous"

    def prepare(self, options: FioOptions, at: Endpoint) -> Command:
        """Write the files in order, and sync them."""
        argv = ("fio", *_files(options), "--rw=write", "--bs=1M", "--end_fsync=1", "--eta=never")
        command = Command(argv, deadline_s=120 + options.file_size / _SLOW_DISK)
        return command.wrapped("sh", "-c", _IN_FOLDER, "prepare", _folder(options, at))

    def restore(self, options: FioOptions, at: Endpoint) -> Command | None:
        """Write unwritten data to the disk. Weighbridge does that itself before it empties caches."""
        deadline_s = 120 + options.file_size / _SLOW_DISK
        return None if options.cold else Command(("sync", "--file-system", _folder(options, at)), deadline_s)

    def command(self, role: Role, options: FioOptions, at: Endpoint) -> Command:
        both = options.reads and options.writes
        argv = (
            "fio", *_fio.REPORT, *_COMPLETE_LATENCY, *_files(options), f"--directory={_folder(options, at)}",
            f"--rw={options.mode}", f"--bs={options.block_size}", f"--ioengine={options.engine}",
            f"--iodepth={options.depth}",
            f"--direct={int(options.direct)}", f"--invalidate={int(options.cold)}",
            f"--runtime={options.duration:.0f}", "--time_based=1",
            "--allow_file_create=0", "--randrepeat=1", "--randseed=1",
            *((f"--rwmixread={options.read_share}",) if both else ()),
            *((f"--{options.sync_mode}={options.fsync}",) if options.fsync != "never" else ()),
            *((f"--sync={options.extra_flags}",) if options.extra_flags != "none" else ()),
        )  # fmt: skip
        unwritten_s = options.file_size / _SLOW_DISK if options.writes else 0
        return Command(argv, deadline_s=60 + 2 * options.duration + unwritten_s)

    def parse(self, options: FioOptions, completed: Mapping[str, Completed]) -> TrialResult:
        """Read fio's report, with percentiles from its histograms. Raises ProgramFailed or Unparseable.

        The work is its reads and writes.
        """
        job = _fio.jobs(completed["solo"]).get(_fio.JOB, {})
        parts = {kind: _fio.RequestFigures(job, _PART[kind]) for kind in options.kinds}
        runtime_s = max(part.runtime_s for part in parts.values())
        if absent := [kind for kind, part in parts.items() if not part.count]:
            raise Unparseable(f"fio made no {absent[0]} at all: use a longer duration, or fsync after fewer writes")
        if runtime_s <= 0:
            raise Unparseable("fio's report has a run time of zero")
        figures = {_RATES[kind]: part.rate or part.count / runtime_s for kind, part in parts.items()}
        moved = {kind: part for kind, part in parts.items() if kind in _THROUGHPUT}
        figures |= {_THROUGHPUT[kind]: part.bytes_per_s / 2**20 for kind, part in moved.items()}
        histograms = {}
        for kind, part in parts.items():
            values, histograms[f"{kind}_latency"] = part.latencies()
            figures |= dict(zip(_fio.latency_metrics(f"{kind}_latency"), values, strict=True))
        requests = sum(part.count for part in moved.values())
        times = parts["read"].count * options.block_size / options.file_size if "read" in parts else 0.0
        return TrialResult(
            tuple(Measurement(metric, figures[metric]) for metric in self.metrics(options)),
            Work(requests / 1000, "1000_transactions"),
            work_s=runtime_s,
            histograms=histograms,
            flags=read_again(times) if options.cold and not options.direct else (),
        )

    def prepare_s(self, options: FioOptions) -> float:
        """Assume a disk of 100 MB per second."""
        return 0.5 + options.file_size / 1e8

    def generator_threads(self, options: FioOptions) -> int:
        return options.jobs


def _files(options: FioOptions) -> tuple[str, ...]:
    """Return the arguments that define the files. Their bytes are new in each write, or they would compress to a
    tenth."""
    size = options.file_size // options.jobs
    return (
        f"--name={_fio.JOB}", f"--numjobs={options.jobs}", f"--size={size}", "--fallocate=none", "--refill_buffers=1",
    )  # fmt: skip


def _folder(options: FioOptions, at: Endpoint) -> str:
    """Return the folder of the files. Modes share none, because some file systems write to new places, and reads
    change."""
    return f"{at.data}/fio/{options.mode}-{options.jobs}x{options.file_size // options.jobs}"


PLUGIN = Fio()
