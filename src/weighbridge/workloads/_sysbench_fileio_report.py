"""The figures in a report of sysbench fileio, which have to agree with one another and with what was asked for."""

from collections.abc import Iterator, Mapping

from weighbridge.model.measurement import Metric, Unparseable
from weighbridge.workloads import _sysbench
from weighbridge.workloads._sysbench_fileio import SysbenchFileioOptions

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


def must_agree(options: SysbenchFileioOptions, found: Mapping[Metric, float], total_s: float, events: int) -> None:
    """Raise Unparseable unless the rates are those of the events, and of what was asked for."""
    for metric, rate in ((READ_THROUGHPUT, found[READS]), (WRITE_THROUGHPUT, found[WRITES])):
        mebibytes = rate * options.block_size / 2**20
        if abs(found[metric] - mebibytes) > _ROUNDED * (1 + options.block_size / 2**20):
            raise Unparseable(
                f"sysbench's report has {found[metric]} MiB/s, but its requests are {mebibytes:.2f} MiB/s"
            )
    if any(found[metric] for metric in _not_asked_for(options)):
        told = ", ".join(f"{found[metric]} {metric.name}/s" for metric in (READS, WRITES, FSYNCS))
        raise Unparseable(f"sysbench's report of {options.mode} with fsync: {options.fsync} has {told}")
    if options.synced == "all" and abs(found[FSYNCS] - found[WRITES]) > 2 * _ROUNDED:
        raise Unparseable(
            f"sysbench's report has {found[FSYNCS]} fsyncs/s for {found[WRITES]} writes/s, and not one each"
        )
    _must_be_all(options, found, total_s, events)


def _not_asked_for(options: SysbenchFileioOptions) -> Iterator[Metric]:
    if not options.reads:
        yield READS
    if not options.writes:
        yield WRITES
    if options.synced == "never":
        yield FSYNCS


def _must_be_all(options: SysbenchFileioOptions, found: Mapping[Metric, float], total_s: float, events: int) -> None:
    """Raise Unparseable unless the rates make the number of events in about the total time.

    An fsync is an event, but those at the end, of every file by each thread, and those within the writes of ``all``.
    sysbench takes its rates over the time until it reports, which is a little longer than the total time.
    """
    rate = found[READS] + found[WRITES] + (0 if options.synced == "all" else found[FSYNCS])
    counted = events + (options.threads * options.files if options.synced_at_end else 0)
    took_s = counted / rate if rate else 0.0
    least_s, most_s = 0.999 * total_s - 3 * _ROUNDED * total_s / (rate or 1), 1.1 * total_s + 1
    if not events or not least_s <= took_s <= most_s:
        raise Unparseable(f"sysbench's report has {rate:.2f} requests/s, but {counted} in {total_s} s")
