"""Known weights on the scale: a cost that is put on by hand is read back, and the link goes away again."""

import json
from pathlib import Path

import pytest

from .machine import Machine
from .weighing import CPU, weighbridge, write_study


def read(run: Path, environment: str) -> float:
    """The typical ratio of an environment's headline metric."""
    done = weighbridge("report", run, "--json")
    assert done.code == 0, done
    costs = json.loads(done.stdout)["costs"]
    return float(next(cost["typical"] for cost in costs if cost["environment"] == environment))


@pytest.mark.measures
def test_half_of_the_cpu_time_is_read_as_half(machine: Machine, tmp_path: Path):
    study = write_study(
        tmp_path, environments=("native: {kind: native}", "half: {kind: native, cpu_share: 50%}"), workloads=(CPU,),
        resources="{cpus: 0.5, cpu_period: 10ms}", further=("cpu_idle: auto",),
    )  # fmt: skip
    assert weighbridge("run", study, "--out", tmp_path / "run", "--yes").code == 0
    assert read(tmp_path / "run", "half") == pytest.approx(0.5, rel=0.1)
    machine.must_be_unchanged()


@pytest.mark.measures
def test_half_of_the_link_rate_is_read_as_half(machine: Machine, tmp_path: Path):
    study = write_study(
        tmp_path,
        environments=("native: {kind: netns, rate: 100Mbit/s}", "half: {kind: netns, rate: 50Mbit/s}"),
        workloads=("tcp: {kind: iperf3, duration: 1s}",),
    )
    assert weighbridge("run", study, "--out", tmp_path / "run", "--yes").code == 0
    assert read(tmp_path / "run", "half") == pytest.approx(0.5, rel=0.05)
    machine.must_be_unchanged()
