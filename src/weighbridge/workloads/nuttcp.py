"""nuttcp: TCP or UDP throughput, with the CPU use at both ends."""

import re
from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, model_validator

from weighbridge.model.command import Command, Completed
from weighbridge.model.measurement import Measurement, Metric, ProgramFailed, Unparseable, require_success
from weighbridge.model.options import Options
from weighbridge.model.quantity import PacketSize, Rate
from weighbridge.model.study import Role
from weighbridge.model.trial import TrialResult
from weighbridge.model.workload import Endpoint, Length, by_seconds
from weighbridge.workloads._packet import LARGEST_PAYLOAD, USUAL_PAYLOAD, TcpOrUdp, check_size, resolved
from weighbridge.workloads._seconds import WholeSeconds

THROUGHPUT = Metric("throughput", "Mbit/s", "higher")
SENDER_CPU = Metric("sender_cpu", "%", "lower")
RECEIVER_CPU = Metric("receiver_cpu", "%", "lower")
RETRANSMITS = Metric("retransmits", "count", "lower")
LOSS = Metric("loss", "%", "lower")

_LENGTHS = {"tcp": (1, 2**24), "udp": (64, LARGEST_PAYLOAD)}
_UDP_OVERHEAD_S = 2.4
"""nuttcp waits this long before it assumes that the last datagram has arrived."""
_LATE_S = 1.0
"""How much longer than it was sent UDP can be received. After that the server only waits, which lowers its rate."""


def _whole_kilobits(rate: float) -> float:
    if not (rate / 1000).is_integer():
        raise ValueError(f"{rate:g} bit/s is not a whole number of kbit/s: round it")
    return rate


Bitrate = Annotated[Rate, AfterValidator(_whole_kilobits), Field(ge=1000)]
"""Bits per second; whole kbit/s."""


class NuttcpOptions(Options):
    """Options of a nuttcp workload. The units are seconds, bits per second and bytes."""

    protocol: Annotated[Literal["tcp", "udp"], Field(description="Transport protocol")] = "tcp"
    duration: Annotated[WholeSeconds, Field(ge=1, le=86400, description="Measured time, in whole seconds")] = 10.0
    bitrate: Annotated[Bitrate | None, Field(description="Rate limit; udp needs it")] = None
    length: Annotated[
        PacketSize | None,
        Field(description="Bytes per buffer (tcp; default: 64 KiB) or datagram (udp; default: 1468 B)"),
    ] = None
    reverse: Annotated[bool, Field(description="The server sends and the client receives")] = False

    @model_validator(mode="after")
    def _check_options(self) -> "NuttcpOptions":
        if self.protocol == "udp" and self.bitrate is None:
            raise ValueError(
                "udp needs a bitrate, because nuttcp floods the network without one. Try: bitrate: 10Mbit/s"
            )
        check_size("length", self.length, self.protocol, *_LENGTHS[self.protocol])
        return self


class Nuttcp(TcpOrUdp):
    """Runs one transfer per trial, from its first byte. Its data uses the endpoint's second port.

    The server binds to every address while a trial runs, because nuttcp 6 has no option for one address. CPU use is
    in whole percent of one CPU, as each process counts itself. A sender that paces UDP spins, so its figure says
    little.
    """

    kind = "nuttcp"
    summary = "TCP or UDP throughput, with the CPU use of sender and receiver"
    options = NuttcpOptions
    packages = ("nuttcp",)
    has_data_port = True

    def metrics(self, options: NuttcpOptions) -> tuple[Metric, ...]:
        """Return throughput in Mbit/s (10^6), CPU of both ends in %, and retransmits (TCP) or loss in % (UDP)."""
        return (THROUGHPUT, SENDER_CPU, RECEIVER_CPU, RETRANSMITS if options.protocol == "tcp" else LOSS)

    def command(self, role: Role, options: NuttcpOptions, at: Endpoint) -> Command:
        """Start a server in the foreground, or a client, which prints one line of KEY=VALUE pairs."""
        deadline_s = options.duration + 40
        if role == "server":
            argv = ("nuttcp", "-S", "-4", "--nofork", "-P", str(at.port))
            return Command(argv, deadline_s=deadline_s + 60, listens=(("tcp", at.port),))
        ports = ("-P", str(at.port), "-p", str(at.data_port))
        seconds = f"{options.duration:.0f}"
        load = _load(options, at)
        return Command(("nuttcp", "-4", "-fparse", *ports, "-T", seconds, *load, at.address), deadline_s)

    def expected_s(self, options: NuttcpOptions) -> float:
        return options.duration + (_UDP_OVERHEAD_S if options.protocol == "udp" else 0.2)

    def length(self, options: NuttcpOptions) -> Length:
        return by_seconds(1, THROUGHPUT.name)

    def asked_rate(self, options: NuttcpOptions) -> Measurement | None:
        return None if options.bitrate is None else Measurement(THROUGHPUT, options.bitrate / 1e6)

    def parse(self, options: NuttcpOptions, completed: Mapping[str, Completed]) -> TrialResult:
        """Read the client's line, which has the receiver's throughput. Raises ProgramFailed or Unparseable.

        ``retransmits`` is absent if the sender's kernel does not count them.
        """
        figures = _line(completed["client"], options)
        values = {THROUGHPUT: figures["rate"], SENDER_CPU: figures["tx"], RECEIVER_CPU: figures["rx"]}
        last = (RETRANSMITS, figures["retrans"]) if options.protocol == "tcp" else (LOSS, figures["loss"])
        printed = ((metric, value) for metric, value in (*values.items(), last) if value is not None)
        return TrialResult(tuple(Measurement(metric, float(value)) for metric, value in printed))


def _load(options: NuttcpOptions, at: Endpoint) -> tuple[str, ...]:
    """Return the load in nuttcp's notation. A rate without a unit is in kbit/s.

    UDP always has a length. By default nuttcp would use that of its control connection, or 8 KiB.
    """
    udp = options.protocol == "udp"
    length = options.length or (USUAL_PAYLOAD if udp else None)
    load = ["-u"] if udp else []
    load += ["-r"] if options.reverse else []
    load += [f"-l{resolved(length, at)}"] if length is not None else []
    load += [f"-R{options.bitrate / 1000:.0f}"] if options.bitrate is not None else []
    return tuple(load)


_NUMBER = r"[0-9]{1,12}(?:\.[0-9]{1,9})?"
_START = rf"^megabytes= *{_NUMBER} real_seconds= *(?P<seconds>{_NUMBER}) rate_Mbps= *(?P<rate>{_NUMBER})"
_CPU = r" tx_cpu=(?P<tx>[0-9]{1,6}) rx_cpu=(?P<rx>[0-9]{1,6})"
_LINES = {
    "tcp": re.compile(
        rf"{_START}{_CPU}(?: retrans=(?P<retrans>[0-9]{{1,12}}))?(?: rtt_ms={_NUMBER})?\n", re.MULTILINE
    ),
    "udp": re.compile(rf"{_START}{_CPU} drop=[0-9]+ pkt=[0-9]+ data_loss=(?P<loss>{_NUMBER})\n", re.MULTILINE),
}


def _line(client: Completed, options: NuttcpOptions) -> dict[str, str | None]:
    """Return the figures of the last line.

    If the data port is in use, or if the server ends, nuttcp prints zeros over zero seconds and exits with code 0. If
    the control port is closed, it assumes a server without one, and counts at the sender.
    """
    complaint = "; ".join(client.error_text.split("\n")).strip("; ")[-300:]
    require_success(client, "nuttcp", complaint)
    if "classic_mode" in complaint:
        raise ProgramFailed(f"nuttcp found no server at its control port: {complaint}")
    match = _LINES[options.protocol].search(client.text)
    if match is None:
        raise Unparseable(f"nuttcp's output has no complete line of results ({len(client.stdout)} bytes)")
    seconds = float(match["seconds"])
    if seconds == 0:
        raise ProgramFailed("nuttcp transferred nothing: its data port is taken, or its server ended")
    if options.protocol == "udp" and float(match["rate"]) > 0 and seconds > options.duration + _LATE_S:
        raise ProgramFailed(f"the end of the test did not reach nuttcp's server: it waited for {seconds} s")
    return match.groupdict()


PLUGIN = Nuttcp()
