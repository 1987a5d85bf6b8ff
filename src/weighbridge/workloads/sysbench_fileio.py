"""sysbench fileio: reads, writes and fsyncs per second of a set of files."""

from collections.abc import Mapping
from dataclasses import replace

from weighbridge.model.command import Command, Completed
from weighbridge.model.measurement import Measurement, Metric
from weighbridge.model.plugin import Durability
from weighbridge.model.study import Role
from weighbridge.model.trial import TrialResult, Work
from weighbridge.model.workload import Endpoint, Workload
from weighbridge.workloads import _sysbench, _sysbench_latency
from weighbridge.workloads._read_again import read_again
from weighbridge.workloads._sysbench_fileio import SysbenchFileioOptions, files, folder, syncs
from weighbridge.workloads._sysbench_fileio_report import (
    FSYNCS,
    READ_THROUGHPUT,
    READS,
    WRITE_THROUGHPUT,
    WRITES,
    figures,
    must_agree,
)

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
    summary = "reads and writes of files, with fsyncs: what a file system and what is below it do"
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
        made = Command(argv, deadline_s=120 + options.file_size / _SLOW_DISK)
        return made.wrapped("sh", "-c", _IN_FOLDER, "prepare", folder(options, at))

    def restore(self, options: SysbenchFileioOptions, at: Endpoint) -> Command | None:
        """An empty folder for seqwr; else what is not written yet is written, as it is before caches are emptied."""
        deadline_s = 120 + options.file_size / _SLOW_DISK
        if options.mode == "seqwr":
            return Command(("sh", "-c", _EMPTIED, "restore", folder(options, at)), deadline_s)
        return None if options.cold else Command(("sync", "--file-system", folder(options, at)), deadline_s)

    def command(self, role: Role, options: SysbenchFileioOptions, at: Endpoint) -> Command:
        """sysbench in the folder of its files. Its deadline leaves time for the fsyncs at the end."""
        made = _sysbench.command(
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
        made = replace(made, deadline_s=made.deadline_s + unwritten_s)
        return made.wrapped("env", f"--chdir={folder(options, at)}")

    def expected_s(self, options: SysbenchFileioOptions) -> float:
        """Seconds."""
        return options.duration + 0.2

    def parse(self, options: SysbenchFileioOptions, completed: Mapping[str, Completed]) -> TrialResult:
        """What sysbench printed; percentiles from its histogram. Raises ProgramFailed or Unparseable.

        The work is its reads and writes.
        """
        text = _sysbench.report(completed["solo"])
        found = figures(text)
        total_s, events = _sysbench.totals(text)
        must_agree(options, found, total_s, events)
        histogram = _sysbench_latency.checked_latencies(text, events)
        total_ms = _sysbench.figure(text, rf"\n +sum: +{_sysbench.NUMBER}\n", "sum of latencies")
        found |= {MEAN: total_ms / events, P95: histogram.percentile(95), P99: histogram.percentile(99)}
        metrics = self.metrics(options)
        times = found[READS] * total_s * options.block_size / options.file_size
        return TrialResult(
            tuple(Measurement(metric, found[metric]) for metric in metrics),
            Work((found[READS] + found[WRITES]) * total_s / 1000, "1000_transactions"),
            work_s=total_s,
            histograms={"latency": histogram.encoded()} if MEAN in metrics else {},
            flags=read_again(times) if options.cold and options.extra_flags != "direct" else (),
        )

    def generator_threads(self, options: SysbenchFileioOptions) -> int:
        """As many as it is told."""
        return options.threads


PLUGIN = SysbenchFileio()
