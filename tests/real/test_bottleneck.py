"""A cable that is full hides the cost of a latency; without its limit the same workload shows it."""

import json
from pathlib import Path
from typing import Any

import pytest

from .between import NATIVE, write
from .weighing import facts, trials, weighbridge, write_study

pytestmark = pytest.mark.measures  # how full a cable is

HOSTS = ('a: {kind: testbed, link: 20mbit, cpus: "0"}', 'b: {kind: testbed, link: 20mbit, cpus: "1"}')
BRIDGE = "bridge: {kind: docker, network: bridge, attach: interface}"
OVERLAY = "overlay: {kind: docker, network: overlay}"
_RR = "{kind: netperf, test: UDP_RR, request_size: 1000B, duration: 1s"
WORKLOADS = (
    f"capped: {_RR}}}", f"free: {_RR}, link: none}}", "tcp: {kind: iperf3, duration: 1s}",
    "paced: {kind: iperf3, protocol: udp, bitrate: 5Mbit/s, duration: 1s}",
)  # fmt: skip
CAP = 20e6 / (8 * (1000 + 28 + 14 + 24))
"""Transactions per second that a cable of 20 Mbit/s lets through, each way."""


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("bottleneck")
    environments, further = (NATIVE, BRIDGE, OVERLAY), ("cpu_idle: auto",)
    study = write(folder, environments=environments, workloads=WORKLOADS, blocks=2, hosts=HOSTS, further=further)
    done = weighbridge("run", study, "--out", folder / "run", "--yes")
    assert done.code == 0, done
    return folder / "run"


@pytest.fixture(scope="module")
def report(run: Path) -> dict[str, Any]:
    done = weighbridge("report", run, "--json")
    assert done.code == 0, done
    document: dict[str, Any] = json.loads(done.stdout)
    return document


def bottlenecks(run: Path, workload: str) -> list[dict[str, Any]]:
    """The bottleneck of each trial of a workload: exactly one."""
    found = []
    for trial in trials(run):
        if trial["workload"] == workload and trial["outcome"] == "ok":
            (flag,) = [each for each in json.loads(trial["flags"]) if each["code"].startswith("bottleneck-")]
            found.append(flag)
    assert len(found) == 6
    return found


def cost(report: dict[str, Any], environment: str, workload: str, metric: str) -> dict[str, Any]:
    keys = (environment, workload, metric)
    (found,) = [each for each in report["costs"] if (each["environment"], each["workload"], each["metric"]) == keys]
    return found


@pytest.mark.parametrize("workload", ["capped", "tcp"])
def test_a_full_cable_is_counted_on_the_wire(run: Path, workload: str):
    named = bottlenecks(run, workload)
    full = [flag for flag in named if flag["code"] == "bottleneck-cable"]
    assert len(full) > 0.6 * len(named), "a trial or two may wait for a CPU that a hypervisor took"
    for flag in full:
        assert flag["where"].startswith(("host a", "host b")), flag
        assert flag["figures"]["rate"] == 20e6 and 0.9 <= flag["figures"]["share"] <= 1.0


def test_a_rate_that_was_asked_for_is_named(run: Path):
    named = bottlenecks(run, "paced")
    met = [flag for flag in named if flag["code"] == "bottleneck-asked-rate"]
    assert len(met) >= len(named) - 1, "of a trial of one second a hypervisor may take the 5 % that are allowed"
    assert {flag["figures"]["rate"] for flag in met} == {5.0}


def test_without_the_limit_no_cable_is_named(run: Path):
    assert all(flag["code"] != "bottleneck-cable" for flag in bottlenecks(run, "free"))
    assert facts(run)["links", "link of free"]


def test_latency_at_the_cap_is_hidden_and_without_it_is_not(report: dict[str, Any]):
    capped = cost(report, "bridge", "capped", "rate")
    assert capped["verdict"] == "hidden" and capped["hidden"]["by"] == "cable"
    assert capped["baseline_value"] == pytest.approx(CAP, rel=0.15)
    for environment in ("bridge", "overlay"):
        assert cost(report, environment, "capped", "rate")["verdict"] != "equivalent"
        free = cost(report, environment, "free", "rate")
        assert free["baseline_value"] > 1.5 * CAP and free["hidden"] is None


def test_the_link_of_a_network_namespace_is_a_cable_too(tmp_path: Path):
    slow = "slow: {kind: netns, rate: 20Mbit/s}"
    tcp = "tcp: {kind: iperf3, duration: 1s}"
    study = write_study(tmp_path, environments=("native: {kind: native}", slow), workloads=(tcp,), blocks=1)
    done = weighbridge("run", study, "--out", tmp_path / "run", "--yes")
    assert done.code == 0, done
    named = {trial["environment"]: json.loads(trial["flags"])[-1] for trial in trials(tmp_path / "run")}
    assert (named["slow"]["code"], named["slow"]["where"]) == ("bottleneck-cable", "server"), named
    assert named["native"]["code"] != "bottleneck-cable"
