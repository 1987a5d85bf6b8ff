"""netperf: transactions per second and their latency, or the throughput of one stream."""

import math
import re
from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import Field, model_validator

from weighbridge.model.command import Command, Completed, Transport
from weighbridge.model.flag import Flag, FlagCode
from weighbridge.model.measurement import Measurement, Metric, ProgramFailed, Unparseable, require_success
from weighbridge.model.options import Options
from weighbridge.model.quantity import PacketSize
from weighbridge.model.study import Role
from weighbridge.model.trial import TrialResult
from weighbridge.model.workload import Endpoint, Length, Workload, by_seconds
from weighbridge.workloads._packet import (
    LARGEST_PAYLOAD,
    USUAL_PAYLOAD,
    PacketBytes,
    check_size,
    known_bytes,
    resolved,
)
from weighbridge.workloads._seconds import WholeSeconds

RATE = Metric("rate", "1/s", "higher")
THROUGHPUT = Metric("throughput", "Mbit/s", "higher")
ONE_WAY_LATENCY = Metric("one_way_latency", "ms", "lower")
"""Half of the time of one transaction, 1 / rate / 2, as the study of Docker networks published it."""
LATENCIES = {
    "MEAN_LATENCY": Metric("latency_mean", "us", "lower"),
    "P50_LATENCY": Metric("latency_p50", "us", "lower"),
    "P90_LATENCY": Metric("latency_p90", "us", "lower"),
    "P99_LATENCY": Metric("latency_p99", "us", "lower"),
    "STDDEV_LATENCY": Metric("latency_stddev", "us", "lower"),
}
"""netperf's selectors of round-trip latency in microseconds. The percentiles are whole numbers."""

_TRANSACTIONS = ("TRANSACTION_RATE", *LATENCIES, "ELAPSED_TIME")
_CONNECTIONS = ("TRANSACTION_RATE", *LATENCIES, "MAX_LATENCY", "ELAPSED_TIME")
_STREAM = ("REMOTE_RECV_THROUGHPUT", "LOCAL_SEND_THROUGHPUT", "THROUGHPUT_UNITS", "ELAPSED_TIME")
_SHORTEST_S, _FEWEST = 0.1, 1000
"""The shortest trial in seconds and transactions. A tenth of them are beyond the 90th percentile."""
_BUSY = 0.95
"""The share of the time that transactions must fill. They fill 99% of a healthy run."""
_SYN_AGAIN_S = 0.9
"""A transaction this long waited for a lost connection request, which is repeated after 1 s."""


class NetperfOptions(Options):
    """Options of a netperf workload. Sizes are in bytes; UDP tests also accept ``mtu``."""

    test: Annotated[
        Literal["TCP_RR", "TCP_CRR", "UDP_RR", "TCP_STREAM", "UDP_STREAM"],
        Field(
            description="Requests and responses, sent singly (CRR opens a connection for each), "
            "or a stream to the server"
        ),
    ] = "TCP_RR"
    duration: Annotated[WholeSeconds, Field(ge=1, le=86400, description="Measured time, in whole seconds")] = 10.0
    count: Annotated[
        int | None,
        Field(
            ge=1, le=10**9, description="Transactions to run (TCP_RR, TCP_CRR); they should take about the duration"
        ),
    ] = None
    warm_up: Annotated[WholeSeconds, Field(ge=0, le=3600, description="Warm-up before the measured time")] = 1.0
    request_size: Annotated[PacketSize | None, Field(description="Bytes per request (RR; 1 B by default)")] = None
    response_size: Annotated[
        PacketSize | None, Field(description="Bytes per response (RR; by default the size of the request)")
    ] = None
    message_size: Annotated[
        PacketSize | None,
        Field(description="Bytes per message of a stream; default: 1468 B (UDP) or the socket's buffer (TCP)"),
    ] = None

    @property
    def transactions(self) -> bool:
        """Return whether the test sends requests and responses."""
        return self.test.endswith("RR")

    @property
    def connects(self) -> bool:
        """Return whether each transaction has a connection of its own."""
        return self.test == "TCP_CRR"

    @property
    def counts(self) -> bool:
        """Return whether a number of transactions can end the test."""
        return self.test in ("TCP_RR", "TCP_CRR")

    @property
    def sizes(self) -> tuple[PacketBytes, ...]:
        """Return the sizes of request and response, or of a stream's message, unless netperf chooses it (TCP)."""
        if self.transactions:
            request = self.request_size or 1
            return request, self.response_size or request
        message = self.message_size or (USUAL_PAYLOAD if self.udp else None)
        return () if message is None else (message,)

    @property
    def udp(self) -> bool:
        """Return whether datagrams carry the data."""
        return self.test.startswith("UDP_")

    @model_validator(mode="after")
    def _check_options(self) -> "NetperfOptions":
        sizes = {name: getattr(self, name) for name in ("request_size", "response_size", "message_size")}
        for name, size in sizes.items():
            if size is not None and self.transactions == (name == "message_size"):
                takes = "request_size and response_size" if self.transactions else "message_size"
                raise ValueError(f"{name} does not apply to {self.test}, which has {takes}")
            check_size(name, size, self.test, 1, LARGEST_PAYLOAD if self.udp else 2**20)
        if self.count is not None and not self.counts:
            why = "netperf would wait forever for a lost datagram" if self.udp else "only TCP_RR and TCP_CRR can"
            raise ValueError(f"{self.test} cannot have a count, because {why}")
        if self.count is None and self.connects:
            raise ValueError(
                "TCP_CRR needs a count, because netserver waits for 4 s after a test that ends after a time"
            )
        return self


class Netperf(Workload):
    """Runs one netperf test per trial, after a warm-up that is discarded.

    The server's data port is fixed. A UDP test uses the number of the control port, because both protocols can share
    it. A TCP test cannot: netserver would silently choose another port. So it uses the second port.
    """

    kind = "netperf"
    summary = "TCP or UDP requests and responses: transactions and latency; or a stream's throughput"
    options = NetperfOptions
    packages = ("netperf", "netbase")  # netbase: /etc/protocols, without which UDP_STREAM complains
    has_data_port = True

    def transports(self, options: NetperfOptions) -> tuple[Transport, ...]:
        """Add TCP to UDP, because netperf's control connection uses TCP."""
        return ("tcp", "udp") if options.udp else ("tcp",)

    def metrics(self, options: NetperfOptions) -> tuple[Metric, ...]:
        """Return for RR ``rate`` in 1/s, latency in microseconds, and ``one_way_latency`` (not CRR); for STREAM
        Mbit/s."""
        if options.connects:
            return (RATE, *LATENCIES.values())
        return (RATE, *LATENCIES.values(), ONE_WAY_LATENCY) if options.transactions else (THROUGHPUT,)

    def command(self, role: Role, options: NetperfOptions, at: Endpoint) -> Command:
        """Start a server with a child per test, or a client, which prints lines KEY=VALUE."""
        if role == "client":
            return _client(options, at, options.duration, options.count)
        argv = ("netserver", "-D", "-N", "-4", "-L", at.listen, "-p", str(at.port))
        return Command(argv, deadline_s=options.duration + 150, listens=(("tcp", at.port),))

    def warm_up(self, options: NetperfOptions, at: Endpoint) -> Command | None:
        """Return a shorter run of the same test, unless the study wants none."""
        count = None if options.count is None else math.ceil(options.count * options.warm_up / options.duration)
        return _client(options, at, options.warm_up, count) if options.warm_up else None

    def packet_size(self, options: NetperfOptions, at: Endpoint) -> int | None:
        """Return the larger one of request and response."""
        if not options.udp:
            return None
        sizes = [known_bytes(size, at) for size in options.sizes]
        return None if None in sizes else max(size for size in sizes if size is not None)

    def length(self, options: NetperfOptions) -> Length:
        """Return transactions for TCP_RR and TCP_CRR. A UDP test with a count would never end after a loss."""
        if not options.counts:
            return by_seconds(1, (RATE if options.transactions else THROUGHPUT).name)
        return Length(_SHORTEST_S, "count", lambda measured: measured[RATE.name], _FEWEST, shortens_warm_up=True)

    def parse(self, options: NetperfOptions, completed: Mapping[str, Completed]) -> TrialResult:
        """Read the output, and derive ``one_way_latency`` from its rate. Raises ProgramFailed or Unparseable.

        Throughput is what arrived at the server, and its zero is valid. Without transactions there is no latency.
        """
        client = require_success(completed["client"], "netperf")
        if not options.transactions:
            return TrialResult((Measurement(THROUGHPUT, _stream(client.text)),))
        figures = {key: _number(client.text, key) for key in _TRANSACTIONS}
        rate = figures["TRANSACTION_RATE"]
        latencies = tuple(Measurement(metric, figures[key]) for key, metric in LATENCIES.items())
        if options.connects:
            longest_s = _longest_wait_s(figures, _number(client.text, "MAX_LATENCY"))
            flags = (Flag(FlagCode.CONNECTION_LOST, figures={"seconds": longest_s}),) if longest_s else ()
            return TrialResult((Measurement(RATE, rate), *latencies), flags=flags, work_s=figures["ELAPSED_TIME"])
        _require_no_stall(rate, figures["MEAN_LATENCY"])
        measured = (Measurement(RATE, rate), *latencies, Measurement(ONE_WAY_LATENCY, 1e3 / rate / 2))
        return TrialResult(measured, work_s=options.count / rate if options.count is not None else None)


def _client(options: NetperfOptions, at: Endpoint, duration: float, count: int | None = None) -> Command:
    """Return netperf for ``duration`` seconds, or for ``count`` transactions (a negative length).

    ``-j`` keeps the latencies. Options of the test follow the ``--``.
    """
    length = f"{duration:.0f}" if count is None else str(-count)
    argv = ["netperf", "-4", "-H", at.address, "-p", str(at.port), "-t", options.test, "-l", length]
    argv += ["-j", "--", "-P", f",{at.port if options.udp else at.data_port}"]
    sizes = ",".join(str(resolved(size, at)) for size in options.sizes)
    if options.transactions:
        argv += ["-r", sizes, "-k", ",".join(_CONNECTIONS if options.connects else _TRANSACTIONS)]
    else:
        argv += ["-m", sizes] if sizes else []  # of UDP always: left to itself netperf sends the largest there are
        argv += ["-R", "1"]  # netperf keeps the datagrams of UDP_STREAM from every router, unless told
        argv += ["-k", ",".join(_STREAM)]
    return Command(tuple(argv), deadline_s=duration + 30)


def _value(text: str, key: str, pattern: str) -> str:
    """Return the value of one complete line KEY=VALUE."""
    match = re.search(rf"^{key}=({pattern})\n", text, re.MULTILINE)
    if match is None:
        raise Unparseable(f"netperf's output has no usable {key}")
    return match[1]


def _number(text: str, key: str) -> float:
    return float(_value(text, key, r"[0-9]{1,15}(?:\.[0-9]{1,9})?"))


def _stream(text: str) -> float:
    """Return the throughput that the server received, in Mbit/s."""
    _value(text, "THROUGHPUT_UNITS", re.escape("10^6bits/s"))
    _number(text, "ELAPSED_TIME")  # the last that netperf prints
    return _number(text, "REMOTE_RECV_THROUGHPUT")


def _require_no_stall(rate: float, mean_us: float) -> None:
    """Raise ProgramFailed if transactions did not fill the time.

    netperf never repeats a request. After one lost datagram UDP_RR waits until its time is over, prints no error and
    exits with code 0. Its rate is then too low by any amount, and its latencies look healthy.
    """
    busy = rate * mean_us / 1e6
    if rate == 0:
        raise ProgramFailed("netperf made no transaction: the server sent nothing back")
    if busy < _BUSY:
        raise ProgramFailed(f"netperf waited for a lost message: transactions filled {busy:.1%} of its time")


def _longest_wait_s(figures: Mapping[str, float], longest_us: float) -> float:
    """Return the longest wait in seconds for a lost connection request, or 0. Raises ProgramFailed.

    With address translation a connection can have the port numbers of one that the server or the translation still
    remembers (TIME_WAIT). A connection for which netperf still waits at its end is in no latency.
    """
    rate, elapsed_s = figures["TRANSACTION_RATE"], figures["ELAPSED_TIME"]
    if rate == 0:
        raise ProgramFailed("netperf made no connection: the server did not answer")
    busy = rate * figures["MEAN_LATENCY"] / 1e6
    unfinished_s = (1 - busy) * elapsed_s if busy < _BUSY else 0.0
    return max(unfinished_s, longest_us / 1e6 if longest_us / 1e6 >= _SYN_AGAIN_S else 0.0)


PLUGIN = Netperf()
