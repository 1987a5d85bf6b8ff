"""The workload `pgbench`: transactions against a PostgreSQL server."""

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field

from weighbridge.model.command import Command, Completed, Transport
from weighbridge.model.measurement import Measurement, Metric, Unparseable
from weighbridge.model.options import Options
from weighbridge.model.plugin import Durability
from weighbridge.model.power_cut import Ledger
from weighbridge.model.quantity import Size
from weighbridge.model.study import Role
from weighbridge.model.trial import TrialResult, Work
from weighbridge.model.workload import Endpoint, Length, Workload, by_seconds
from weighbridge.workloads._seconds import WholeSeconds
from weighbridge.workloads._sql_ledger import sql_ledger
from weighbridge.workloads.pgbench import postgres

if TYPE_CHECKING:
    from weighbridge.statistics.histogram import Histogram

TRANSACTIONS = Metric("transactions", "transactions/s", "higher")
MEAN = Metric("latency_mean", "ms", "lower")
P95 = Metric("latency_p95", "ms", "lower")
P99 = Metric("latency_p99", "ms", "lower")
ERRORS = Metric("errors", "count", "lower")
_FEW = 8
"""The clients of the warm-up. An overloaded server must break in the measured run, not before it."""
_LONGEST_US = 10**9
_LOGS = "/run/weighbridge-pgbench"
_RUN = """logs=$1; shift; rm -rf "$logs"; mkdir "$logs"
"$@" || exit
awk '$3 != "failed" { times[$3]++ } END { for (us in times) print times[us], us }' "$logs"/* | sort -n -k 2
rm -rf "$logs"; echo 'end of log'
"""
"""pgbench's log of transactions stays in memory. Pairs of a number and its microseconds follow the report."""
_LINE = re.compile(r"^([0-9]{1,12}) ([0-9]{1,12})$", re.MULTILINE)
_SETTINGS: Mapping[str, tuple[str, ...]] = {
    "synced": (), "buffered": ("synchronous_commit=off",), "unsafe": ("synchronous_commit=off", "fsync=off"),
}  # fmt: skip

_DURABLE: Mapping[str, Durability] = {"synced": "synchronous", "buffered": "asynchronous", "unsafe": "none"}


class PgbenchOptions(Options):
    """Options of a pgbench workload. Sizes are in bytes.

    ``durability``: with ``synced`` every commit is on disk. With ``buffered`` (synchronous_commit off) a crash of
    the server loses up to 0.6 s of commits. With ``unsafe`` (fsync off) a crash of the machine can lose the database.
    """

    script: Annotated[
        Literal["tpcb-like", "simple-update", "select-only"],
        Field(description="pgbench's script, which defines a transaction"),
    ] = "tpcb-like"
    clients: Annotated[
        int, Field(ge=1, le=10_000, description="Connections, each with one transaction at a time")
    ] = 10
    threads: Annotated[int, Field(ge=1, le=1000, description="pgbench's threads for them")] = 2
    duration: Annotated[WholeSeconds, Field(ge=1, le=86400, description="Measured time, in whole seconds")] = 10.0
    warm_up: Annotated[WholeSeconds, Field(ge=0, le=3600, description="Warm-up before it, not counted")] = 2.0
    scale: Annotated[
        int, Field(ge=1, le=100_000, description="Scale factor; each step adds 100,000 accounts (about 15 MiB)")
    ] = 10
    protocol: Annotated[Literal["simple", "extended", "prepared"], Field(description="How queries are sent")] = (
        "simple"
    )
    max_connections: Annotated[int, Field(ge=10, le=10_000, description="The server's limit of connections")] = 1500
    shared_buffers: Annotated[Size, Field(ge=2**20, le=2**40, description="The server's cache for the tables")] = (
        2**27
    )
    durability: Annotated[
        Literal["synced", "buffered", "unsafe"],
        Field(description="Where a commit is stored when the server acknowledges it"),
    ] = "synced"


class Pgbench(Workload):
    """A closed loop: a client starts its next transaction when the last one has ended, which hides stalls.

    Every trial in a site starts with the same rows. They are made there once, and copied before each start of the
    server. Latency is that of complete transactions, which pgbench logs in memory, with about 40 bytes each.
    ``errors`` are transactions that failed after a serialisation error or a deadlock. The server runs as postgres.
    """

    kind = "pgbench"
    summary = "PostgreSQL under pgbench's transactions: rate and latency over a rising number of clients"
    options = PgbenchOptions
    packages = postgres.PACKAGES

    def transports(self, options: PgbenchOptions) -> tuple[Transport, ...]:
        return ("tcp",)

    def load(self, options: PgbenchOptions) -> str:
        return "clients"

    def metrics(self, options: PgbenchOptions) -> tuple[Metric, ...]:
        """Return transactions per second, the latency of one in ms, and the failed ones."""
        return TRANSACTIONS, MEAN, P95, P99, ERRORS

    def durability(self, options: PgbenchOptions) -> Durability | None:
        """Return the durability of a commit, if the script commits."""
        return None if options.script == "select-only" else _DURABLE[options.durability]

    def room(self, options: PgbenchOptions) -> int:
        """Count the template, its copy, and the largest write-ahead log (max_wal_size)."""
        return 2 * (options.scale * 16 + 64) * 2**20 + 2**30

    def files(self, role: Role, options: PgbenchOptions, at: Endpoint) -> Mapping[str, bytes]:
        """Return the list of hosts that can connect."""
        return {postgres.HBA: postgres.hba(at)} if role == "server" else {}

    def prepare(self, options: PgbenchOptions, at: Endpoint) -> Command:
        return postgres.prepare(options.scale, at)

    def restore(self, options: PgbenchOptions, at: Endpoint) -> Command:
        return postgres.restore(options.scale, at)

    def ledger(self, options: PgbenchOptions, at: Endpoint) -> Ledger | None:
        """Use psql."""
        if self.durability(options) is None:
            return None
        return sql_ledger(
            "psql", "--no-psqlrc", "--quiet", "--tuples-only", "--no-align", "--set=ON_ERROR_STOP=1",
            f"--host={at.address}", f"--port={at.port}", "--username=postgres", "postgres",
        )  # fmt: skip

    def command(self, role: Role, options: PgbenchOptions, at: Endpoint) -> Command:
        """Start the server, which is ended at once because its data is discarded, or pgbench."""
        if role == "client":
            return _client(options, at, options.clients, options.duration)
        deadline_s = 240 + 2 * (options.duration + options.warm_up) + 120
        argv = postgres.serve(
            at,
            f"max_connections={options.max_connections}",
            f"shared_buffers={options.shared_buffers // 1024}kB",
            *_SETTINGS[options.durability],
        )
        return Command(argv, deadline_s, listens=(("tcp", at.port),), says=postgres.READY, stop_signal=postgres.STOP)

    def warm_up(self, options: PgbenchOptions, at: Endpoint) -> Command | None:
        """Run a few clients, which fill the server's cache."""
        return _client(options, at, min(options.clients, _FEW), options.warm_up) if options.warm_up else None

    def generator_threads(self, options: PgbenchOptions) -> int:
        return min(options.threads, options.clients)

    def expected_s(self, options: PgbenchOptions) -> float:
        """Add the time in which the clients connect."""
        return options.duration + 0.2 + options.clients / 200

    def beside_s(self, options: PgbenchOptions) -> float:
        """Add the copy of the data and the server's start and end."""
        return options.warm_up + 1

    def prepare_s(self, options: PgbenchOptions) -> float:
        """Return the time for an empty server, and for the rows of the scale."""
        return 4 + 0.3 * options.scale

    def length(self, options: PgbenchOptions) -> Length:
        """Return seconds, because the data and the server of a trial need longer than one."""
        return by_seconds(1, TRANSACTIONS.name)

    def parse(self, options: PgbenchOptions, completed: Mapping[str, Completed]) -> TrialResult:
        """Read the report, with percentiles from the log. Raises Broke, ServerDied, ProgramFailed or Unparseable."""
        client = completed["client"]
        if client.returncode != 0:
            raise postgres.failure(client, completed["server"], f"{options.clients} clients")
        text = client.text
        processed, failed = (int(_figure(text, rf"^number of {what}: ([0-9]{{1,15}})\b", what)) for what in _COUNTS)
        rate = _figure(text, r"^tps = ([0-9]{1,12}\.[0-9]+) \(without initial connection time\)$", "rate")
        latencies = {int(us): int(count) for count, us in _LINE.findall(text)}
        if (logged := sum(latencies.values())) != processed or not processed or not text.endswith("\nend of log\n"):
            raise Unparseable(f"pgbench's report has {processed} transactions, and its log {logged}")
        histogram, total_us = _histogram(latencies), sum(us * count for us, count in latencies.items())
        figures = {
            TRANSACTIONS: rate, MEAN: total_us / processed / 1000, ERRORS: float(failed),
            **{metric: histogram.percentile(p) / 1e6 for metric, p in ((P95, 95), (P99, 99))},
        }  # fmt: skip
        return TrialResult(
            tuple(Measurement(metric, figures[metric]) for metric in self.metrics(options)),
            Work(processed / 1000, "1000_transactions"),
            histograms={"latency": histogram.encode()},
        )


_COUNTS = ("transactions actually processed", "failed transactions")


def _client(options: PgbenchOptions, at: Endpoint, clients: int, duration: float) -> Command:
    argv = (
        "pgbench", f"--host={at.address}", f"--port={at.port}", "--username=postgres", "--no-vacuum",
        f"--client={clients}", f"--jobs={min(options.threads, clients)}", f"--time={duration:.0f}",
        f"--builtin={options.script}", f"--protocol={options.protocol}", "--log", f"--log-prefix={_LOGS}/log",
        "postgres",
    )  # fmt: skip
    deadline_s = 2 * duration + 120
    return Command(("sh", "-c", _RUN, "pgbench", _LOGS, *argv), deadline_s, env=postgres.client_env(at))


def _figure(text: str, pattern: str, what: str) -> float:
    match = re.search(pattern, text, re.MULTILINE)
    if match is None:
        raise Unparseable(f"pgbench's report has no {what}")
    return float(match[1])


def _histogram(latencies: Mapping[int, int]) -> "Histogram":
    """Return a histogram in nanoseconds of counts by microseconds, which `weighbridge.statistics` merges."""
    from weighbridge.statistics.histogram import Histogram

    histogram = Histogram(1, 2 * _LONGEST_US * 1000, 3)
    for us, count in latencies.items():
        histogram.record(max(1, min(us, _LONGEST_US)) * 1000, count)
    return histogram


PLUGIN = Pgbench()
