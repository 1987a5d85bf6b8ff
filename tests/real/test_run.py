"""A complete run of every workload in every environment, from the command line, and a clean machine after it."""

import csv
import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from .machine import Machine
from .weighing import facts, kinds_in_every_environment, trials, weighbridge, write_study

ENVIRONMENTS = (
    "native: {kind: native}",
    "netns: {kind: netns}",
    "host: {kind: docker, network: host}",
    "bridge: {kind: docker, network: bridge}",
    "gateway: {kind: docker, network: bridge, publish: true}",
    "loopback: {kind: docker, network: bridge, publish: true, publish_on: loopback}",
)
SMALL = {
    "iperf3": "protocol: udp, bitrate: 20Mbit/s, duration: 1s",
    "sysbench-cpu": "count: 100",
    "redis-benchmark": "requests: 2000, clients: 5",
    "datagram-test": "packets: 20000, report_interval: 10000, rate: 20",
    "coherence-put": "duration: 1s, warm_up: 0s",
    "dd": "file_size: 1MiB",
    "syscalls": "duration: 50ms",
    "allocations": "duration: 50ms, threads: 2",
    "stream": "array_size: 1MiB, rounds: 2",
    "compress": "size: 64KiB",
    "sysbench-mutex": "locks: 10000",
    "sysbench-fileio": "file_size: 16MiB, files: 4, duration: 1s",
    "boot": "duration: 0s",
    "density": "sites: 2",
    "command": "run: sleep 0.1",
}
"""What makes a workload short, where it is not ``duration: 1s``."""


REPEATED = ("waited for a lost message", "did not listen on")
"""Parts of the messages of trials that fail, and are repeated, if the machine is busy."""


def small(kind: str) -> str:
    """The workload as a line of a study file."""
    return f"{kind}: {{kind: {kind}, {SMALL.get(kind, 'duration: 1s')}}}"


CALL_BACK = kinds_in_every_environment(calls_back=True)
FEW = ("iperf3", "redis-benchmark")


@pytest.mark.parametrize(
    ("kinds", "names"),
    [
        (kinds_in_every_environment(calls_back=False), "native bridge"),
        (FEW, "native netns host bridge gateway loopback"),
        (CALL_BACK, "native bridge"),  # they are refused where only their port is published
    ],
)
def test_every_workload_and_every_environment(machine: Machine, tmp_path: Path, kinds: Sequence[str], names: str):
    """What a workload needs, a container lacks or native does; what a network needs, a few workloads show."""
    workloads = (*(small(kind) for kind in kinds), *(["tcp: {kind: iperf3, amount: 16MiB}"] if kinds is FEW else []))
    environments = tuple(line for line in ENVIRONMENTS if line.partition(":")[0] in names.split())
    study = write_study(
        tmp_path, environments=environments, workloads=workloads, blocks=1,
        resources="{cpus: 1, memory: 512MiB, pin: spread}",
    )  # fmt: skip
    run = tmp_path / "run"
    done = weighbridge("run", study, "--out", run, "--yes")
    assert done.code == 0, done
    assert "Traceback" not in done.stderr
    assert done.stdout.splitlines()[-1] == f"report: {run / 'report.html'}"
    machine.must_be_unchanged()

    saved = [row for row in trials(run) if not any(each in row["message"] for each in REPEATED)]
    assert len(saved) == len(environments) * len(workloads)
    assert {row["outcome"] for row in saved} == {"ok"}
    known = facts(run)
    packages = {value for (_, key), value in known.items() if key == "packages"}
    assert len(packages) == 1 and len(packages.pop()) == 64
    refused = {scope for scope, key in known if key.startswith("not honoured")}
    by_proxy = {"loopback/server"} if "loopback" in names else set()
    assert refused == by_proxy, "docker-proxy carries its traffic outside all limits"
    _reports(run, tmp_path / "tables")
    checked = weighbridge("clean", "--check")
    assert (checked.code, checked.stdout) == (0, "no leftovers\n")


def _reports(run: Path, tables: Path) -> None:
    page = (run / "report.html").read_text()
    assert "tiny" in page and "</html>" in page
    done = weighbridge("report", run, "--json")
    assert done.code == 0, done
    told = json.loads(done.stdout)
    assert {cost["environment"] for cost in told["costs"]} >= {"bridge"}
    assert weighbridge("export", run, "--csv", tables).code == 0
    for name in ("measurements.csv", "costs.csv", "programs.csv"):
        with (tables / name).open(newline="") as file:
            assert len(list(csv.DictReader(file))) > 10
    for raw in (run / "raw").iterdir():
        assert raw.name.endswith((".stdout", ".stderr"))
