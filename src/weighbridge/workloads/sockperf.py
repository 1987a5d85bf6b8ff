"""sockperf: round-trip latency of small messages, sent singly or at a given rate."""

import re
from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import Field, model_validator

from weighbridge.model.command import Command, Completed
from weighbridge.model.measurement import Measurement, Metric, ProgramFailed, Unparseable, require_success
from weighbridge.model.options import Options
from weighbridge.model.quantity import PacketSize
from weighbridge.model.study import Role
from weighbridge.model.trial import TrialResult
from weighbridge.model.workload import Endpoint, Length, by_seconds
from weighbridge.workloads._packet import LARGEST_PAYLOAD, TcpOrUdp, check_size, known_bytes, resolved
from weighbridge.workloads._seconds import WholeSeconds

MEAN = Metric("latency_mean", "us", "lower")
PERCENTILES = {
    "50.000": Metric("latency_p50", "us", "lower"),
    "90.000": Metric("latency_p90", "us", "lower"),
    "99.000": Metric("latency_p99", "us", "lower"),
    "99.900": Metric("latency_p99_9", "us", "lower"),
}
RATE = Metric("rate", "1/s", "higher")
LOSS = Metric("loss", "%", "lower")

_NUMBER = r"([0-9]{1,12}(?:\.[0-9]{1,9})?)"
_COLOUR = re.compile(r"\x1b\[[0-9;]*m")
_FAILED = re.compile(r"^sockperf: *((?:ERROR|No |'-).*)$", re.MULTILINE)


class SockperfOptions(Options):
    """Options of a sockperf workload. Sizes are in bytes."""

    test: Annotated[
        Literal["ping-pong", "under-load"],
        Field(description="ping-pong sends one message at a time; under-load sends messages at a rate"),
    ] = "ping-pong"
    protocol: Annotated[Literal["tcp", "udp"], Field(description="Transport protocol")] = "udp"
    duration: Annotated[WholeSeconds, Field(ge=1, le=86400, description="Measured time, in whole seconds")] = 10.0
    message_size: Annotated[
        PacketSize,
        Field(description="Bytes per message; with udp also mtu: the largest that fits"),
    ] = 64
    rate: Annotated[int | None, Field(ge=10, le=10**7, description="Messages per second; under-load needs it")] = None
    reply_every: Annotated[int | None, Field(ge=1, le=10**6, description="under-load: messages per reply (10)")] = (
        None
    )

    @model_validator(mode="after")
    def _check_options(self) -> "SockperfOptions":
        check_size("message_size", self.message_size, self.protocol, 14, LARGEST_PAYLOAD)
        if self.test == "under-load" and self.rate is None:
            raise ValueError("under-load needs a rate in messages per second. Try: rate: 10000")
        if self.test == "ping-pong" and (self.rate is not None or self.reply_every is not None):
            raise ValueError(
                "ping-pong waits for each answer, so it cannot have rate or reply_every. Try: test: under-load"
            )
        return self


class Sockperf(TcpOrUdp):
    """Measures the latency of the complete round trip, as other workloads do. By default sockperf prints half of it.

    sockperf discards its first 0.4 s, which are its warm-up. ``under-load`` sends at its rate even if no answers
    come, and the latency of an answer starts at the real send. In ``ping-pong`` a lost datagram ends the measurement
    early: the latencies are valid, from fewer messages.
    """

    kind = "sockperf"
    summary = "round-trip latency of small messages, sent singly or at a given rate"
    options = SockperfOptions
    packages = ("sockperf",)
    overhead_s = 2.3  # sockperf calibrates the CPU's clock first, and evaluates its results at the end

    def metrics(self, options: SockperfOptions) -> tuple[Metric, ...]:
        """Return mean and percentiles in microseconds. Under load also the sent rate, and for UDP the loss in %."""
        latencies = (MEAN, *PERCENTILES.values())
        if options.test == "ping-pong":
            return latencies
        return (*latencies, RATE, LOSS) if options.protocol == "udp" else (*latencies, RATE)

    def command(self, role: Role, options: SockperfOptions, at: Endpoint) -> Command:
        deadline_s = options.duration + 30
        protocol = ("--tcp",) if options.protocol == "tcp" else ()
        if role == "server":
            argv = ("sockperf", "server", "-i", at.listen, "-p", str(at.port), *protocol)
            return Command(argv, deadline_s=deadline_s + 60, listens=((options.protocol, at.port),))
        argv = ("sockperf", options.test, "--full-rtt", "-i", at.address, "-p", str(at.port), *protocol)
        argv += ("-m", str(resolved(options.message_size, at)), "-t", f"{options.duration:.0f}")
        if options.test == "under-load":
            argv += ("--mps", str(options.rate), "--reply-every", str(options.reply_every or 10))
        return Command(argv, deadline_s)

    def packet_size(self, options: SockperfOptions, at: Endpoint) -> int | None:
        return known_bytes(options.message_size, at) if options.protocol == "udp" else None

    def length(self, options: SockperfOptions) -> Length:
        """Return seconds, of which sockperf discards the first 0.4."""
        return by_seconds(2, MEAN.name)

    def asked_rate(self, options: SockperfOptions) -> Measurement | None:
        """Return the messages per second under load."""
        return None if options.rate is None else Measurement(RATE, float(options.rate))

    def parse(self, options: SockperfOptions, completed: Mapping[str, Completed]) -> TrialResult:
        """Read the figures of the valid duration. Raises ProgramFailed or Unparseable, also after exit code 0.

        ``loss`` is the share of expected answers that never came.
        """
        text = _report(completed["client"])
        measurements = [Measurement(MEAN, _figure(text, rf"====> avg-rtt= *{_NUMBER} \(std-dev=", "mean"))]
        for level, metric in PERCENTILES.items():
            pattern = rf"^sockperf: ---> percentile {re.escape(level)} = *{_NUMBER}\n"
            measurements.append(Measurement(metric, _figure(text, pattern, f"percentile {level}")))
        if options.test == "under-load":
            measurements.append(Measurement(RATE, _rate(text)))
        if options.test == "under-load" and options.protocol == "udp":
            measurements.append(Measurement(LOSS, _loss(text)))
        return TrialResult(tuple(measurements))


_VALID = r"^sockperf: \[Valid Duration\] RunTime="


def _report(client: Completed) -> str:
    """Return the complete report without colours. Its last line is the fastest observation."""
    text = _COLOUR.sub("", require_success(client, "sockperf").text)
    if failed := _FAILED.search(text):
        raise ProgramFailed(f"sockperf: {failed[1].strip()[:300]}")
    if re.search(rf"^sockperf: ---> <MIN> observation = *{_NUMBER}\n", text, re.MULTILINE) is None:
        raise Unparseable(f"sockperf's report is incomplete ({len(client.stdout)} bytes)")
    return text


def _figure(text: str, pattern: str, what: str) -> float:
    match = re.search(pattern, text, re.MULTILINE)
    if match is None:
        raise Unparseable(f"sockperf's report has no {what}")
    return float(match[1])


def _rate(text: str) -> float:
    """Return the messages sent per second of the valid duration."""
    seconds = _figure(text, rf"{_VALID}{_NUMBER} sec;", "valid duration")
    if seconds == 0:
        raise ProgramFailed("sockperf ran too short to have a valid duration: use a longer one")
    return _figure(text, rf"{_VALID}[0-9.]+ sec; SentMessages={_NUMBER};", "sent messages") / seconds


def _loss(text: str) -> float:
    """Return the loss in %."""
    came = _figure(text, rf"{_VALID}[0-9.]+ sec; SentMessages=[0-9]+; ReceivedMessages={_NUMBER}\n", "answers")
    lost = _figure(text, rf"^sockperf: # dropped messages = {_NUMBER};", "dropped messages")
    if came + lost == 0:
        raise ProgramFailed("sockperf got no reply")
    return 100 * lost / (came + lost)


PLUGIN = Sockperf()
