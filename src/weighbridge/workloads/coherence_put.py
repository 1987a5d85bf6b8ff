"""Coherence: puts objects into a cache that the other member of a two-member cluster stores."""

import json
import math
from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import Field

from weighbridge.model.command import Command, Completed, Transport
from weighbridge.model.measurement import Measurement, Metric, ProgramFailed, Unparseable, require_success
from weighbridge.model.options import Options
from weighbridge.model.quantity import Size
from weighbridge.model.study import Role
from weighbridge.model.trial import TrialResult, Work
from weighbridge.model.workload import Endpoint, Length, Workload, by_seconds
from weighbridge.workloads._java import JRE, java
from weighbridge.workloads._seconds import WholeSeconds

RATE = Metric("rate", "1/s", "higher")
OBJECTS = Metric("objects", "count", "higher")
MEAN = Metric("latency_mean", "us", "lower")
P50 = Metric("latency_p50", "us", "lower")
P99 = Metric("latency_p99", "us", "lower")

_START_S = 4.0
"""The usual time until a member has joined."""


class CoherencePutOptions(Options):
    """Options of a coherence-put workload."""

    duration: Annotated[WholeSeconds, Field(ge=1, le=86400, description="Measured time, in whole seconds")] = 10.0
    warm_up: Annotated[WholeSeconds, Field(ge=0, le=3600, description="Warm-up before the measured time")] = 5.0
    value_length: Annotated[int, Field(ge=1, le=10**6, description="Random characters per value")] = 700
    transport: Annotated[
        Literal["tcp", "datagram"], Field(description="Transport of the members' messages: TCP bus, or datagrams")
    ] = "tcp"
    heap: Annotated[Size, Field(ge=32 * 2**20, le=2**36, description="Heap of each member")] = 64 * 2**20


class CoherencePut(Workload):
    """Starts a member with storage (server), and a member without storage that puts single objects (client).

    The client removes the previous key and puts the next one, so the cache keeps one object. Only the put is timed.
    The members find each other at one well-known address, and the cluster is named after its address and port.
    """

    kind = "coherence-put"
    summary = "Coherence: objects put into another member's cache, and the latency of a put"
    options = CoherencePutOptions
    packages = JRE
    maven = "coherence"
    server_calls_client = True

    def transports(self, options: CoherencePutOptions) -> tuple[Transport, ...]:
        """Return both: members find each other by datagrams, even if TCP carries their messages."""
        return ("tcp", "udp")

    def metrics(self, options: CoherencePutOptions) -> tuple[Metric, ...]:
        """Return objects per second, objects, and the latency of a put in microseconds."""
        return RATE, OBJECTS, MEAN, P50, P99

    def command(self, role: Role, options: CoherencePutOptions, at: Endpoint) -> Command:
        """Start Coherence's own cache server, or the client, which prints one line of JSON."""
        deadline_s = options.warm_up + options.duration + 90
        if role == "server":
            member = _member(options, at.listen, at.listen, at.port)
            return Command(
                (*member, "com.tangosol.net.DefaultCacheServer"), deadline_s + 60, listens=(("tcp", at.port),)
            )
        argv = _member(options, at.address, at.client, at.port, "coherence.distributed.localstorage=false")
        times = (f"{options.warm_up:.0f}", f"{options.duration:.0f}")
        return Command((*argv, "weighbridge.PutClient", *times, str(options.value_length)), deadline_s)

    def expected_s(self, options: CoherencePutOptions) -> float:
        return _START_S + options.warm_up + options.duration

    def beside_s(self, options: CoherencePutOptions) -> float:
        """Return the start of the storage member; the client's own start and warm-up are in its time."""
        return _START_S

    def length(self, options: CoherencePutOptions) -> Length:
        return by_seconds(1, RATE.name)

    def parse(self, options: CoherencePutOptions, completed: Mapping[str, Completed]) -> TrialResult:
        """Read the client's counts, and the latency of a put from its histogram. Raises ProgramFailed or Unparseable.

        The work is the objects of the measured time. Its CPU time includes the start and the warm-up.
        """
        from weighbridge.statistics.histogram import Histogram

        report = _report(completed["client"])
        try:
            objects, seconds = int(report["objects"]), float(report["seconds"])
            members, kept_objects = int(report["members"]), int(report["kept"])
            mean, histogram = float(report["latency_mean_ns"]), Histogram.decode(report["latency_ns"])
        except (KeyError, TypeError, ValueError, OverflowError) as error:
            raise Unparseable(f"the put client printed no usable result ({error})") from error
        if options.transport == "datagram" and b"tmb://" in completed["client"].stderr:
            raise ProgramFailed("the members used the TCP bus, not datagrams")
        if members != 2 or kept_objects != 1:
            raise ProgramFailed(
                f"the cluster had {members} members, not 2, and the cache kept {kept_objects} objects, not 1"
            )
        if histogram.count != objects or not options.duration <= seconds < math.inf:
            raise Unparseable(
                f"the put client reports {objects} objects in {seconds:g} s, its histogram {histogram.count}"
            )
        if not (objects and 0 < mean <= histogram.maximum):
            raise Unparseable(f"the put client reports an impossible mean latency of {mean:g} ns")
        measurements = (
            Measurement(RATE, objects / seconds),
            Measurement(OBJECTS, objects),
            Measurement(MEAN, mean / 1e3),
            Measurement(P50, histogram.percentile(50) / 1e3),
            Measurement(P99, histogram.percentile(99) / 1e3),
        )
        return TrialResult(
            measurements,
            Work(objects / 1000, "1000_objects"),
            sending_s=options.warm_up + options.duration,  # the warm-up puts too
            histograms={"latency": str(report["latency_ns"])},
        )


def _member(options: CoherencePutOptions, well_known: str, own: str, port: int, *arguments: str) -> tuple[str, ...]:
    """Return the beginning of a member's command line. Members with other names or ports form other clusters.

    Members find each other at this port. They choose free ports for their messages.
    """
    properties = [
        f"coherence.wka={well_known}",
        f"coherence.localhost={own}",
        f"coherence.clusterport={port}",
        f"coherence.cluster=weighbridge-{port}",
        "coherence.join.timeout=500",
        "coherence.management=none",
    ]
    properties += ["coherence.transport.reliable=datagram"] if options.transport == "datagram" else []
    return java("coherence", options.heap, *properties, *arguments)


def _report(client: Completed) -> dict[str, Any]:
    """Return the client's line of JSON."""
    require_success(client, "the put client")
    try:
        report = json.loads(client.text)
    except (ValueError, RecursionError) as error:
        raise Unparseable(f"the put client's output is not JSON ({error})") from error
    if not isinstance(report, dict):
        raise Unparseable("the put client's output is not a JSON object")
    return report


PLUGIN = CoherencePut()
