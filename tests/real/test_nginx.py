"""Real nginx under real wrk, natively and in a container."""

import contextlib
import sqlite3
from pathlib import Path

from .machine import Machine
from .weighing import DOCKER, NATIVE, trials, weighbridge, write_study

PAGE = "page: {kind: nginx-wrk, connections: [2, 50], duration: 1s, warm_up: 0s}"
PICTURE = "picture: {kind: nginx-wrk, content: picture, connections: 10, duration: 1s, warm_up: 1s}"


def measured(run: Path) -> dict[tuple[str, str], dict[str, float]]:
    """(environment, workload and level) -> metric -> value."""
    found: dict[tuple[str, str], dict[str, float]] = {}
    with contextlib.closing(sqlite3.connect(f"file:{run / 'run.sqlite'}?mode=ro", uri=True)) as connection:
        for environment, cell, metric, value in connection.execute(
            "SELECT environment, workload || level, metric, value FROM measurement JOIN trial ON trial = trial.id"
        ):
            found.setdefault((environment, cell), {})[metric] = value
    return found


def test_page_and_picture_at_two_loads(machine: Machine, tmp_path: Path):
    study = write_study(tmp_path, environments=(NATIVE, DOCKER), workloads=(PAGE, PICTURE), blocks=1)
    done = weighbridge("run", study, "--out", tmp_path / "run", "--yes")
    assert done.code == 0, done
    assert {row["outcome"] for row in trials(tmp_path / "run")} == {"ok"}
    results = measured(tmp_path / "run")
    assert len(results) == 6
    for (_, cell), values in results.items():
        assert values["requests"] > 50
        each = values["transfer"] * 1e6 / values["requests"]
        assert 500_000 <= each <= 510_000 if "picture" in cell else 2000 < each < 5000, "an answer with its headers"
        assert 0 < values["latency_p50"] <= values["latency_p95"] <= values["latency_p99"] < 2000
        assert values["latency_mean"] > 0
        assert not any(value for metric, value in values.items() if metric.startswith("errors_"))
        assert values["cpu_server_per_1000_transactions"] > 0
    machine.must_be_unchanged()
