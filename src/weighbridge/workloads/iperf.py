"""iperf (version 2): TCP throughput, or UDP jitter and loss at a fixed rate, as the receiving server saw them."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import Field, model_validator

from weighbridge.model.command import Command, Completed
from weighbridge.model.measurement import Measurement, Metric, ProgramFailed, Unparseable
from weighbridge.model.options import Options
from weighbridge.model.quantity import Duration, PacketSize, Rate
from weighbridge.model.study import Role
from weighbridge.model.trial import TrialResult
from weighbridge.model.workload import Endpoint, Length, by_seconds
from weighbridge.workloads._packet import LARGEST_PAYLOAD, USUAL_PAYLOAD, TcpOrUdp, check_size, resolved

THROUGHPUT = Metric("throughput", "Mbit/s", "higher")
JITTER = Metric("jitter", "ms", "lower")
LOSS = Metric("loss", "%", "lower")
OUT_OF_ORDER = Metric("out_of_order", "count", "lower")

_LENGTHS = {"tcp": (1, 2**20), "udp": (64, LARGEST_PAYLOAD)}
_SHORTEST_S, _STEP_S = 0.3, 0.1
"""The shortest trial. TCP's slow start lowers its throughput by 2%; jitter is that of the last datagrams."""
_LATE_S, _LATE_SHARE = 0.5, 0.05
"""How much longer than the client a server can receive. It waits if the end of the test is lost."""

Bitrate = Annotated[Rate, Field(ge=1000)]
"""Bits per second."""


class IperfOptions(Options):
    """Options of an iperf workload. The units are seconds, bits per second and bytes."""

    protocol: Annotated[Literal["tcp", "udp"], Field(description="Transport protocol")] = "tcp"
    duration: Annotated[Duration, Field(ge=_SHORTEST_S, le=86400, description="Measured time")] = 10.0
    bitrate: Annotated[Bitrate | None, Field(description="Rate limit of each stream; udp needs it")] = None
    length: Annotated[
        PacketSize | None,
        Field(description="Bytes per buffer (tcp) or datagram (udp; default: 1468 B; mtu is the largest that fits)"),
    ] = None
    parallel: Annotated[int, Field(ge=1, le=64, description="Parallel streams")] = 1

    @model_validator(mode="after")
    def _check_options(self) -> "IperfOptions":
        if self.protocol == "udp" and self.bitrate is None:
            raise ValueError(
                "udp needs a bitrate, because iperf sends only 1 Mbit/s without one. Try: bitrate: 10Mbit/s"
            )
        check_size("length", self.length, self.protocol, *_LENGTHS[self.protocol])
        return self


@dataclass(frozen=True, slots=True)
class _Stream:
    """One row of a report: its end in seconds, bit/s, and for UDP the jitter in ms and the datagrams."""

    end: float
    rate: float
    jitter: float = 0.0
    lost: float = 0.0
    total: float = 0.0
    out_of_order: float = 0.0


class Iperf(TcpOrUdp):
    """Runs one connection test per trial, from its first byte: iperf has no warm-up.

    A separate warm-up would spoil it: a UDP server of iperf 2.1.8 hangs at its second client, or hears it too late.
    """

    kind = "iperf"
    summary = "iperf 2: TCP throughput; UDP jitter, loss and reordering at a fixed rate"
    options = IperfOptions
    packages = ("iperf",)

    def metrics(self, options: IperfOptions) -> tuple[Metric, ...]:
        """Return throughput for TCP. For UDP, whose rate is given: jitter, loss, reordered datagrams, throughput."""
        return (THROUGHPUT,) if options.protocol == "tcp" else (JITTER, LOSS, OUT_OF_ORDER, THROUGHPUT)

    def command(self, role: Role, options: IperfOptions, at: Endpoint) -> Command:
        """Print CSV at both ends. The server writes a row when a stream ends, and completes it on SIGTERM."""
        deadline_s = options.duration + 30
        udp = options.protocol == "udp"
        length = options.length or (USUAL_PAYLOAD if udp else None)
        # the server's too: it cuts longer datagrams off
        sizes = ("-l", str(resolved(length, at))) if length is not None else ()
        common = ("-p", str(at.port), "-y", "C", *(("-u",) if udp else ()), *sizes)
        if role == "server":
            listens = ((options.protocol, at.port),)
            return Command(("iperf", "-s", "-B", at.listen, *common), deadline_s + 60, listens=listens)
        rate = ("-b", f"{options.bitrate:.0f}") if options.bitrate is not None else ()
        load = ("-t", f"{options.duration:g}", "-P", str(options.parallel), *rate)
        return Command(("iperf", "-c", at.address, *common, *load), deadline_s)

    def beside_s(self, options: IperfOptions) -> float:
        """Return the time until the server has ended: a TCP server ends after a second."""
        return 1.0 if options.protocol == "tcp" else 0.2

    def length(self, options: IperfOptions) -> Length:
        return by_seconds(_SHORTEST_S, THROUGHPUT.name, _STEP_S)

    def asked_rate(self, options: IperfOptions) -> Measurement | None:
        """Return the bitrate of all streams together."""
        return None if options.bitrate is None else Measurement(THROUGHPUT, options.bitrate * options.parallel / 1e6)

    def parse(self, options: IperfOptions, completed: Mapping[str, Completed]) -> TrialResult:
        """Read the server's report for all streams together. Raises ProgramFailed or Unparseable.

        ``jitter`` is the mean over the streams, in steps of 0.001 ms. ``loss`` and ``out_of_order`` count all
        datagrams.
        """
        sent = _client_rows(completed["client"], options)
        streams = _server_rows(completed["server"], options)
        _require_end_of_test(sent, streams)
        throughput = Measurement(THROUGHPUT, sum(stream.rate for stream in streams) / 1e6)
        if options.protocol == "tcp":
            return TrialResult((throughput,))
        total = sum(stream.total for stream in streams)
        if any(stream.total <= 0 for stream in streams):
            raise Unparseable("iperf's server did not count each stream's datagrams")
        jitter = Measurement(JITTER, sum(stream.jitter for stream in streams) / len(streams))
        loss = Measurement(LOSS, 100 * sum(stream.lost for stream in streams) / total)
        out_of_order = Measurement(OUT_OF_ORDER, sum(stream.out_of_order for stream in streams))
        return TrialResult((jitter, loss, out_of_order, throughput))


_FLOW = r"^[0-9.]{14,20},[^,\n]{1,60},[0-9]{1,5},[^,\n]{1,60},[0-9]{1,5},[0-9]{1,6}"
_FIGURES = r",[0-9]{1,6}\.[0-9]-(?P<end>[0-9]{1,6}\.[0-9]),[0-9]{1,18},(?P<rate>[0-9]{1,15})"
_DATAGRAMS = r",(?P<jitter>[0-9]{1,9}\.[0-9]{3}),(?P<lost>[0-9]{1,15}),(?P<total>-1|[0-9]{1,15})"
_ORDER = r",-?[0-9]{1,3}\.[0-9]{3},(?P<out_of_order>[0-9]{1,15})"
_ROWS = {
    "tcp": re.compile(f"{_FLOW}{_FIGURES}\n", re.MULTILINE),
    "udp": re.compile(f"{_FLOW}{_FIGURES}{_DATAGRAMS}{_ORDER}\n", re.MULTILINE),
}
"""A row of iperf's CSV. A client's UDP row has no jitter and a total of -1, because only the server knows them."""
_COMPLAINT = re.compile(r"^.*\b(?:connect|read|write) failed: .+$", re.MULTILINE)


def _streams(text: str, options: IperfOptions) -> list[_Stream]:
    """Return every complete row. A truncated row has no line feed."""
    return [
        _Stream(**{name: float(value) for name, value in row.groupdict().items()})
        for row in _ROWS[options.protocol].finditer(text)
    ]


def _client_rows(client: Completed, options: IperfOptions) -> list[_Stream]:
    """Return the client's rows. If iperf fails, it exits with code 0, and prints a row next to its complaint."""
    complaint = _COMPLAINT.search(client.error_text)
    if client.returncode != 0 or complaint:
        why = complaint[0].strip()[:300] if complaint else client.last_words
        raise ProgramFailed(f"iperf exited with code {client.returncode}: {why}")
    rows = _streams(client.text, options)
    if not rows and client.stderr.strip():
        raise ProgramFailed(f"iperf measured nothing: {client.last_words}")
    return _all(rows, options, "client")


def _server_rows(server: Completed, options: IperfOptions) -> list[_Stream]:
    """Return the rows that the server completes when it is stopped."""
    if not server.stdout.strip():
        raise ProgramFailed("nothing that iperf sent arrived: its server reports no stream")
    return _all(_streams(server.text, options), options, "server")


def _all(rows: list[_Stream], options: IperfOptions, role: str) -> list[_Stream]:
    if len(rows) != options.parallel:
        raise Unparseable(f"iperf's {role} reports {len(rows)} of {options.parallel} streams")
    return rows


def _require_end_of_test(sent: list[_Stream], received: list[_Stream]) -> None:
    """Raise ProgramFailed if the server continued to wait after the client had ended.

    In that case the last datagrams are lost, and rate, jitter and loss are all wrong. When half of them were lost,
    iperf reported a loss of 0% and a jitter of 266 ms.
    """
    for receiver, sender in zip(received, sent, strict=True):
        if receiver.end > sender.end * (1 + _LATE_SHARE) + _LATE_S:
            raise ProgramFailed(
                f"the end of the test did not reach iperf's server: it received for {receiver.end} s, "
                f"not {sender.end} s"
            )


PLUGIN = Iperf()
