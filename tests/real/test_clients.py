"""Clients on this machine and on another host in one study: each path is probed, and nothing of it is left."""

import json
from pathlib import Path
from typing import Any

import pytest

from weighbridge.model.userland import Userland

from .machine import Machine
from .weighing import facts, trials, weighbridge

STUDY = """
study: places
question: Does it run?
hosts: {here: {kind: local}, elsewhere: {kind: testbed}}
placement: {server: here, client: [here, elsewhere]}
baseline: native
aa: false
meters: {source: "off"}
ladder: [native, inner, port]
environments:
  native: {kind: native}
  inner:  {kind: netns, clients: [here]}
  port:   {kind: docker, network: bridge, publish: true}
  proxy:  {kind: docker, network: bridge, publish: true, publish_on: loopback, clients: [here]}
workloads:
  tcp: {kind: iperf3, amount: 16MiB}
  cpu: {kind: sysbench-cpu, count: 100}
repetitions: {blocks: 1}
"""


@pytest.fixture(scope="module")
def run(userland: Userland, tmp_path_factory: pytest.TempPathFactory) -> Path:
    before = Machine.as_it_is()
    folder = tmp_path_factory.mktemp("clients")
    (folder / "study.yaml").write_text(STUDY)
    done = weighbridge("run", folder / "study.yaml", "--out", folder / "run", "--yes")
    assert done.code == 0, done
    before.must_be_unchanged()
    return folder / "run"


def paths(run: Path) -> dict[str, Any]:
    return {key: json.loads(value) for (scope, key), value in facts(run).items() if scope == "path"}


def test_every_environment_is_measured_with_the_clients_that_reach_it(run: Path):
    measured = {(row["workload"], row["level"], row["environment"]) for row in trials(run) if row["outcome"] == "ok"}
    here, elsewhere = '{"client": "here"}', '{"client": "elsewhere"}'
    assert measured == {
        *(("tcp", here, name) for name in ("native", "inner", "port", "proxy")),
        *(("tcp", elsewhere, name) for name in ("native", "port")),
        *(("cpu", "{}", name) for name in ("native", "inner", "port", "proxy")),
    }


def test_the_paths_are_what_they_are(run: Path):
    found = paths(run)
    assert set(found) == {
        "native@here", "inner@here", "port@here", "proxy@here", "native@elsewhere", "port@elsewhere",
    }  # fmt: skip
    kinds = {name: [each["kind"] for each in path["interfaces"]] for name, path in found.items()}
    assert kinds["native@here"] == ["loopback"] and found["native@here"]["mss"] > 9000
    assert kinds["inner@here"] == ["veth", "veth"] and found["inner@here"]["translation"] == "none"
    assert sorted(kinds["port@here"]) == ["bridge", "veth", "veth"]
    assert found["port@here"]["translation"] == "destination" and "nat OUTPUT" in found["port@here"]["hooks"]
    assert found["proxy@here"]["translation"] == "proxy" and "loopback" in kinds["proxy@here"]
    for name in ("inner@here", "port@here", "native@elsewhere", "port@elsewhere"):
        assert found[name]["mss"] == 1448 and min(each["mtu"] for each in found[name]["interfaces"]) == 1500
    assert found["native@elsewhere"]["routers"] == 0 and found["port@elsewhere"]["routers"] == 1
    assert found["port@elsewhere"]["rules"] > found["native@elsewhere"]["rules"]
    assert "filter FORWARD" in found["port@elsewhere"]["hooks"]


def test_the_report_tells_the_paths_and_steps_over_what_is_not_there(run: Path):
    document = json.loads(weighbridge("report", run, "--json").stdout)
    assert set(document["paths"]) == set(paths(run))
    steps = {
        (step["environment"], step["level"].get("client")): step["against"]
        for step in document["ladder"]
        if step["workload"] == "tcp" and step["metric"] == "throughput"
    }
    assert steps == {("inner", "here"): "native", ("port", "here"): "inner", ("port", "elsewhere"): "native"}
    codes = {
        (cost["environment"], cost["level"].get("client")): [document["remarks"][n]["code"] for n in cost["remarks"]]
        for cost in document["costs"]
        if cost["workload"] == "tcp" and cost["metric"] == "throughput"
    }
    assert "path" in codes["port", "here"] and "path" not in codes["port", "elsewhere"]
