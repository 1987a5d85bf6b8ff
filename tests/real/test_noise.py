"""The study of a machine's noise, cut short: its programs run, and their noise is told."""

import math
from pathlib import Path

import pytest

from weighbridge.analysis.noise import machine_noise
from weighbridge.store.run import RunStore
from weighbridge.study.source import bundled

from .machine import Machine
from .weighing import trials, weighbridge


@pytest.mark.long
@pytest.mark.measures
@pytest.mark.promise("the study of a machine's noise runs, and each of its programs has a figure")
def test_its_programs_run_and_differ(machine: Machine, tmp_path: Path):
    study, run = tmp_path / "noise.yaml", tmp_path / "run"
    study.write_text(bundled()["noise"].replace("rounds: 20", "rounds: 2"))
    done = weighbridge("run", study, "--out", run, "--yes")
    assert done.code == 0, done
    assert {row["outcome"] for row in trials(run)} == {"ok"} and len(trials(run)) == 20
    with RunStore(run) as store:
        rows = machine_noise(store).rows
    assert [row.kind for row in rows] == ["compress", "stream", "iperf3", "redis-benchmark", "dd"]
    for row in rows:
        assert row.pairs == 2 and 0 < row.variation < math.log(4) and 0.01 < row.trial_s < 10, row
