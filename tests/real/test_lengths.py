"""Trials that a pilot block makes short: each program is told an amount, and works for about that long."""

import json
from pathlib import Path
from statistics import median

import pytest

from weighbridge.model.decisions import TrialLength
from weighbridge.store.run import RunStore

from .machine import Machine
from .weighing import weighbridge, write_study

WORKLOADS = {
    "tcp": "{kind: iperf3, duration: 1s}",
    "latency": "{kind: netperf, test: TCP_RR, duration: 1s, warm_up: 1s}",
    "redis": "{kind: redis-benchmark, tests: set, requests: 300000, clients: 20, pipeline: 16}",
    "cpu": "{kind: sysbench-cpu, duration: 1s}",
    "memory": "{kind: sysbench-memory, duration: 1s}",
    "web": "{kind: nginx-wrk, connections: 20, duration: 2s, warm_up: 0s}",
    "sql": "{kind: mysql-oltp, threads: 4, tables: 1, table_size: 10000, duration: 2s, warm_up: 0s}",
    "jitter": "{kind: iperf, protocol: udp, bitrate: 10Mbit/s, duration: 2s}",
}
FEW = ("tcp", "cpu", "web")
"""One that is told an amount of data, one that is told events, and one that is told when to end."""
BOTH = ("native", "bridge")
TOLD = {"tcp": "-n", "latency": "-l", "redis": "-n", "cpu": "--events", "memory": "--memory-total-size",
        "web": "--signal=INT", "sql": "--events", "jitter": "0."}  # fmt: skip


@pytest.mark.measures
@pytest.mark.promise("trials that a pilot block makes short last about as long in every environment")
@pytest.mark.parametrize(
    ("names", "within"),
    [(FEW, "20s"), pytest.param((*WORKLOADS,), "50s", marks=pytest.mark.long)],
    ids=["few", "all"],
)
def test_programs_work_for_about_as_long_everywhere(
    machine: Machine, tmp_path: Path, names: tuple[str, ...], within: str
):
    study = write_study(
        tmp_path, environments=("native: {kind: native}", "bridge: {kind: docker, network: bridge}"),
        workloads=[f"{name}: {WORKLOADS[name]}" for name in names],
        resources="{cpus: 1, memory: 512MiB, pin: spread}",
        repetitions=f"{{target: 0.1%, within: {within}, min: 2}}",
    )  # fmt: skip
    run = tmp_path / "run"
    done = weighbridge("run", study, "--out", run, "--yes")
    assert done.code == 0, done
    machine.must_be_unchanged()
    with RunStore(run) as store:
        lengths = {each.workload: each for each in store.lengths()}
        trials, processes = store.trials(), store.processes()
    assert lengths.keys() == {*names}
    assert {trial.outcome for trial in trials} == {"ok"} and min(trial.block for trial in trials) == 1
    argv = {process.trial: process.argv for process in processes if process.role != "server"}
    for name, length in lengths.items():
        for environment in BOTH:
            mine = [each for each in trials if (each.workload, each.environment) == (name, environment)]
            assert all(any(word.startswith(TOLD[name]) for word in argv[each.id]) for each in mine)
            assert 0.25 < median(each.measured_s for each in mine) / expected_s(length) < 4, (length, environment)
    told = json.loads(weighbridge("report", run, "--json").stdout)
    assert [each["workload"] for each in told["trial_lengths"]] == [*names]
    blocks = {  # the time is short and shared: workloads have different numbers of them
        name: set.intersection(*({t.block for t in trials if (t.workload, t.environment) == (name, e)} for e in BOTH))
        for name in names
    }
    costs = {each["workload"]: each["rounds"] for each in reversed(told["costs"]) if each["environment"] == "bridge"}
    assert costs == {name: len(mine) for name, mine in blocks.items()}
    assert told["time_shared"] or len({*costs.values()}) == 1


def expected_s(length: TrialLength) -> float:
    """Of the measured process: its start and its connections beside its work."""
    return length.chosen_s + 0.02
