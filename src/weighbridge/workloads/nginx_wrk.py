"""nginx under wrk: a number of connections, each of which sends its next request when it gets an answer."""

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field, model_validator

from weighbridge.model.command import Command, Completed, Transport
from weighbridge.model.measurement import Broke, Measurement, Metric, ProgramFailed, Unparseable, require_success
from weighbridge.model.quantity import Duration
from weighbridge.model.study import Role
from weighbridge.model.trial import TrialResult, Work
from weighbridge.model.workload import Endpoint, Length, Workload, by_seconds
from weighbridge.workloads import _nginx
from weighbridge.workloads._nginx import NginxOptions
from weighbridge.workloads._seconds import WholeSeconds

REQUESTS = Metric("requests", "requests/s", "higher")
TRANSFER = Metric("transfer", "MB/s", "higher")
LATENCIES = {key: Metric(f"latency_{key}", "ms", "lower") for key in ("mean", "p50", "p95", "p99")}
"""The latencies by their key in wrk's line, without the unit."""
ERRORS = {key: Metric(f"errors_{key}", "count", "lower") for key in ("connect", "read", "write", "timeout", "status")}
"""The errors by their key in wrk's line."""
_SCRIPT = Path(__file__).parent / "nginx" / "wrk.lua"
_UNANSWERED = ("connection refused", "connection timed out", "connection reset")
"""wrk's messages, in any case of letters, if the server does not accept its first connection."""
_SHORTEST_S, _STEP_S = 0.2, 0.1
"""The shortest trial, and its steps: wrk's threads check their time ten times per second."""
_OPENED = 2000
"""The fewest connections that wrk opens per second. Until they are all open, its load is too low."""
_TOO_LATE_S = 5
"""The additional time limit of a wrk that will be interrupted."""
_WARM_UP_EACH = 8
"""The most connections of each thread in a warm-up, which must not break the server."""


class NginxWrkOptions(NginxOptions):
    """Options of nginx under wrk.

    A connection holds one request at a time. wrk shares the connections evenly among its threads.
    """

    connections: Annotated[int, Field(ge=1, le=100_000, description="Load in connections")] = 50
    duration: Annotated[Duration, Field(ge=_SHORTEST_S, le=86400, description="Measured time")] = 10.0
    warm_up: Annotated[
        WholeSeconds, Field(ge=0, le=600, description="Warm-up before the measured time, at a light load")
    ] = 1.0
    threads: Annotated[int, Field(ge=1, le=256, description="Threads of wrk, at most one per connection")] = 2
    timeout: Annotated[
        WholeSeconds, Field(ge=1, le=60, description="Slower responses count as errors, without a latency")
    ] = 2.0

    @property
    def used_threads(self) -> int:
        """Return the number of threads that start. A thread of wrk needs a connection."""
        return min(self.threads, self.connections)

    @model_validator(mode="after")
    def _every_connection_is_opened(self) -> "NginxWrkOptions":
        over = self.connections % self.used_threads
        if over:
            opened = f"{self.connections - over} of {self.connections} connections with {self.threads} threads"
            raise ValueError(f"wrk would open only {opened}. Use a multiple of the threads")
        return self


class NginxWrk(Workload):
    """A closed loop: while the server stalls, it gets no requests, so stalls are hidden.

    wrk 4 tries to correct that. Before it prints latencies, it adds artificial samples as if each connection had sent
    requests at its mean rate (``stats_correct`` in wrk.c), and the mean exceeds connections / rate. This workload
    reads wrk's uncorrected values. `nginx-vegeta` measures latency from the planned send instead.

    Answers slower than ``timeout`` have no latency, and unanswered requests are not counted. The time to open
    connections (seconds, for thousands of them) is a part of the duration.
    """

    kind = "nginx-wrk"
    summary = "nginx and wrk: requests per second and latency of static files over many connections"
    options = NginxWrkOptions
    packages = (*_nginx.PACKAGES, "wrk")

    def transports(self, options: NginxWrkOptions) -> tuple[Transport, ...]:
        return ("tcp",)

    def load(self, options: NginxWrkOptions) -> str:
        return "connections"

    def metrics(self, options: NginxWrkOptions) -> tuple[Metric, ...]:
        """Return requests/s, latencies in ms, MB/s (10^6, with headers), and errors by kind as wrk counts them."""
        return (REQUESTS, *LATENCIES.values(), TRANSFER, *ERRORS.values())

    def command(self, role: Role, options: NginxWrkOptions, at: Endpoint) -> Command:
        """Start nginx, or wrk, which reads its script from standard input."""
        if role == "client":
            return _client(options, at, options.connections, options.duration)
        return _nginx.server(options, at, deadline_s=options.duration + options.warm_up + 240)

    def files(self, role: Role, options: NginxWrkOptions, at: Endpoint) -> Mapping[str, bytes]:
        return _nginx.files(options, at) if role == "server" else {}

    def warm_up(self, options: NginxWrkOptions, at: Endpoint) -> Command | None:
        """Send a light load for the same content."""
        if not options.warm_up:
            return None
        return _client(options, at, min(options.connections, _WARM_UP_EACH * options.used_threads), options.warm_up)

    def generator_threads(self, options: NginxWrkOptions) -> int:
        return options.used_threads

    def length(self, options: NginxWrkOptions) -> Length:
        """Return seconds, which include the time to open the connections."""
        return by_seconds(_SHORTEST_S + options.connections / _OPENED, REQUESTS.name, _STEP_S)

    def parse(self, options: NginxWrkOptions, completed: Mapping[str, Completed]) -> TrialResult:
        """Read the script's line. Raises Broke, ProgramFailed or Unparseable.

        The work is requests, which cost more than a gigabit does.
        """
        line = _line(completed["client"])
        _require_interrupt(options, line)
        _require_server_fault(options, line)
        _nginx.require_workers(completed.get("server"))
        _require_answers(options, line, completed.get("server"))
        seconds = line["duration_us"] / 1e6
        values = {
            REQUESTS: line["requests"] / seconds,
            **{metric: line[f"{key}_us"] / 1e3 for key, metric in LATENCIES.items()},
            TRANSFER: line["bytes"] / 1e6 / seconds,
            **{metric: line[key] for key, metric in ERRORS.items()},
        }
        measurements = tuple(Measurement(metric, values[metric]) for metric in self.metrics(options))
        return TrialResult(measurements, Work(line["requests"] / 1000, "1000_transactions"))


def _client(options: NginxWrkOptions, at: Endpoint, connections: int, seconds: float) -> Command:
    """Return wrk for a time. It counts whole seconds. If it is interrupted, it ends in the same way (wrk.c, main)."""
    is_whole = seconds.is_integer()
    argv: tuple[str, ...] = (
        () if is_whole else ("timeout", "--foreground", "--preserve-status", "--signal=INT", f"{seconds:g}")
    )
    longest = seconds if is_whole else _longest_s(seconds)
    argv += ("wrk", "-s", "/dev/stdin", "-t", str(options.used_threads), "-c", str(connections))
    argv += ("-d", f"{longest:.0f}s", "--timeout", f"{options.timeout:.0f}s", "--latency", _nginx.url(options, at))
    return Command(argv, deadline_s=longest + 60, stdin=_SCRIPT.read_bytes())


def _longest_s(seconds: float) -> int:
    """Return the seconds after which wrk would end without an interrupt."""
    return math.ceil(seconds) + _TOO_LATE_S


def _require_interrupt(options: NginxWrkOptions, line: Mapping[str, float]) -> None:
    """Raise ProgramFailed if wrk ran into its own time limit, because its clock then shows a wrong time."""
    if not options.duration.is_integer() and line["duration_us"] >= 1e6 * _longest_s(options.duration):
        raise ProgramFailed(f"wrk should have ended after {options.duration:g} s, but ran on")


def _line(client: Completed) -> dict[str, float]:
    """Return the numbers of the script's line, which is the last one."""
    last_words = client.last_words
    if client.returncode and last_words.startswith("unable to connect") and last_words.lower().endswith(_UNANSWERED):
        raise Broke(f"the server accepts no connection: wrk was {last_words}")
    require_success(client, "wrk")
    try:
        line: Any = json.loads((client.text.splitlines() or [""])[-1], parse_int=float)
    except (ValueError, RecursionError) as error:
        raise Unparseable(f"wrk's output does not end with a line of JSON: {last_words}") from error
    keys = (
        "requests",
        "duration_us",
        "bytes",
        "ports",
        "out_of_files",
        *(f"{key}_us" for key in LATENCIES),
        *ERRORS,
    )
    for key in keys:
        value = line.get(key) if isinstance(line, dict) else None
        least = -1 if key == "ports" else 0
        if not isinstance(value, float) or not math.isfinite(value) or value < least:
            raise Unparseable(f"wrk's line has no usable {key} (it is {json.dumps(value)[:40]})")
    if not line["duration_us"]:
        raise Unparseable("wrk's line has a run time of zero")
    return {key: line[key] for key in keys}


def _require_server_fault(options: NginxWrkOptions, line: Mapping[str, float]) -> None:
    """Raise ProgramFailed if wrk could not open its connections because it ran out of its own resources."""
    if not line["connect"]:
        return
    failure = f"wrk could not open {line['connect']:.0f} of {options.connections} connections"
    if line["out_of_files"]:
        raise ProgramFailed(f"{failure}, because it ran out of file descriptors (see ulimit -n)")
    if 0 <= line["ports"] < options.connections:
        raise ProgramFailed(f"{failure}. It can use {line['ports']:.0f} ports (net.ipv4.ip_local_port_range)")


def _require_answers(options: NginxWrkOptions, line: Mapping[str, float], server: Completed | None) -> None:
    """Raise Broke if nothing succeeded, if more than half failed, or if some failed and nginx reported a limit.

    A late answer and an answer with an error status count as requests. Other errors do not.
    """
    server_limit = _nginx.limit_met(server)
    failed = sum(line[key] for key in ERRORS)
    attempts = line["requests"] + line["connect"] + line["read"] + line["write"]
    if not line["requests"]:
        why = server_limit or (f"{failed:.0f} errors" if failed else "nginx does not answer")
        raise Broke(f"{why}; no request was answered over {options.connections} connections")
    if (server_limit and failed) or failed > attempts / 2:
        kinds = ", ".join(f"{key} {line[key]:.0f}" for key in ERRORS if line[key])
        raise Broke(
            f"{server_limit}{'; ' if server_limit else ''}{failed / attempts:.0%} of {attempts:.0f} requests failed "
            f"({kinds})"
        )


PLUGIN = NginxWrk()
