"""The replication of hypervisor-network: a guest of 128 MiB comes up, serves both clients, and its rows say TCG."""

import json
from pathlib import Path

import pytest

from weighbridge import registry
from weighbridge.runner.preflight import ready

from .weighing import weighbridge

QEMU = ready(registry.environments()["qemu"])
pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(not QEMU.ready, reason=QEMU.detail),
    pytest.mark.promise("a replication's rows of an emulated guest say that it was emulated"),
]


def test_one_short_block_stands_beside_the_published_ratios(tmp_path: Path):
    study, run = tmp_path / "study.yaml", tmp_path / "run"
    assert weighbridge("init", "--from", "hypervisor-network", study).code == 0
    text = study.read_text().replace("duration: 5s", "duration: 1s")
    study.write_text(text.replace("baseline: native\n", "baseline: native\naa: false\n"))
    ended = weighbridge("run", study, "--blocks", 1, "--yes", "--out", run)
    assert ended.code == 0, ended
    said = weighbridge("replicate", "--report", run, "--json")
    assert said.code == 0, said
    rows = [row for row in json.loads(said.stdout)["rows"] if row["environment"] == "qemu-tcg"]
    assert [row["published"]["estimate"] for row in rows] == [0.5, 0.5]
    for row in rows:
        assert row["against"] == "native" and row["measured"]["emulated"], row
        assert row["measured"]["layers"] == [{"name": "QEMU, TCG", "emulated": True}]
        assert 0 < row["measured"]["estimate"] < 1
    assert "qemu-tcg (QEMU, TCG: emulated)" in (run / "replication.html").read_text()
