"""iperf3: TCP or UDP throughput between a client and a server, as the receiving side saw it."""

import json
import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from weighbridge.model.command import Command, Completed
from weighbridge.model.measurement import Measurement, Metric, ProgramFailed, Unparseable, require_success
from weighbridge.model.options import Options
from weighbridge.model.quantity import PacketSize, Rate, Size
from weighbridge.model.study import Role
from weighbridge.model.trial import TrialResult
from weighbridge.model.workload import Endpoint, Length, by_seconds
from weighbridge.workloads._packet import LARGEST_PAYLOAD, USUAL_PAYLOAD, TcpOrUdp, check_size, resolved
from weighbridge.workloads._seconds import WholeSeconds

THROUGHPUT = Metric("throughput", "Mbit/s", "higher")
RETRANSMITS = Metric("retransmits", "count", "lower")
JITTER = Metric("jitter", "ms", "lower")
LOSS = Metric("loss", "%", "lower")
BACK = {metric: replace(metric, name=f"{metric.name}_back") for metric in (THROUGHPUT, RETRANSMITS, JITTER, LOSS)}
"""The same metrics for the server's data in a bidirectional test."""
_BACK = "_bidir_reverse"
"""The suffix of iperf3's keys for that direction."""

_LENGTHS = {"tcp": (1, 2**20), "udp": (16, LARGEST_PAYLOAD)}
"""The fewest and the most bytes of a buffer or datagram that iperf3 accepts."""
_SHORTEST_S = 0.3
"""The shortest trial: TCP's slow start lowers its throughput on a loopback interface by 2%. At 0.1 s it is 10%."""
_FEWEST = 8 * 2**22
"""The fewest bytes, eight times the send buffer of a Linux socket (net.ipv4.tcp_wmem).

The sender has worked for the bytes that are in it when a test ends, but they have not arrived.
"""
_ACCOUNTED = 0.9
"""If the receiver has seen or missed this share of the sent datagrams, iperf3's own loss is used."""

Bitrate = Annotated[Rate, Field(ge=1)]
"""Bits per second. iperf3 writes 0 for no limit; here the option is omitted."""


class Iperf3Options(Options):
    """Options of an iperf3 workload. The units are seconds, bits per second and bytes."""

    protocol: Annotated[Literal["tcp", "udp"], Field(description="Transport protocol")] = "tcp"
    duration: Annotated[WholeSeconds, Field(ge=1, le=86400, description="Measured time, in whole seconds")] = 10.0
    amount: Annotated[
        Size | None,
        Field(ge=1, le=2**50, description="Bytes to send, instead of a time; they should take about the duration"),
    ] = None
    omit: Annotated[WholeSeconds, Field(ge=0, le=60, description="Warm-up before the measured time")] = 0.0
    bitrate: Annotated[Bitrate | None, Field(description="Rate limit of each stream; udp needs it")] = None
    length: Annotated[
        PacketSize | None,
        Field(description="Bytes per buffer (tcp) or datagram (udp; default: 1468 B; mtu is the largest that fits)"),
    ] = None
    parallel: Annotated[int, Field(ge=1, le=128, description="Parallel streams")] = 1
    reverse: Annotated[bool, Field(description="The server sends and the client receives")] = False
    bidirectional: Annotated[bool, Field(description="Both sides send at the same time; not with reverse")] = False

    @model_validator(mode="after")
    def _check_options(self) -> "Iperf3Options":
        if self.protocol == "udp" and self.bitrate is None:
            raise ValueError(
                "udp needs a bitrate, because iperf3 reports false rates without one. Try: bitrate: 10Mbit/s"
            )
        if self.amount is not None and self.omit:
            raise ValueError("amount and omit exclude each other: iperf3 counts an amount from the first byte")
        if self.reverse and self.bidirectional:
            raise ValueError("reverse and bidirectional exclude each other: bidirectional measures both ways")
        check_size("length", self.length, self.protocol, *_LENGTHS[self.protocol])
        return self


class Iperf3(TcpOrUdp):
    """Runs one connection test per trial. ``omit`` is its warm-up. Zero is a valid throughput (a pulled cable)."""

    kind = "iperf3"
    summary = "TCP or UDP throughput, jitter and loss between a client and a server"
    options = Iperf3Options
    packages = ("iperf3",)

    def metrics(self, options: Iperf3Options) -> tuple[Metric, ...]:
        """Return throughput in Mbit/s (10^6), and the metrics of the protocol. ``_back`` is from server to client."""
        metrics = (THROUGHPUT, RETRANSMITS) if options.protocol == "tcp" else (JITTER, LOSS, THROUGHPUT)
        return (*metrics, *(BACK[metric] for metric in metrics)) if options.bidirectional else metrics

    def command(self, role: Role, options: Iperf3Options, at: Endpoint) -> Command:
        """Start a server, which listens on UDP only during a test, or a client, which prints one JSON document."""
        deadline_s = options.duration + options.omit + 30
        if role == "server":
            argv = ("iperf3", "-s", "-B", at.listen, "-p", str(at.port), "--forceflush")
            return Command(argv, deadline_s=deadline_s + 60, listens=(("tcp", at.port),))
        return Command(("iperf3", "-J", "-c", at.address, "-p", str(at.port), *_arguments(options, at)), deadline_s)

    def expected_s(self, options: Iperf3Options) -> float:
        return options.duration + options.omit + self.overhead_s

    def length(self, options: Iperf3Options) -> Length:
        """Return bytes for TCP in one direction at full speed, or else seconds. iperf3 omits only whole seconds."""
        paced = options.protocol == "udp" or options.bitrate is not None
        if paced or options.omit or options.bidirectional:
            return by_seconds(1, THROUGHPUT.name)
        return Length(_SHORTEST_S, "amount", lambda measured: measured[THROUGHPUT.name] * 1e6 / 8, _FEWEST)

    def asked_rate(self, options: Iperf3Options) -> Measurement | None:
        """Return the bitrate of all streams together."""
        return None if options.bitrate is None else Measurement(THROUGHPUT, options.bitrate * options.parallel / 1e6)

    def jq(self, options: Iperf3Options) -> str:
        """Return the receiving side's figure."""
        received = ".end.sum_received"
        return f"{received}.bits_per_second / 1e6" if options.protocol == "tcp" else f"{received}.jitter_ms"

    def parse(self, options: Iperf3Options, completed: Mapping[str, Completed]) -> TrialResult:
        """Read the receiver's figures from the client's document. Raises ProgramFailed or Unparseable.

        ``retransmits`` is absent if the sender's kernel does not count them, ``jitter`` if no datagram arrived.
        """
        document = _document(completed["client"])
        measurements = _direction(document, options)
        if options.bidirectional:
            back = _direction(document, options, _BACK)
            measurements += tuple(replace(measured, metric=BACK[measured.metric]) for measured in back)
        sent_s = options.duration if options.amount is None else _number(document, "sum_received", "seconds")
        return TrialResult(measurements, work_s=sent_s + options.omit)  # the warm-up is work too


def _arguments(options: Iperf3Options, at: Endpoint) -> tuple[str, ...]:
    """Return the options in iperf3's notation, without those that have iperf3's own default.

    UDP always has a length. By default iperf3 uses 32,768 bytes on a loopback interface, and 1,448 elsewhere.
    """
    length = options.length or (USUAL_PAYLOAD if options.protocol == "udp" else None)
    until = ["-t", f"{options.duration:.0f}"] if options.amount is None else ["-n", str(options.amount)]
    arguments = ["--connect-timeout", "5000", *until, "-P", str(options.parallel)]
    arguments += ["-u"] if options.protocol == "udp" else []
    arguments += ["-O", f"{options.omit:.0f}"] if options.omit else []
    arguments += ["-b", f"{options.bitrate:.0f}"] if options.bitrate is not None else []
    arguments += ["-l", str(resolved(length, at))] if length is not None else []
    arguments += ["-R"] if options.reverse else []
    arguments += ["--bidir"] if options.bidirectional else []
    return tuple(arguments)


def _document(client: Completed) -> dict[str, Any]:
    """Return the client's JSON with every number as a float. If iperf3 fails, it exits with 0, and the error is a
    key."""
    try:
        document = json.loads(client.text, parse_int=float)
    except (ValueError, RecursionError) as error:
        require_success(client, "iperf3")
        raise Unparseable(f"iperf3's output is not complete JSON ({len(client.stdout)} bytes)") from error
    if isinstance(document, dict) and "error" in document:
        raise ProgramFailed(f"iperf3: {str(document['error'])[:300]}")
    require_success(client, "iperf3")
    if not isinstance(document, dict) or not isinstance(document.get("end"), dict):
        raise Unparseable("iperf3's output has no results (no key 'end')")
    return document


def _sum(document: dict[str, Any], side: str) -> dict[str, Any]:
    total = document["end"].get(side)
    if not isinstance(total, dict):
        raise Unparseable(f"iperf3's output has no end.{side}")
    return total


def _number(document: dict[str, Any], side: str, key: str) -> float:
    value = _sum(document, side).get(key)
    if not isinstance(value, float) or not math.isfinite(value) or value < 0:
        raise Unparseable(f"iperf3's output has no usable end.{side}.{key} (it is {json.dumps(value)[:40]})")
    return value


def _direction(document: dict[str, Any], options: Iperf3Options, way: str = "") -> tuple[Measurement, ...]:
    """Return the measurements of one direction. ``way`` is the suffix of iperf3's keys."""
    sent, received = f"sum_sent{way}", f"sum_received{way}"
    throughput = Measurement(THROUGHPUT, _number(document, received, "bits_per_second") / 1e6)
    if options.protocol == "udp":
        return (*_udp(document, sent, received), throughput)  # its rate is given: it is no headline
    if "retransmits" not in _sum(document, sent):
        return (throughput,)
    return (throughput, Measurement(RETRANSMITS, _number(document, sent, "retransmits")))


def _udp(document: dict[str, Any], sender: str, receiver: str) -> tuple[Measurement, ...]:
    """Return jitter in ms and loss in %.

    iperf3 sees a loss only as a gap before a later datagram. If all datagrams are lost, or all from some time on, it
    reports 0%. So if the receiver accounts for less than nine tenths of the sent datagrams, the loss is sent minus
    received. A smaller difference is the datagrams that are on their way when the test ends.
    """
    sent = _number(document, sender, "packets")
    accounted = _number(document, receiver, "packets")
    lost = _number(document, receiver, "lost_packets")
    percent = _number(document, receiver, "lost_percent")
    jitter = _number(document, receiver, "jitter_ms")
    if accounted < _ACCOUNTED * sent:
        percent = 100 * (sent - accounted + lost) / sent
    measurements = [Measurement(JITTER, jitter)] if accounted > 0 else []
    return (*measurements, Measurement(LOSS, percent)) if sent > 0 else tuple(measurements)


PLUGIN = Iperf3()
