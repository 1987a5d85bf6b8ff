"""coherence-put: its members' command lines, its histogram, and how it fails."""

import json
from typing import Any

import pytest

from sentences import raises_sentence
from weighbridge.model.measurement import ProgramFailed, Unparseable
from weighbridge.statistics.histogram import Histogram
from weighbridge.workloads.coherence_put import PLUGIN, CoherencePutOptions

from .captured import AT, data, ended, parse

GOOD = json.loads(data("coherence-put.json"))
THREE = {"duration": "3s"}


def _told(**changes: Any):
    return parse("coherence-put", THREE, json.dumps(GOOD | changes).encode())


def test_the_histogram_decodes_and_counts_every_object_in_nanoseconds():
    result = PLUGIN.parse(CoherencePutOptions.model_validate(THREE), {"client": ended(data("coherence-put.json"))})
    histogram = Histogram.decode(result.histograms["latency"])
    assert histogram.count == GOOD["objects"] == 2135
    assert histogram.mean == pytest.approx(GOOD["latency_mean_ns"], rel=1e-3)


def test_the_seconds_are_part_of_the_objects():
    assert len(GOOD["per_second"]) == 3
    assert sum(GOOD["per_second"]) <= GOOD["objects"]


@pytest.mark.parametrize(
    "changes",
    [
        {"members": 3},
        {"kept": 2},
    ],
)
def test_another_cluster_is_a_failure(changes: dict[str, Any]):
    with raises_sentence(ProgramFailed):
        _told(**changes)


@pytest.mark.parametrize(
    "changes",
    [
        {"objects": 2134}, {"seconds": 2.9}, {"seconds": float("nan")}, {"seconds": float("inf")},
        {"latency_ns": "HIST"}, {"latency_ns": None}, {"latency_mean_ns": 0}, {"latency_mean_ns": 1e12},
    ],
)  # fmt: skip
def test_what_does_not_fit_together_is_unparseable(changes: dict[str, Any]):
    with pytest.raises(Unparseable):
        _told(**changes)


def test_the_tcp_bus_in_place_of_datagrams_is_a_failure():
    with raises_sentence(ProgramFailed):
        parse(
            "coherence-put", THREE | {"transport": "datagram"}, data("coherence-put-datagram.json"),
            b"Connection established with tmb://127.0.0.1:42883.55663\n",
        )  # fmt: skip


def test_the_members_meet_at_the_servers_address_and_port():
    options = CoherencePutOptions.model_validate({"duration": "300s", "transport": "datagram", "heap": "1GiB"})
    server, client = (PLUGIN.command(role, options, AT).argv for role in ("server", "client"))
    for argv, well_known, own in ((server, AT.listen, AT.listen), (client, AT.address, AT.client)):
        assert f"-Dcoherence.wka={well_known}" in argv
        assert f"-Dcoherence.localhost={own}" in argv
        assert {"-Dcoherence.cluster=weighbridge-15201", "-Dcoherence.clusterport=15201"} < set(argv)
        assert {"-Dcoherence.transport.reliable=datagram", "-Xmx1073741824"} < set(argv)
    assert "-Dcoherence.distributed.localstorage=false" in client
    assert "-Dcoherence.distributed.localstorage=false" not in server
    assert client[-3:] == ("5", "300", "700")
    assert PLUGIN.server_calls_client and PLUGIN.maven == "coherence"
