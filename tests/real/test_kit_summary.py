"""What the kit's summary.sh prints of rounds that worked and that did not: sh and jq alone."""

import shutil
import subprocess
from pathlib import Path

import pytest

from weighbridge.features.kit.rendering import static
from weighbridge.workloads.iperf3 import PLUGIN as IPERF3

DATA = Path(__file__).parents[1] / "workloads/data/iperf3"
pytestmark = pytest.mark.skipif(shutil.which("jq") is None, reason="jq is not installed")


def summary(folder: Path, rounds: dict[str, bytes], *text_only: str) -> list[str]:
    """The lines of the summary of a kit with these outputs of iperf3, and with workloads that print text."""
    scripts, results = folder / "environments/native/tcp", folder / "results/native/tcp"
    scripts.mkdir(parents=True)
    results.mkdir(parents=True)
    (scripts / "headline.jq").write_text(f"# throughput in Mbit/s\n{IPERF3.jq(IPERF3.options())}\n")
    for name, output in rounds.items():
        (results / name).write_bytes(output)
    for workload in text_only:
        (folder / f"environments/native/{workload}").mkdir()
        (folder / f"environments/native/{workload}/client.sh").touch()
    (folder / "summary.sh").write_bytes(static("summary.sh"))
    return subprocess.run(
        ["sh", folder / "summary.sh"], check=True, capture_output=True, text=True
    ).stdout.splitlines()


def test_a_value_that_is_missing_is_no_zero(tmp_path: Path):
    interrupted = (DATA / "iperf3-tcp.json").read_bytes()[:300]
    said = summary(tmp_path, {"001.out": interrupted, "002.out": b"", "003.compose": b"no such network"})
    assert said[1:] == ["native\ttcp\tthroughput in Mbit/s\t0 of 3\t-\t-\t-"]


def test_rounds_without_a_value_are_in_no_figure(tmp_path: Path):
    good = (DATA / "iperf3-tcp.json").read_bytes()
    said = summary(tmp_path / "one", {"001.out": good, "001.err": b"", "002.out": b"", "003.server": b""})
    _, _, _, rounds, mean, deviation, cv = said[1].split("\t")
    assert (rounds, deviation, cv) == ("1 of 3", "-", "-") and float(mean) > 1
    said = summary(tmp_path / "two", {"001.out": good, "002.out": good, "003.out": b"{}"})
    assert said[1].split("\t")[3:] == ["2 of 3", mean, "0", "0 %"]


def test_workloads_that_print_text_are_named(tmp_path: Path):
    said = summary(tmp_path, {"001.out": (DATA / "iperf3-tcp.json").read_bytes()}, "cpu", "sys")
    assert len(said) == 3
    assert said[-1] == "not summarised: cpu, sys: see results/ENVIRONMENT/WORKLOAD/*.out"
