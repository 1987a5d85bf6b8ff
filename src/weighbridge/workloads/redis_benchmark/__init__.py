"""The workload `redis-benchmark`: SET and GET against a Redis server, in memory or with a write log on disk."""

import csv
import io
import math
from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import AfterValidator, BeforeValidator, Field, WithJsonSchema, model_validator

from weighbridge.model.command import Command, Completed, Transport
from weighbridge.model.flag import Flag, FlagCode
from weighbridge.model.measurement import Measurement, Metric, Unparseable
from weighbridge.model.plugin import Durability
from weighbridge.model.quantity import Size
from weighbridge.model.study import Role
from weighbridge.model.trial import TrialResult, Work
from weighbridge.model.workload import Endpoint, Length, Workload
from weighbridge.workloads.redis_benchmark import redis

_COLUMNS = {
    "rps": ("throughput", "requests/s"),
    "avg_latency_ms": ("mean", "ms"),
    "p50_latency_ms": ("p50", "ms"),
    "p95_latency_ms": ("p95", "ms"),
    "p99_latency_ms": ("p99", "ms"),
}
"""The columns that are measured, each with the metric's name and unit."""
_SHORTEST_S = 0.1
"""Of each test: redis-benchmark times it in whole milliseconds."""
_FEWEST = 1000
"""Requests of a test: for its 99th percentile ten are beyond it."""
_SLOWEST = 50
"""How many times slower than expected a client may be: an emulated CPU or a slow link, but not for ever."""
_MOST_CLIENTS = 10_000
"""redis-benchmark watches descriptors up to 10 239: clients beyond would be connected, and never send anything."""
_CONNECT_S = 0.05 / 64
"""Seconds for each client: it opens 64 connections and rests 50 ms, before the clock of each test starts."""
_WARM_CLIENTS = 50
"""What the warm-up has at most, so that thousands of connections are opened once in a trial, not twice."""
_RESTED = 0.2
"""Share of its time from which a generator's rest is told."""
_LOGGED = 64
"""Bytes of a SET in the server's log, beside its value."""
_SYNC_S = 0.002
"""Seconds of an fsync, before which a server that logs always answers nobody."""


def _split(value: object) -> object:
    return tuple(name.strip() for name in value.split(",")) if isinstance(value, str) else value


def _once_each(names: tuple[str, ...]) -> tuple[str, ...]:
    if len(set(names)) < len(names):
        raise ValueError("a test is named twice")
    return names


Tests = Annotated[
    tuple[Literal["set", "get"], ...],
    BeforeValidator(_split),
    AfterValidator(_once_each),
    WithJsonSchema({"type": "string", "pattern": "^(set|get)( *, *(set|get))?$", "examples": ["set,get"]}),
]
"""The tests to run, written with commas between them (a list in a study file is a sweep)."""


class RedisBenchmarkOptions(redis.RedisServerOptions):
    """What a study file may say about a redis-benchmark workload. Sizes are in bytes.

    redis-benchmark times a test in whole milliseconds: requests that take under 0.1 s give a coarse throughput. With
    ``threads`` it looks at its clock four times a second: then a test should take many seconds.
    """

    tests: Annotated[Tests, Field(min_length=1, description="set, get, or both (always run in this order)")] = (
        "set",
        "get",
    )
    requests: Annotated[int, Field(ge=_FEWEST, le=10**9, description="Requests per test")] = 100_000
    clients: Annotated[
        int, Field(ge=1, le=_MOST_CLIENTS, description="Load in connections, each with one request at a time")
    ] = 50
    threads: Annotated[int, Field(ge=1, le=64, description="Generator threads")] = 1
    value_size: Annotated[Size, Field(ge=1, le=2**29, description="Bytes per value")] = 3
    pipeline: Annotated[int, Field(ge=1, le=10_000, description="Requests that a connection sends together")] = 1
    keyspace: Annotated[
        int | None, Field(ge=1, le=10**12, description="Number of random keys; default: one fixed key")
    ] = None

    @model_validator(mode="after")
    def _work_for_every_client(self) -> "RedisBenchmarkOptions":
        if self.requests < self.clients * self.pipeline:
            needed = f"{self.clients} clients x pipeline {self.pipeline}"
            raise ValueError(f"{self.requests} requests are fewer than {needed}: some clients would send nothing")
        if self.threads > self.clients:
            raise ValueError(f"{self.threads} threads are more than {self.clients} clients: some would have none")
        return self


class RedisBenchmark(Workload):
    """A closed-loop load: a client sends its next request when the last was answered, which hides stalls.

    Latencies have steps of 8 µs (redis-benchmark's histogram); with a pipeline they are those of a whole batch.
    """

    kind = "redis-benchmark"
    summary = "Redis SET and GET: requests per second and latency of many small messages"
    options = RedisBenchmarkOptions
    packages = ("redis-server", "redis-tools")

    def transports(self, options: RedisBenchmarkOptions) -> tuple[Transport, ...]:
        """TCP alone."""
        return ("tcp",)

    def load(self, options: RedisBenchmarkOptions) -> str:
        """Its clients."""
        return "clients"

    def metrics(self, options: RedisBenchmarkOptions) -> tuple[Metric, ...]:
        """Per test: throughput in requests/s, then mean and percentiles of latency in ms (``set_p99``)."""
        return tuple(metric for test in options.tests for metric in _metrics(test).values())

    def needs_data(self, options: RedisBenchmarkOptions) -> bool:
        """Where the server logs its writes."""
        return options.appendonly != "no"

    def room(self, options: RedisBenchmarkOptions) -> int:
        """The log of a warm-up and of a test, each SET with its key and its words."""
        return 2 * options.requests * (options.value_size + _LOGGED) if "set" in options.tests else 0

    def restore(self, options: RedisBenchmarkOptions, at: Endpoint) -> Command | None:
        """An empty folder for the log."""
        return redis.afresh(options)

    def durability(self, options: RedisBenchmarkOptions) -> Durability:
        """Of a write."""
        return redis.durability(options)

    def command(self, role: Role, options: RedisBenchmarkOptions, at: Endpoint) -> Command:
        """The server takes no snapshots."""
        measured = _client(options, at, options.tests, options.requests, options.clients)
        if role == "client":
            return measured
        deadline_s = 60 + measured.deadline_s + self.warm_up(options, at).deadline_s
        return redis.server(options, at, deadline_s)

    def warm_up(self, options: RedisBenchmarkOptions, at: Endpoint) -> Command:
        """A tenth of the requests. It always sets, so that a GET that is measured alone finds values."""
        clients = min(options.clients, _WARM_CLIENTS)
        return _client(options, at, ("set", "get"), max(options.requests // 10, clients * options.pipeline), clients)

    def generator_threads(self, options: RedisBenchmarkOptions) -> int:
        """As asked for: one, unless more are."""
        return options.threads

    def expected_s(self, options: RedisBenchmarkOptions) -> float:
        """Seconds, from what an ordinary machine does."""
        return _expected_s(options, options.tests, options.requests, options.clients)

    def length(self, options: RedisBenchmarkOptions) -> Length | None:
        """Of all its tests, by the requests of each; with threads it looks at its clock too seldom."""
        if options.threads > 1:
            return None

        def rate(measured: Mapping[str, float]) -> float:
            return 1 / sum(1 / measured[f"{test}_throughput"] for test in options.tests)

        fewest = max(_FEWEST, options.clients * options.pipeline)  # every client has some
        return Length(_SHORTEST_S * len(options.tests), "requests", rate, fewest, shortens_warm_up=True)

    def parse(self, options: RedisBenchmarkOptions, completed: Mapping[str, Completed]) -> TrialResult:
        """One row of the client's CSV per test. Raises Broke, ServerDied, ProgramFailed or Unparseable.

        The work is the requests of all its tests; its CPU time is that of connecting too. It is active for the time
        that it clocks: it rests 50 ms for each 64 clients that it connects.
        """
        client = completed["client"]
        rows = _rows(client) if client.returncode == 0 else {}
        if client.returncode != 0 or (not rows and redis.complaint(client)):
            raise redis.failure(options, options.clients, client, completed["server"])
        measurements = tuple(measured for test in options.tests for measured in _measurements(test, rows))
        active_s = _active_s(options, measurements)
        return TrialResult(
            measurements,
            Work(options.requests * len(options.tests) / 1000, "1000_transactions"),
            active_s=active_s,
            flags=_rest(active_s, client.duration_s),
        )


def _metrics(test: str) -> dict[str, Metric]:
    """The metrics of one test by their column."""
    return {
        column: Metric(f"{test}_{name}", unit, "higher" if column == "rps" else "lower")
        for column, (name, unit) in _COLUMNS.items()
    }


def _expected_s(options: RedisBenchmarkOptions, tests: tuple[str, ...], requests: int, clients: int) -> float:
    """Seconds of a client: the start, and per test its connections and its requests."""
    rate = min(50_000 / (1 + clients / 5000), 15_000 * clients)  # thousands of connections are slower: halved at 5000
    usual = 1 / (rate * min(options.pipeline, 8)) + options.value_size / 500e6
    synced = _SYNC_S / (clients * options.pipeline) if options.appendonly == "always" else 0.0  # one for all who wait
    each = {"set": max(usual, synced), "get": usual}
    return 0.2 + sum(clients * _CONNECT_S + requests * each[test] for test in tests)


def _client(
    options: RedisBenchmarkOptions, at: Endpoint, tests: tuple[str, ...], requests: int, clients: int
) -> Command:
    """A client under a deadline: against a closed port redis-benchmark tries for ever."""
    argv = ["-h", at.address, "-p", str(at.port), "--csv", "-t", ",".join(tests)]
    argv += ["-n", str(requests), "-c", str(clients), "-d", str(options.value_size)]
    argv += ["-P", str(options.pipeline)]
    argv += ["-r", str(options.keyspace)] if options.keyspace is not None else []
    argv += ["--threads", str(options.threads)] if options.threads > 1 else []
    return redis.generator(at, argv, deadline_s=20 + _SLOWEST * _expected_s(options, tests, requests, clients))


def _rows(client: Completed) -> dict[str, dict[str, str]]:
    """The rows by test. A row that was cut off is an error: strict CSV wants every quotation mark closed."""
    try:
        rows = list(csv.DictReader(io.StringIO(client.text, newline=""), strict=True))
    except csv.Error as error:
        raise Unparseable(f"redis-benchmark's output is not complete CSV: {error}") from error
    return {str(row.get("test")).lower(): row for row in rows}


def _measurements(test: str, rows: dict[str, dict[str, str]]) -> list[Measurement]:
    """The measurements of one test. ``inf`` is what redis-benchmark prints of a test shorter than a millisecond."""
    row = rows.get(test, {})
    if not row or not all(row.values()):
        raise Unparseable(f"redis-benchmark's output has no complete row for {test.upper()}")
    return [Measurement(metric, _number(row.get(column, ""), column)) for column, metric in _metrics(test).items()]


def _active_s(options: RedisBenchmarkOptions, measurements: tuple[Measurement, ...]) -> float | None:
    """The seconds that the tests took; None where one tells no rate."""
    rates = {each.metric.name: each.value for each in measurements}
    each = [rates[f"{test}_throughput"] for test in options.tests]
    return sum(options.requests / rate for rate in each) if all(each) else None


def _rest(active_s: float | None, ran_s: float) -> tuple[Flag, ...]:
    """A flag where it rested for so long that what was used over its time says little of the load."""
    rested = 1 - (active_s or ran_s) / ran_s if ran_s > 0 else 0.0
    return (Flag(FlagCode.GENERATOR_RESTED, figures={"share": rested}),) if rested > _RESTED else ()


def _number(cell: str, column: str) -> float:
    try:
        value = float(cell)
    except ValueError:
        value = math.nan
    if not math.isfinite(value) or value < 0:
        raise Unparseable(f"redis-benchmark's {column} is '{cell}', not a number")
    return value


PLUGIN = RedisBenchmark()
