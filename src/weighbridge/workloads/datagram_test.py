"""Coherence's Datagram Test Utility: the share of datagrams that arrive, and their rate at the listener."""

import re
from collections.abc import Mapping
from typing import Annotated

from pydantic import Field, model_validator

from weighbridge.model.command import Command, Completed, Transport
from weighbridge.model.measurement import Measurement, Metric, Unparseable, require_success
from weighbridge.model.options import Options
from weighbridge.model.quantity import PacketSize
from weighbridge.model.study import Role
from weighbridge.model.trial import TrialResult, Work
from weighbridge.model.workload import Endpoint, Workload
from weighbridge.workloads._java import JRE, java
from weighbridge.workloads._packet import LARGEST_PAYLOAD, check_size, known_bytes, resolved

THROUGHPUT = Metric("throughput", "MiB/s", "higher")
"""Throughput of the tool, which says MB for 2^20 bytes."""
PACKETS = Metric("packets_per_second", "1/s", "higher")
SUCCESS = Metric("success_rate", "%", "higher")
ERRORS = Metric("error_rate", "%", "lower")
MISSING = Metric("missing", "count", "lower")
OUT_OF_ORDER = Metric("out_of_order", "count", "lower")

_HEAP = 64 * 2**20
_QUIET_MS = 60_000
"""The time without a packet after which the listener would count from zero. Its default, 1 s, is too short for a
stall."""
_USUAL_RATE, _SLOWEST_RATE = 100_000, 1000
"""Packets per second, for the plan and for the deadline."""
_START_S = 3.0

_REPORT = re.compile(
    r"^Lifetime:\nRx from publisher: .*\n\s+to listener: .*\n\s+elapsed: (?P<ms>\d{1,12})ms\n"
    r"\s+packet size: (?P<size>\d{1,5})\n\s+throughput: .*\n.*\n\s+received: (?P<received>\d{1,12}) of "
    r"(?P<sent>\d{1,12})\n\s+missing: (?P<missing>-?\d{1,12})\n\s+success rate: .*\n"
    r"\s+out of order: (?P<late>\d{1,12})\n(?:.*\n){1,20}?Now:\n(?:.*\n){1,40}? completed: .*\n",
    re.MULTILINE,
)


class DatagramTestOptions(Options):
    """Options of a datagram-test workload. Sizes are sizes of the UDP payload."""

    packet_size: Annotated[PacketSize, Field(description="Bytes of each datagram; mtu is the largest that fits")] = (
        1468
    )
    packets: Annotated[int, Field(ge=1000, le=10**9, description="Datagrams to receive before the test ends")] = (
        2_200_000
    )
    report_interval: Annotated[
        int, Field(ge=1000, le=10**8, description="Datagrams received between two reports in the raw output")
    ] = 100_000
    rate: Annotated[
        int | None, Field(ge=1, le=10_000, description="Most MiB per second to send (default: as fast as possible)")
    ] = None
    receive_buffer: Annotated[
        int | None,
        Field(ge=1, le=10**6, description="Receive buffer, in datagrams (default: all the system grants)"),
    ] = None

    @model_validator(mode="after")
    def _check_options(self) -> "DatagramTestOptions":
        check_size("packet_size", self.packet_size, "udp", 28, LARGEST_PAYLOAD)
        if self.packets % self.report_interval:
            raise ValueError(
                f"packets ({self.packets}) must be a multiple of report_interval ({self.report_interval}), "
                "because the test counts at each report"
            )
        return self


class DatagramTest(Workload):
    """Sends datagrams from a publisher until the listener has received a number of them.

    The tool itself never ends. So our DatagramListener and DatagramPublisher run it unchanged, and send one word over
    TCP, at the number of the UDP port, when the listener's report has counted enough. There is no warm-up: the first
    reports show how the virtual machines warm up.
    """

    kind = "datagram-test"
    summary = "Coherence's Datagram Test: UDP throughput and loss at the listener"
    options = DatagramTestOptions
    packages = JRE
    maven = "coherence"

    def transports(self, options: DatagramTestOptions) -> tuple[Transport, ...]:
        """Add TCP, which carries the one word between the ends."""
        return ("tcp", "udp")

    def metrics(self, options: DatagramTestOptions) -> tuple[Metric, ...]:
        """Return throughput, packets per second, success rate and error rate, and missing and reordered packets."""
        return THROUGHPUT, PACKETS, SUCCESS, ERRORS, MISSING, OUT_OF_ORDER

    def command(self, role: Role, options: DatagramTestOptions, at: Endpoint) -> Command:
        """Start the listener, which prints a row per report to stdout and its counts to stderr, or the publisher."""
        size = ("-packetSize", str(resolved(options.packet_size, at)))
        interval = str(options.report_interval)
        common = (*size, "-tickInterval", "0", "-reportInterval", interval)
        deadline_s = options.packets / _SLOWEST_RATE + 60
        if role == "server":
            own = (at.listen, str(at.port), str(options.packets), str(options.receive_buffer or 0))
            log = ("-log", "stdout", "-logInterval", interval, "-rxTimeoutMs", str(_QUIET_MS))
            argv = (*java(self.maven, _HEAP), "weighbridge.DatagramListener", *own, *common, *log)
            return Command(argv, deadline_s + 60, listens=(("udp", at.port), ("tcp", at.port)))
        # it is also a listener, on a port of its own: on one host the server has the first
        ends = (at.client, str(at.data_port), at.address, str(at.port))
        rate = ("-txRate", str(options.rate)) if options.rate is not None else ()
        return Command((*java(self.maven, _HEAP), "weighbridge.DatagramPublisher", *ends, *common, *rate), deadline_s)

    def packet_size(self, options: DatagramTestOptions, at: Endpoint) -> int | None:
        return known_bytes(options.packet_size, at)

    def expected_s(self, options: DatagramTestOptions) -> float:
        """Assume the rate of the option, or a usual one."""
        size = options.packet_size if isinstance(options.packet_size, int) else 1468
        per_second = options.rate * 2**20 / size if options.rate is not None else _USUAL_RATE
        return _START_S + options.packets / max(per_second, _SLOWEST_RATE)

    def beside_s(self, options: DatagramTestOptions) -> float:
        """Add the start of the listener's virtual machine."""
        return _START_S

    def asked_rate(self, options: DatagramTestOptions) -> Measurement | None:
        return None if options.rate is None else Measurement(THROUGHPUT, float(options.rate))

    def parse(self, options: DatagramTestOptions, completed: Mapping[str, Completed]) -> TrialResult:
        """Read the listener's report over its lifetime at the number of packets. Raises ProgramFailed or Unparseable.

        The time begins with the first packet that arrives. So it does not include the start of the virtual machines,
        whose CPU time is in the cost of the work. A packet that the network duplicates counts twice.
        """
        require_success(completed["client"], "the publisher")
        reports = list(_REPORT.finditer(completed["server"].error_text))
        if not reports:
            raise Unparseable("the listener's output has no report")
        report = next((each for each in reports if int(each["received"]) == options.packets), None)
        if report is None:
            got = max(int(each["received"]) for each in reports)
            raise Unparseable(f"the listener's reports end at {got} of {options.packets} packets")
        seconds, size, sent = int(report["ms"]) / 1e3, int(report["size"]), int(report["sent"])
        if not (seconds and sent):
            raise Unparseable(f"the listener received {options.packets} packets in no time")
        rate, success = options.packets / seconds, 100 * options.packets / sent
        measurements = (
            Measurement(THROUGHPUT, rate * size / 2**20),
            Measurement(PACKETS, rate),
            Measurement(SUCCESS, success),
            Measurement(ERRORS, 100 - success),
            Measurement(MISSING, float(report["missing"])),
            Measurement(OUT_OF_ORDER, float(report["late"])),
        )
        return TrialResult(measurements, Work(options.packets * size * 8 / 1e9, "gbit"), sending_s=seconds)


PLUGIN = DatagramTest()
