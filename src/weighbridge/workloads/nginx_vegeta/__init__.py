"""The workload `nginx-vegeta`: vegeta sends requests to nginx at a constant rate, even if answers are late."""

from collections.abc import Mapping
from math import ceil, log2
from typing import Annotated

from pydantic import Field, model_validator

from weighbridge.model.command import Command, Completed, Transport
from weighbridge.model.measurement import Measurement, Metric
from weighbridge.model.quantity import Duration, Share
from weighbridge.model.study import Role
from weighbridge.model.trial import TrialResult, Work
from weighbridge.model.workload import Endpoint, Workload
from weighbridge.workloads import _nginx
from weighbridge.workloads._nginx import NginxOptions
from weighbridge.workloads.nginx_vegeta import vegeta
from weighbridge.workloads.nginx_vegeta.vegeta import ERRORS, LATENCIES, RATE_AT_OBJECTIVE, REQUESTS, SUCCESS

_WARM_UP_S = 1.0
_PAUSE_S = 0.3
"""The pause between the attacks of a search, as in search.go."""


class NginxVegetaOptions(NginxOptions):
    """Options of nginx under an open loop: a fixed rate, or a latency objective whose rate is searched."""

    rate: Annotated[
        int | None,
        Field(ge=1, le=1_000_000, description="Load in requests per second (1000 without an objective)"),
    ] = None
    objective: Annotated[
        Duration | None,
        Field(gt=0, le=60, description="Find the highest rate that meets this latency, instead of a given rate"),
    ] = None
    percentile: Annotated[
        Share, Field(ge=0.5, le=0.9999, description="Share of requests that must meet the objective")
    ] = 0.99
    search_from: Annotated[int, Field(ge=1, le=1_000_000, description="First rate to try")] = 200
    search_to: Annotated[int, Field(ge=1, le=1_000_000, description="Highest rate to try")] = 100_000
    duration: Annotated[Duration, Field(ge=0.5, le=86400, description="Measured time; in a search, of each rate")] = (
        10.0
    )
    timeout: Annotated[
        Duration, Field(ge=0.01, le=60, description="A request that takes longer counts as an error")
    ] = 2.0
    connections: Annotated[
        int, Field(ge=1, le=60_000, description="Most connections; a request waits if none is free")
    ] = 4000

    @model_validator(mode="before")
    @classmethod
    def _a_rate_unless_it_is_searched(cls, raw_options: object) -> object:
        if (
            isinstance(raw_options, Mapping)
            and raw_options.get("rate") is None
            and raw_options.get("objective") is None
        ):
            return {**raw_options, "rate": 1000}
        return raw_options

    @model_validator(mode="after")
    def _check_options(self) -> "NginxVegetaOptions":
        if self.objective is None:
            return self
        if self.rate is not None:
            raise ValueError(
                "rate and objective exclude each other, because an objective makes Weighbridge search for the rate"
            )
        if self.objective > self.timeout:
            raise ValueError(
                "objective must not be longer than timeout, because a request that timed out cannot meet it"
            )
        if self.search_from > self.search_to:
            raise ValueError("search_from must not be higher than search_to")
        if self.search_from * self.duration * (1 - self.percentile) < 1 - 1e-9:
            fewest = ceil(1 / (1 - self.percentile) / self.duration - 1e-9)
            raise ValueError(f"search_from gives too few requests for the percentile. Try: search_from: {fewest}")
        return self

    @property
    def most_attacks(self) -> int:
        """Return the most attacks that a search makes. It can try each rate twice."""
        doublings = ceil(log2(self.search_to / self.search_from)) + 1
        return 2 * (max(doublings, ceil(log2(self.search_from)) + 1) + 6)


class NginxVegeta(Workload):
    """An open loop, like real users, who do not wait for each other. Latency starts at the planned send.

    The generator is our own program on vegeta's library (``programs/vegeta``). vegeta itself starts at the real send,
    which hides the time that a request waited for a connection or for the generator.

    The headline is the 99th percentile of latency. At a given rate every environment that keeps up answers the same
    requests per second. So isolation costs time, and stalls are in the tail, where a median does not show them. With
    an objective the headline is the highest rate that meets it, to within 5%.
    """

    kind = "nginx-vegeta"
    summary = (
        "nginx and vegeta: latency from the planned send at a constant rate, or the rate that meets an objective"
    )
    options = NginxVegetaOptions
    packages = _nginx.PACKAGES
    golang = "vegeta"

    def transports(self, options: NginxVegetaOptions) -> tuple[Transport, ...]:
        return ("tcp",)

    def load(self, options: NginxVegetaOptions) -> str:
        return "rate"

    def metrics(self, options: NginxVegetaOptions) -> tuple[Metric, ...]:
        """Return latencies in ms, answers per second, success in %, and errors; or only the rate of a search."""
        if options.objective is not None:
            return (RATE_AT_OBJECTIVE,)
        return (*LATENCIES.values(), REQUESTS, SUCCESS, *ERRORS.values())

    def command(self, role: Role, options: NginxVegetaOptions, at: Endpoint) -> Command:
        """Start nginx, or the generator, which also runs a complete search."""
        client = _client(options, at, options.duration, search=options.objective is not None)
        if role == "client":
            return client
        return _nginx.server(options, at, deadline_s=client.deadline_s + 2 * _DEADLINE_S + 60)

    def files(self, role: Role, options: NginxVegetaOptions, at: Endpoint) -> Mapping[str, bytes]:
        return _nginx.files(options, at) if role == "server" else {}

    def warm_up(self, options: NginxVegetaOptions, at: Endpoint) -> Command:
        """Send requests at the rate for one second."""
        return _client(options, at, min(_WARM_UP_S, options.duration), search=False)

    def generator_threads(self, options: NginxVegetaOptions) -> int:
        """Return the connections: Go spreads them over all CPUs that it can use."""
        return options.connections

    def expected_s(self, options: NginxVegetaOptions) -> float:
        """Assume that a search tries each power of two below 20,000, then six rates, and two of them twice."""
        if options.objective is None:
            return options.duration + 0.1
        doublings = log2(max(2.0, min(options.search_to, 20_000) / options.search_from))
        return (doublings + 8) * (options.duration * 0.8 + _PAUSE_S)

    def beside_s(self, options: NginxVegetaOptions) -> float:
        return min(_WARM_UP_S, options.duration)

    def asked_rate(self, options: NginxVegetaOptions) -> Measurement | None:
        """Return the requests per second. A search has none."""
        return None if options.rate is None else Measurement(REQUESTS, float(options.rate))

    def parse(self, options: NginxVegetaOptions, completed: Mapping[str, Completed]) -> TrialResult:
        """Read the generator's last line. Raises Broke, ProgramFailed or Unparseable.

        Latency starts at the planned send, and the work is answered requests. The rates of a search differ, so it has
        no work and no histogram, and works for its complete time. Flags show if the generator was the limit.
        """
        server_limit = _nginx.limit_met(completed.get("server"))
        if options.objective is not None:
            client = completed["client"]
            rate, flags = vegeta.search(client, options.objective, options.percentile, server_limit)
            return TrialResult((Measurement(RATE_AT_OBJECTIVE, rate),), work_s=client.duration_s, flags=flags)
        attack = vegeta.attack(completed["client"], float(options.rate or 0), server_limit)
        values = {
            **{metric: attack[f"{key}_ns"] / 1e6 for key, metric in LATENCIES.items()},
            REQUESTS: attack["answered"] / attack["seconds"],
            SUCCESS: 100 * attack["answered"] / attack["planned"],
            **{metric: attack["errors"][key] for key, metric in ERRORS.items()},
        }
        return TrialResult(
            tuple(Measurement(metric, values[metric]) for metric in self.metrics(options)),
            Work(attack["answered"] / 1000, "1000_transactions"),
            histograms={"latency": str(attack["histogram"])},
            flags=vegeta.lateness(attack),
        )


_DEADLINE_S = 60.0
"""The time that a client can need in addition to its attacks."""


def _client(options: NginxVegetaOptions, at: Endpoint, duration_s: float, *, search: bool) -> Command:
    attacks = options.most_attacks if search else 1
    argv = [f"weighbridge-{NginxVegeta.golang}", "-url", _nginx.url(options, at)]
    argv += ["-duration", _milliseconds(duration_s), "-timeout", _milliseconds(options.timeout)]
    argv += ["-connections", str(options.connections)]
    if search:
        argv += ["-objective", f"{(options.objective or 0) * 1e6:.0f}us", "-share", f"{options.percentile:g}"]
        argv += ["-from", str(options.search_from), "-to", str(options.search_to)]
    else:
        argv += ["-rate", str(options.rate or options.search_from)]
    return Command(tuple(argv), attacks * (duration_s + 2 * options.timeout + _PAUSE_S) + _DEADLINE_S)


def _milliseconds(seconds: float) -> str:
    return f"{seconds * 1e3:.0f}ms"


PLUGIN = NginxVegeta()
