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
"""The measured columns, each with the metric's name and unit."""
_SHORTEST_S = 0.1
"""The shortest test. redis-benchmark times it in whole milliseconds."""
_FEWEST = 1000
"""The fewest requests of a test: ten are beyond its 99th percentile."""
_SLOWEST = 50
"""The deadline of a client as a multiple of its expected time, for an emulated CPU or a slow link."""
_MOST_CLIENTS = 10_000
"""redis-benchmark watches descriptors up to 10,239. Further clients would connect and never send a request."""
_CONNECT_S = 0.05 / 64
"""The seconds per client: it opens 64 connections, then pauses for 50 ms, before the clock of each test starts."""
_WARM_CLIENTS = 50
"""The most clients of the warm-up, so that a trial opens thousands of connections only once."""
_RESTED = 0.2
"""The share of a generator's pauses from which they are flagged."""
_LOGGED = 64
"""The bytes of a SET in the server's log, without its value."""
_SYNC_S = 0.002
"""The seconds of an fsync, before which a server that always logs does not answer."""


def _split(value: object) -> object:
    return tuple(name.strip() for name in value.split(",")) if isinstance(value, str) else value


def _once_each(names: tuple[str, ...]) -> tuple[str, ...]:
    if len(set(names)) < len(names):
        raise ValueError("the same test is listed twice. Remove one")
    return names


Tests = Annotated[
    tuple[Literal["set", "get"], ...],
    BeforeValidator(_split),
    AfterValidator(_once_each),
    WithJsonSchema({"type": "string", "pattern": "^(set|get)( *, *(set|get))?$", "examples": ["set,get"]}),
]
"""The tests to run, separated by commas, because a list in a study file is a sweep."""


class RedisBenchmarkOptions(redis.RedisServerOptions):
    """Options of a redis-benchmark workload. Sizes are in bytes.

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
            needed = f"clients times pipeline ({self.clients * self.pipeline})"
            raise ValueError(
                f"requests ({self.requests}) must be at least {needed}, or some clients would send nothing"
            )
        if self.threads > self.clients:
            raise ValueError(
                f"threads ({self.threads}) must be at most clients ({self.clients}), or some would have none"
            )
        return self


class RedisBenchmark(Workload):
    """A closed loop: a client sends its next request when it gets the last answer, which hides stalls.

    Latencies have steps of 8 µs (redis-benchmark's histogram). With a pipeline they are those of a complete batch.
    """

    kind = "redis-benchmark"
    summary = "Redis SET and GET: requests per second and latency of many small messages"
    options = RedisBenchmarkOptions
    packages = ("redis-server", "redis-tools")

    def transports(self, options: RedisBenchmarkOptions) -> tuple[Transport, ...]:
        return ("tcp",)

    def load(self, options: RedisBenchmarkOptions) -> str:
        return "clients"

    def metrics(self, options: RedisBenchmarkOptions) -> tuple[Metric, ...]:
        """Return for each test throughput in requests/s, then mean and percentiles of latency in ms (``set_p99``)."""
        return tuple(metric for test in options.tests for metric in _metrics(test).values())

    def needs_data(self, options: RedisBenchmarkOptions) -> bool:
        """Return whether the server logs its writes."""
        return options.appendonly != "no"

    def room(self, options: RedisBenchmarkOptions) -> int:
        """Count the log of a warm-up and of a test. Each SET has its key and its words."""
        return 2 * options.requests * (options.value_size + _LOGGED) if "set" in options.tests else 0

    def restore(self, options: RedisBenchmarkOptions, at: Endpoint) -> Command | None:
        return redis.empty_folder(options)

    def durability(self, options: RedisBenchmarkOptions) -> Durability:
        return redis.durability(options)

    def command(self, role: Role, options: RedisBenchmarkOptions, at: Endpoint) -> Command:
        measured = _client(options, at, options.tests, options.requests, options.clients)
        if role == "client":
            return measured
        deadline_s = 60 + measured.deadline_s + self.warm_up(options, at).deadline_s
        return redis.server(options, at, deadline_s)

    def warm_up(self, options: RedisBenchmarkOptions, at: Endpoint) -> Command:
        """Send a tenth of the requests. It always sets, so that a GET that is measured alone finds values."""
        clients = min(options.clients, _WARM_CLIENTS)
        return _client(options, at, ("set", "get"), max(options.requests // 10, clients * options.pipeline), clients)

    def expected_s(self, options: RedisBenchmarkOptions) -> float:
        """Assume the speed of an ordinary machine."""
        return _expected_s(options, options.tests, options.requests, options.clients)

    def beside_s(self, options: RedisBenchmarkOptions) -> float:
        """Return the time of the warm-up, and of the server's start."""
        clients = min(options.clients, _WARM_CLIENTS)
        return _expected_s(options, ("set", "get"), options.requests // 10, clients)

    def length(self, options: RedisBenchmarkOptions) -> Length | None:
        """Return requests for all its tests. With threads, redis-benchmark checks its clock too rarely."""
        if options.threads > 1:
            return None

        def rate(measured: Mapping[str, float]) -> float:
            return 1 / sum(1 / measured[f"{test}_throughput"] for test in options.tests)

        fewest = max(_FEWEST, options.clients * options.pipeline)  # every client has some
        return Length(_SHORTEST_S * len(options.tests), "requests", rate, fewest, shortens_warm_up=True)

    def parse(self, options: RedisBenchmarkOptions, completed: Mapping[str, Completed]) -> TrialResult:
        """Read one row of the client's CSV per test. Raises Broke, ServerDied, ProgramFailed or Unparseable.

        The work is the requests of all tests. Its CPU time includes connecting. The client is active for the time
        that it measures: it pauses for 50 ms after each 64 clients that it connects.
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
    """Return the metrics of one test by their column."""
    return {
        column: Metric(f"{test}_{name}", unit, "higher" if column == "rps" else "lower")
        for column, (name, unit) in _COLUMNS.items()
    }


def _expected_s(options: RedisBenchmarkOptions, tests: tuple[str, ...], requests: int, clients: int) -> float:
    """Return the seconds of a client: its start, and for each test its connections and its requests."""
    rate = min(65_000 / (1 + clients / 5000), 15_000 * clients)  # thousands of connections are slower: halved at 5000
    usual = 1 / (rate * min(options.pipeline, 12)) + options.value_size / 500e6
    synced = _SYNC_S / (clients * options.pipeline) if options.appendonly == "always" else 0.0  # one for all who wait
    each = {"set": max(usual, synced), "get": usual}
    return 0.03 + sum(clients * _CONNECT_S + requests * each[test] for test in tests)


def _client(
    options: RedisBenchmarkOptions, at: Endpoint, tests: tuple[str, ...], requests: int, clients: int
) -> Command:
    """Return a client with a deadline: redis-benchmark tries a closed port forever."""
    argv = ["-h", at.address, "-p", str(at.port), "--csv", "-t", ",".join(tests)]
    argv += ["-n", str(requests), "-c", str(clients), "-d", str(options.value_size)]
    argv += ["-P", str(options.pipeline)]
    argv += ["-r", str(options.keyspace)] if options.keyspace is not None else []
    argv += ["--threads", str(options.threads)] if options.threads > 1 else []
    return redis.generator(at, argv, deadline_s=20 + _SLOWEST * _expected_s(options, tests, requests, clients))


def _rows(client: Completed) -> dict[str, dict[str, str]]:
    """Return the rows by test. A truncated row is an error, because strict CSV needs every closing quotation mark."""
    try:
        rows = list(csv.DictReader(io.StringIO(client.text, newline=""), strict=True))
    except csv.Error as error:
        raise Unparseable(f"redis-benchmark's output is not complete CSV: {error}") from error
    return {str(row.get("test")).lower(): row for row in rows}


def _measurements(test: str, rows: dict[str, dict[str, str]]) -> list[Measurement]:
    """Return the measurements of one test. For a test under a millisecond redis-benchmark prints ``inf``."""
    row = rows.get(test, {})
    if not row or not all(row.values()):
        raise Unparseable(f"redis-benchmark's output has no complete row for {test.upper()}")
    return [Measurement(metric, _number(row.get(column, ""), column)) for column, metric in _metrics(test).items()]


def _active_s(options: RedisBenchmarkOptions, measurements: tuple[Measurement, ...]) -> float | None:
    """Return the seconds of the tests, or None if one has no rate."""
    rates = {each.metric.name: each.value for each in measurements}
    each = [rates[f"{test}_throughput"] for test in options.tests]
    return sum(options.requests / rate for rate in each) if all(each) else None


def _rest(active_s: float | None, ran_s: float) -> tuple[Flag, ...]:
    """Return a flag if the client paused for so long that its resource use says little about the load."""
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
