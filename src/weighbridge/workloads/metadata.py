"""metadata: creates, stats or deletes many small files with fio, as mdtest does."""

from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import Field

from weighbridge.model.command import Command, Completed
from weighbridge.model.measurement import Measurement, Metric, Unparseable
from weighbridge.model.options import Options
from weighbridge.model.plugin import Durability
from weighbridge.model.quantity import Size
from weighbridge.model.study import Role
from weighbridge.model.trial import TrialResult, Work
from weighbridge.model.workload import Endpoint, Workload
from weighbridge.workloads import _fio

_LATENCY = _fio.latency_metrics("latency")
_SLOW = 20.0
"""The fewest files per second that are created, for deadlines."""
_EMPTY_FOLDER = 'rm -rf "$1" && mkdir -p "$1" && cd "$1" && shift && "$@" && exec sync --file-system .'
_IN_FOLDER = 'mkdir -p "$1" && cd "$1" && shift && "$@" && exec sync --file-system .'


class MetadataOptions(Options):
    """Options of metadata."""

    operation: Annotated[
        Literal["create", "stat", "delete"],
        Field(description="The operation on each file; create opens a new file, and closing it is not timed"),
    ] = "create"
    files: Annotated[int, Field(ge=1, le=10_000_000, description="Files per job, in one folder")] = 10_000
    file_size: Annotated[
        Size, Field(ge=1, le=2**30, description="Size of the files for stat and delete; created files are empty")
    ] = 4096
    jobs: Annotated[int, Field(ge=1, le=1024, description="Processes, each with its own files")] = 1


class Metadata(Workload):
    """Runs one operation on every file, in the order of their names in each job.

    fio stats every file before it starts to measure. So ``stat`` and ``delete`` find their files in the kernel's
    caches, as far as the file system keeps them there. Weighbridge syncs nothing; an NFS export might sync by itself.
    """

    kind = "metadata"
    summary = "creates, stats or deletes many small files: the cost of a file system's metadata"
    options = MetadataOptions
    packages = ("fio",)

    def metrics(self, options: MetadataOptions) -> tuple[Metric, ...]:
        """Return the mean and percentiles of the latency of one operation in ms.

        There is no rate: with many files fio takes longer to choose the next one than the kernel takes to stat it.
        """
        return _LATENCY

    def room(self, options: MetadataOptions) -> int:
        """Count all files in blocks of a page, each with an inode. New files are empty."""
        size = 0 if options.operation == "create" else options.file_size
        return options.jobs * options.files * (-(-size // 4096) * 4096 + 512)

    def inodes(self, options: MetadataOptions) -> int:
        return options.jobs * options.files

    def durability(self, options: MetadataOptions) -> Durability | None:
        """Return the durability of a created or deleted file."""
        return None if options.operation == "stat" else "asynchronous"

    def prepare(self, options: MetadataOptions, at: Endpoint) -> Command | None:
        """Create the files for stat."""
        if options.operation != "stat":
            return None
        return _making(options, at, "filestat").wrapped("sh", "-c", _IN_FOLDER, "prepare", _folder(options, at))

    def restore(self, options: MetadataOptions, at: Endpoint) -> Command | None:
        """Empty the folder for create, or create the files for delete. Both are on the disk before a trial begins."""
        if options.operation == "stat":
            return None
        command = _making(options, at, "filedelete") if options.operation == "delete" else Command(("true",))
        return command.wrapped("sh", "-c", _EMPTY_FOLDER, "restore", _folder(options, at))

    def command(self, role: Role, options: MetadataOptions, at: Endpoint) -> Command:
        files = _files(options, f"file{options.operation}")
        argv = ("fio", *_fio.REPORT, *files, f"--directory={_folder(options, at)}")
        return Command(argv, deadline_s=120 + options.jobs * options.files / _SLOW)

    def expected_s(self, options: MetadataOptions) -> float:
        """Assume 20,000 operations per second, and the same time to stat the files before."""
        return 0.5 + options.files / 10_000

    def parse(self, options: MetadataOptions, completed: Mapping[str, Completed]) -> TrialResult:
        """Read fio's report, with percentiles from its histogram. Raises ProgramFailed or Unparseable."""
        part = _fio.RequestFigures(
            _fio.jobs(completed["solo"]).get(_fio.JOB, {}), "read", "clat_ns"
        )  # fio counts all as reads
        if part.count != (file_count := options.jobs * options.files):
            raise Unparseable(f"fio's report has {part.count} files, not {file_count}")
        values, histogram = part.latencies()
        return TrialResult(
            tuple(Measurement(metric, value) for metric, value in zip(_LATENCY, values, strict=True)),
            Work(part.count / 1000, "1000_transactions"),
            histograms={"latency": histogram},
        )

    def beside_s(self, options: MetadataOptions) -> float:
        """Return the time to create the files for delete, at 20,000 per second."""
        return options.files / 20_000 if options.operation == "delete" else 0.1

    def prepare_s(self, options: MetadataOptions) -> float:
        return options.files / 20_000 if options.operation == "stat" else 0.0

    def generator_threads(self, options: MetadataOptions) -> int:
        return options.jobs


def _files(options: MetadataOptions, engine: str) -> tuple[str, ...]:
    return (
        f"--name={_fio.JOB}", f"--ioengine={engine}", f"--numjobs={options.jobs}", f"--nrfiles={options.files}",
        f"--filesize={options.file_size}", f"--size={options.files * options.file_size}", "--openfiles=1",
        "--fallocate=none",
    )  # fmt: skip


def _making(options: MetadataOptions, at: Endpoint, engine: str) -> Command:
    """Return fio's command that only creates the files."""
    argv = ("fio", *_files(options, engine), "--create_only=1", "--eta=never")
    return Command(argv, deadline_s=120 + options.jobs * options.files / _SLOW)


def _folder(options: MetadataOptions, at: Endpoint) -> str:
    return f"{at.data}/metadata/{options.operation}-{options.jobs}x{options.files}x{options.file_size}"


PLUGIN = Metadata()
