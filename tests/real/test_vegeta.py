"""The open loop against a real nginx: a stall that a closed loop would hide, a search, a server that is gone."""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from weighbridge import registry
from weighbridge.hosts.local import LocalHost
from weighbridge.linux.network import free_port
from weighbridge.model.command import Completed
from weighbridge.model.flag import FlagCode
from weighbridge.model.host import Limits
from weighbridge.model.measurement import Broke
from weighbridge.model.site import Site, SiteRequest
from weighbridge.model.trial import TrialResult
from weighbridge.model.userland import Userland
from weighbridge.model.workload import Endpoint
from weighbridge.workloads.nginx_vegeta import PLUGIN, NginxVegetaOptions

from .conftest import open_run

KINDS: dict[str, tuple[str, dict[str, Any]]] = {
    "native": ("native", {}),
    "bridge": ("docker", {"network": "bridge"}),
}
STALL_S = 0.2
SHORT = {"duration": "1500ms"}


@pytest.fixture(scope="module")
def sites(userland: Userland) -> Iterator[dict[str, Site]]:
    """A server's site of each kind, and a client's outside of them."""
    with open_run("5175e7e6e7a0") as run:
        opened = {}
        for name, (kind, options) in {**KINDS, "client": KINDS["native"]}.items():
            environment, role = registry.environments()[kind], "client" if name == "client" else "server"
            request = SiteRequest(run, LocalHost(run.id), f"{name}-{role}", role, userland, Limits())
            opened[name] = run.stack.enter_context(environment.open(environment.options(**options), request))
        yield opened


def _options(**given: Any) -> NginxVegetaOptions:
    return PLUGIN.options.model_validate(given)


@contextmanager
def _serving(site: Site, options: NginxVegetaOptions) -> Iterator[Endpoint]:
    at = Endpoint(site.listen, site.address, free_port())
    for path, data in PLUGIN.files("server", options, at).items():
        site.put(path, data)
    command = PLUGIN.command("server", options, at)
    server = site.start(command)
    try:
        deadline = time.monotonic() + 20
        while not site.listening(command.listens):
            assert server.poll() is None and time.monotonic() < deadline
            time.sleep(0.005)
        yield at
    finally:
        server.stop()


def _result(completed: Completed, options: NginxVegetaOptions) -> TrialResult:
    return PLUGIN.parse(options, {"client": completed})


def _measured(completed: Completed, options: NginxVegetaOptions) -> dict[str, float]:
    return {each.metric.name: each.value for each in _result(completed, options).measurements}


@pytest.mark.measures
@pytest.mark.parametrize("kind", KINDS)
def test_a_stall_of_the_server_is_seen_by_those_who_were_to_be_served_in_it(sites: dict[str, Site], kind: str):
    """200 ms of 1.5 s: each of the requests planned in them waits for its end, an eighth of all."""
    from weighbridge.statistics.histogram import Histogram

    server, options = sites[kind], _options(rate=1000, **SHORT)
    with _serving(server, options) as at:
        undisturbed = sites["client"].run(PLUGIN.command("client", options, at))
        running = sites["client"].start(PLUGIN.command("client", options, at))
        time.sleep(0.6)
        server.freeze()
        threading.Event().wait(STALL_S)
        server.thaw()
        assert running.wait(20)
        stalled = running.stop()
    calm, hit = _measured(undisturbed, options), _measured(stalled, options)
    assert hit["success"] == calm["success"] == 100
    assert hit["requests"] == pytest.approx(1000, rel=0.05)
    assert hit["latency_max"] >= 1000 * STALL_S * 0.95
    assert hit["latency_p95"] >= 1000 * STALL_S * 0.4, "the slowest twentieth began in the first half of the stall"
    assert hit["latency_p50"] < 1000 * STALL_S * 0.25, "which a median does not show"
    assert calm["latency_p50"] < hit["latency_p99"] / 4
    histogram = Histogram.decode(_result(stalled, options).histograms["latency"])
    assert histogram.count == 1500
    assert histogram.percentile(99) / 1e6 == pytest.approx(hit["latency_p99"], rel=0.002)


@pytest.mark.measures
def test_few_connections_hide_nothing_either(sites: dict[str, Site]):
    """With two connections most requests of a stall are not sent before its end: they have waited all the same."""
    server, options = sites["native"], _options(rate=1000, connections=2, **SHORT)
    with _serving(server, options) as at:
        running = sites["client"].start(PLUGIN.command("client", options, at))
        time.sleep(0.6)
        server.freeze()
        threading.Event().wait(STALL_S)
        server.thaw()
        assert running.wait(20)
        stalled = running.stop()
    assert _measured(stalled, options)["latency_p95"] >= 1000 * STALL_S * 0.4
    assert FlagCode.CONNECTION_WAIT in {flag.code for flag in _result(stalled, options).flags}


@pytest.mark.measures
def test_the_rate_at_an_objective_is_found(sites: dict[str, Site]):
    options = _options(
        objective="100ms", percentile="95%", search_from=200, search_to=800, duration="500ms", timeout="1s"
    )
    with _serving(sites["native"], options) as at:
        done = sites["client"].run(PLUGIN.command("client", options, at))
    assert _measured(done, options) == {"rate_at_objective": 800}
    assert [flag.code for flag in _result(done, options).flags] == [FlagCode.SEARCH_TO]
    assert len(done.text.splitlines()) >= 4, "each attack has its line"


def test_a_server_that_is_not_there_is_broken(sites: dict[str, Site]):
    options = _options(rate=200, duration="500ms")
    at = Endpoint("127.0.0.1", "127.0.0.1", free_port())
    done = sites["client"].run(PLUGIN.command("client", options, at))
    with pytest.raises(Broke, match=r"\b200 requests/s .*connection refused"):
        _measured(done, options)
