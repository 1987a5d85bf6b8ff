"""The workload `mysql-oltp`: sysbench transactions against a MariaDB or MySQL server."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Annotated, Literal

from pydantic import Field

from weighbridge.model.command import Command, Completed, Transport
from weighbridge.model.measurement import Broke, Measurement, Metric
from weighbridge.model.options import Options
from weighbridge.model.plugin import Durability
from weighbridge.model.power_cut import Ledger
from weighbridge.model.quantity import Size
from weighbridge.model.study import Role
from weighbridge.model.trial import TrialResult, Work
from weighbridge.model.workload import Endpoint, Length, Workload
from weighbridge.workloads import _sysbench, _sysbench_latency
from weighbridge.workloads._seconds import WholeSeconds
from weighbridge.workloads._sql_ledger import sql_ledger
from weighbridge.workloads.mysql_oltp import mysql

TRANSACTIONS = Metric("transactions", "transactions/s", "higher")
QUERIES = Metric("queries", "queries/s", "higher")
MEAN = Metric("latency_mean", "ms", "lower")
P95 = Metric("latency_p95", "ms", "lower")
P99 = Metric("latency_p99", "ms", "lower")
ERRORS = Metric("errors", "count", "lower")
RECONNECTS = Metric("reconnects", "count", "lower")

DURABILITIES = {"synced": 1, "written": 2, "buffered": 0}
"""Values of innodb_flush_log_at_trx_commit: each commit is on the disk, or with the kernel, or both once a second."""
_SHORTEST_S, _EVENTS_PER_THREAD = 0.2, 10
_CONNECTED_PER_S = 550
"""The threads that connect per second until the server refuses one."""
_SEED = 1
"""The seed of sysbench's random numbers. By default it is the time, and each trial would use other rows."""
_FEW = 8
"""The threads of the warm-up. An overloaded server must break in the measured run, not before it."""


class MysqlOltpOptions(Options):
    """Options of a mysql-oltp workload. Sizes are in bytes.

    ``durability`` is InnoDB's innodb_flush_log_at_trx_commit: ``synced`` (1, the default of both servers) has every
    commit on the disk, ``written`` (2) with the kernel, which loses up to a second of them with the machine,
    ``buffered`` (0) in the server, which loses as much by itself. Levels of it do not replace one another.

    ``max_connections``: the servers' own default is 151. The study of applications under load ran 1000 threads and
    broke at 2000, so it must have raised it; how far it does not say, and 1500 is between the two.

    With ``prepared_statements`` each thread begins by preparing up to nine a table: 1000 threads with ten tables took
    a two-CPU machine 18 s with MariaDB and 26 s with MySQL, and 2.0 and 3.5 GiB of the server's memory. sysbench
    gives them 30 s, after which the server has broken.
    """

    script: Annotated[
        Literal["oltp_read_write", "oltp_read_only", "oltp_write_only", "oltp_point_select"],
        Field(description="sysbench's script, which defines a transaction"),
    ] = "oltp_read_write"
    threads: Annotated[
        int, Field(ge=1, le=10_000, description="Connections, each with one transaction at a time")
    ] = 10
    duration: Annotated[WholeSeconds, Field(ge=1, le=86400, description="Measured time, in whole seconds")] = 10.0
    count: Annotated[
        int | None,
        Field(ge=1, le=10**9, description="Transactions to run on all threads; they should take about the duration"),
    ] = None
    warm_up: Annotated[WholeSeconds, Field(ge=0, le=3600, description="Warm-up before the measured time")] = 2.0
    tables: Annotated[int, Field(ge=1, le=1000, description="Tables")] = 10
    table_size: Annotated[int, Field(ge=100, le=10**8, description="Rows per table")] = 100_000
    server: Annotated[mysql.Server, Field(description="The server; mysql needs a root filesystem of Debian sid")] = (
        "mariadb"
    )
    max_connections: Annotated[int, Field(ge=10, le=100_000, description="The server's limit of connections")] = 1500
    prepared_statements: Annotated[
        bool,
        Field(description="Use prepared statements; without them each query is parsed again"),
    ] = True
    buffer_pool: Annotated[Size, Field(ge=8 * 2**20, le=2**40, description="InnoDB's cache for the tables")] = 2**27
    durability: Annotated[
        Literal["synced", "written", "buffered"],
        Field(description="Where a commit is stored when the server acknowledges it"),
    ] = "synced"


class MysqlOltp(Workload):
    """A closed loop: a thread starts its next transaction when the last one has ended, which hides stalls.

    Every trial in a site starts with the same rows. They are made there once, at random, and copied before each start
    of the server, which has no binary log. Latency is that of complete transactions, from sysbench's histogram, whose
    values are 1.8% apart. ``errors`` are transactions that were repeated after a deadlock or a refused lock.
    """

    kind = "mysql-oltp"
    summary = "MariaDB or MySQL under sysbench's transactions: rate and latency at a rising number of threads"
    options = MysqlOltpOptions
    packages = mysql.PACKAGES["mariadb"]
    fixed_per_study = ("server",)

    def transports(self, options: MysqlOltpOptions) -> tuple[Transport, ...]:
        return ("tcp",)

    def load(self, options: MysqlOltpOptions) -> str:
        return "threads"

    def metrics(self, options: MysqlOltpOptions) -> tuple[Metric, ...]:
        """Return transactions and queries per second, the latency of a transaction in ms, errors and reconnects."""
        return TRANSACTIONS, QUERIES, MEAN, P95, P99, ERRORS, RECONNECTS

    def packages_for(self, options: MysqlOltpOptions) -> tuple[str, ...]:
        """Return the packages of the server. Only Debian sid has MySQL."""
        return mysql.PACKAGES[options.server]

    def durability(self, options: MysqlOltpOptions) -> Durability | None:
        """Return the durability of a commit, if the script commits."""
        if options.script in ("oltp_read_only", "oltp_point_select"):
            return None
        return "synchronous" if options.durability == "synced" else "asynchronous"

    def room(self, options: MysqlOltpOptions) -> int:
        """Count the template and its copy. A row of sysbench needs 0.25 KiB, an empty server 160 MiB."""
        return 2 * (options.tables * options.table_size * 256 + 160 * 2**20)

    def files(self, role: Role, options: MysqlOltpOptions, at: Endpoint) -> Mapping[str, bytes]:
        """Return the server's settings, or the client's user name if that is a secret."""
        return mysql.server_files(at) if role == "server" else mysql.client_files(at)

    def file_mode(self, options: MysqlOltpOptions, path: str) -> int:
        """Make secrets readable by root alone."""
        return 0o600 if path in mysql.PRIVATE_FILES else 0o644

    def prepare(self, options: MysqlOltpOptions, at: Endpoint) -> Command:
        """Create the tables with a server in the site that listens nowhere."""
        return mysql.prepare(options.server, options.tables, options.table_size, at)

    def restore(self, options: MysqlOltpOptions, at: Endpoint) -> Command:
        return mysql.restore(options.server, options.tables, options.table_size)

    def ledger(self, options: MysqlOltpOptions, at: Endpoint) -> Ledger | None:
        """Use the server's own client. There is no ledger if the script does not commit."""
        if self.durability(options) is None:
            return None
        return sql_ledger(
            "mysql", "--no-defaults", "--batch", "--skip-column-names", "--unbuffered", "--protocol=TCP",
            f"--host={at.address}", f"--port={at.port}", "--user=sbtest", "sbtest",
        )  # fmt: skip

    def command(self, role: Role, options: MysqlOltpOptions, at: Endpoint) -> Command:
        """Start the server, which is ended at once because its data is discarded, or sysbench."""
        if role == "client":
            return _client(options, at, options.threads, options.duration, options.count)
        deadline_s = 120 + sum(
            _client(options, at, options.threads, seconds).deadline_s
            for seconds in (options.duration, options.warm_up)
        )
        argv = mysql.serve(
            options.server,
            at,
            f"--max-connections={options.max_connections}",
            f"--innodb-buffer-pool-size={options.buffer_pool}",
            f"--innodb-flush-log-at-trx-commit={DURABILITIES[options.durability]}",
        )
        return Command(argv, deadline_s, listens=(("tcp", at.port),), stop_signal=mysql.STOP)

    def warm_up(self, options: MysqlOltpOptions, at: Endpoint) -> Command | None:
        """Run a few threads, which fill the buffer pool."""
        if not options.warm_up:
            return None
        return _client(options, at, min(options.threads, _FEW), options.warm_up)

    def expected_s(self, options: MysqlOltpOptions) -> float:
        """Add the time to connect the threads and to prepare their statements, or until the server refuses one."""
        if options.threads > options.max_connections:
            return options.threads / _CONNECTED_PER_S
        statements = 1 + (9 * options.tables if options.prepared_statements else 0)
        return options.duration + self.overhead_s + options.threads * statements / 5000

    def beside_s(self, options: MysqlOltpOptions) -> float:
        """Add the server's start and end."""
        return options.warm_up + 0.6

    def prepare_s(self, options: MysqlOltpOptions) -> float:
        """Return the time for an empty server, and for 100,000 rows per second."""
        return 5 + options.tables * options.table_size / 100_000

    def length(self, options: MysqlOltpOptions) -> Length:
        """Return transactions. Each thread needs several, because the first ones wait for each other."""
        return Length(
            _SHORTEST_S, "count", lambda measured: measured[TRANSACTIONS.name], _EVENTS_PER_THREAD * options.threads
        )

    def parse(self, options: MysqlOltpOptions, completed: Mapping[str, Completed]) -> TrialResult:
        """Read sysbench's report, with percentiles from its histogram. Raises Broke, ProgramFailed or Unparseable.

        The work is the transactions that it counted. Its CPU time includes connecting.
        """
        client = completed["client"]
        if fatal_errors := _sysbench.fatal(client):
            raise mysql.failure(client, fatal_errors, completed["server"], f"{options.threads} threads")
        text = _sysbench.report(client)
        figure_by_metric = figures(text)
        events, errors = _transactions(text), figure_by_metric[ERRORS]
        if events < errors or not events:
            raise Broke(f"{errors:.0f} of {events + errors:.0f} transactions failed at {options.threads} threads")
        histogram = _sysbench_latency.latencies(text, events)
        total = _sysbench.figure(text, rf"\n +sum: +{_sysbench.NUMBER}\n", "sum of latencies")
        figure_by_metric |= {MEAN: total / events, P95: histogram.percentile(95), P99: histogram.percentile(99)}
        return TrialResult(
            tuple(Measurement(metric, figure_by_metric[metric]) for metric in self.metrics(options)),
            Work(events / 1000, "1000_transactions"),
            work_s=_sysbench.totals(text)[0] if options.count is not None else None,
            histograms={"latency": histogram.encoded()},
        )


def figures(text: str) -> dict[Metric, float]:
    """Return the rates and counts in a report of any of sysbench's SQL tests. Raises Unparseable."""
    figure_by_metric: dict[Metric, float] = {}
    for metric, label in ((TRANSACTIONS, "transactions"), (QUERIES, "queries")):
        pattern = rf"\n    {label}: +[0-9]+ +\({_sysbench.NUMBER} per sec\.\)\n"
        figure_by_metric[metric] = _sysbench.figure(text, pattern, f"rate of {label}")
    for metric, label in ((ERRORS, "ignored errors"), (RECONNECTS, "reconnects")):
        pattern = rf"\n    {label}: +([0-9]{{1,15}}) +\([0-9.]+ per sec\.\)\n"
        figure_by_metric[metric] = _sysbench.figure(text, pattern, label)
    return figure_by_metric


def _transactions(text: str) -> float:
    return _sysbench.figure(text, r"\n    transactions: +([0-9]{1,15}) ", "transactions")


def _client(
    options: MysqlOltpOptions, at: Endpoint, threads: int, duration: float, count: int | None = None
) -> Command:
    """Return one run of the script. Its deadline includes sysbench's own 30 s for the threads to connect."""
    command = _sysbench.command(
        options.script,
        threads,
        duration,
        "--db-driver=mysql",
        *mysql.client_options(at),
        f"--tables={options.tables}",
        f"--table-size={options.table_size}",
        f"--db-ps-mode={'auto' if options.prepared_statements else 'disable'}",
        f"--rand-seed={_SEED}",
        *_sysbench_latency.ARGUMENTS,
        events=count,
    )
    return replace(command, deadline_s=command.deadline_s + 60)


PLUGIN = MysqlOltp()
