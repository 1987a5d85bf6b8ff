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
"""Clients of the warm-up: a server that is about to break breaks in the measured run, not before it."""
_LONGEST_US = 10**9
_LOGS = "/run/weighbridge-pgbench"
_RUN = """logs=$1; shift; rm -rf "$logs"; mkdir "$logs"
"$@" || exit
awk '$3 != "failed" { times[$3]++ } END { for (us in times) print times[us], us }' "$logs"/* | sort -n -k 2
rm -rf "$logs"; echo 'end of log'
"""
"""Its log of transactions is in memory while it runs; how many took how many microseconds follows its report."""
_LINE = re.compile(r"^([0-9]{1,12}) ([0-9]{1,12})$", re.MULTILINE)
_SETTINGS: Mapping[str, tuple[str, ...]] = {
    "synced": (), "buffered": ("synchronous_commit=off",), "unsafe": ("synchronous_commit=off", "fsync=off"),
}  # fmt: skip

_DURABLE: Mapping[str, Durability] = {"synced": "synchronous", "buffered": "asynchronous", "unsafe": "none"}


class PgbenchOptions(Options):
    """What a study file may say about a pgbench workload. Sizes are in bytes.

    ``durability``: ``synced`` has every commit on the disk, ``buffered`` (synchronous_commit off) loses up to 0.6 s
    of them with the server, ``unsafe`` (fsync off) may lose all of the database with the machine.
    """

    script: Annotated[
        Literal["tpcb-like", "simple-update", "select-only"],
        Field(description="pgbench's script: what a transaction does"),
    ] = "tpcb-like"
    clients: Annotated[
        int, Field(ge=1, le=10_000, description="Connections, each with one transaction at a time")
    ] = 10
    threads: Annotated[int, Field(ge=1, le=1000, description="pgbench's threads for them")] = 2
    duration: Annotated[WholeSeconds, Field(ge=1, le=86400, description="Measured time, in whole seconds")] = 10.0
    warm_up: Annotated[WholeSeconds, Field(ge=0, le=3600, description="Warm-up before it, not counted")] = 2.0
    scale: Annotated[
        int, Field(ge=1, le=100_000, description="Scale factor: 100 000 accounts (about 15 MiB) each")
    ] = 10
    protocol: Annotated[Literal["simple", "extended", "prepared"], Field(description="How queries are sent")] = (
        "simple"
    )
    max_connections: Annotated[int, Field(ge=10, le=10_000, description="The server's limit of connections")] = 1500
    shared_buffers: Annotated[Size, Field(ge=2**20, le=2**40, description="The server's cache for the tables")] = (
        2**27
    )
    durability: Annotated[
        Literal["synced", "buffered", "unsafe"], Field(description="Where a commit is when it is acknowledged")
    ] = "synced"


class Pgbench(Workload):
    """A closed-loop load: a client begins its next transaction when the last has ended, which hides stalls.

    Every trial in a site begins with the same rows: they are made there once, and copied before each start of the
    server. Latency is that of whole transactions, each of which pgbench logs to memory: a line of about 40 bytes.
    ``errors`` are transactions that failed after a serialisation error or a deadlock. The server runs as postgres.
    """

    kind = "pgbench"
    summary = "PostgreSQL under pgbench's transactions: rate and latency over a rising number of clients"
    options = PgbenchOptions
    packages = postgres.PACKAGES

    def transports(self, options: PgbenchOptions) -> tuple[Transport, ...]:
        """TCP alone."""
        return ("tcp",)

    def load(self, options: PgbenchOptions) -> str:
        """Its clients."""
        return "clients"

    def metrics(self, options: PgbenchOptions) -> tuple[Metric, ...]:
        """Transactions per second, latency of one in ms, what failed."""
        return TRANSACTIONS, MEAN, P95, P99, ERRORS

    def durability(self, options: PgbenchOptions) -> Durability | None:
        """Of a commit, where there is one."""
        return None if options.script == "select-only" else _DURABLE[options.durability]

    def needs_data(self, options: PgbenchOptions) -> bool:
        """Always."""
        return True

    def room(self, options: PgbenchOptions) -> int:
        """The template and its copy, and what the server's log of changes grows to (max_wal_size)."""
        return 2 * (options.scale * 16 + 64) * 2**20 + 2**30

    def files(self, role: Role, options: PgbenchOptions, at: Endpoint) -> Mapping[str, bytes]:
        """Who may connect."""
        return {postgres.HBA: postgres.hba(at)} if role == "server" else {}

    def prepare(self, options: PgbenchOptions, at: Endpoint) -> Command:
        """The tables."""
        return postgres.prepare(options.scale, at)

    def restore(self, options: PgbenchOptions, at: Endpoint) -> Command:
        """Every trial begins with the same data."""
        return postgres.restore(options.scale, at)

    def ledger(self, options: PgbenchOptions, at: Endpoint) -> Ledger | None:
        """By psql."""
        if self.durability(options) is None:
            return None
        return sql_ledger(
            "psql", "--no-psqlrc", "--quiet", "--tuples-only", "--no-align", "--set=ON_ERROR_STOP=1",
            f"--host={at.address}", f"--port={at.port}", "--username=postgres", "postgres",
        )  # fmt: skip

    def command(self, role: Role, options: PgbenchOptions, at: Endpoint) -> Command:
        """The server is ended at once, as its data is thrown away; the client is pgbench."""
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
        """A run with a few clients, which fills the server's cache."""
        return _client(options, at, min(options.clients, _FEW), options.warm_up) if options.warm_up else None

    def generator_threads(self, options: PgbenchOptions) -> int:
        """Those of pgbench."""
        return min(options.threads, options.clients)

    def expected_s(self, options: PgbenchOptions) -> float:
        """Seconds, with those in which the clients connect."""
        return options.duration + 0.2 + options.clients / 200

    def length(self, options: PgbenchOptions) -> Length:
        """By its time: data and server of a trial take longer than a second."""
        return by_seconds(1, TRANSACTIONS.name)

    def parse(self, options: PgbenchOptions, completed: Mapping[str, Completed]) -> TrialResult:
        """What pgbench printed; percentiles from its log. Raises Broke, ServerDied, ProgramFailed or Unparseable."""
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
    """Of how many took how many microseconds, kept in nanoseconds as `weighbridge.statistics` merges them."""
    from weighbridge.statistics.histogram import Histogram

    histogram = Histogram(1, 2 * _LONGEST_US * 1000, 3)
    for us, count in latencies.items():
        histogram.record(max(1, min(us, _LONGEST_US)) * 1000, count)
    return histogram


PLUGIN = Pgbench()
