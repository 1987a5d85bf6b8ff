"""The classic microbenchmarks under limits, in every way that they have of being run."""

from pathlib import Path

from .weighing import NATIVE, trials, weighbridge, write_study

WORKLOADS = (
    "linpack: {kind: linpack, size: 300, block: 64, repeats: 2, threads: [1, 2]}",
    "compress: {kind: compress, size: 1MiB, program: [xz, pbzip2], direction: [compress, decompress], threads: 2}",
    "stream: {kind: stream, array_size: 4MiB, rounds: 3, threads: [1, 2]}",
    "calls: {kind: syscalls, duration: 50ms}",
)


def _study(folder: Path, *environments: str, workloads: tuple[str, ...], resources: str) -> Path:
    study = write_study(folder, environments=environments, workloads=workloads, blocks=1, resources=resources)
    done = weighbridge("run", study, "--out", folder / "run", "--yes")
    assert done.code in (0, 9), done
    return folder / "run"


def test_in_every_way(tmp_path: Path):
    run = _study(tmp_path, NATIVE, workloads=WORKLOADS, resources="{cpus: 1, memory: 512MiB}")
    saved = trials(run)
    assert len(saved) == 2 + 4 + 2 + 1
    assert {(row["outcome"], row["message"]) for row in saved} == {("ok", "")}


def test_more_memory_than_the_site_has_is_a_recorded_failure(tmp_path: Path):
    workload = "stream: {kind: stream, array_size: 512MiB}"
    run = _study(tmp_path, NATIVE, workloads=(workload,), resources="{cpus: 1, memory: 128MiB}")
    (message,) = {row["message"] for row in trials(run)}
    assert "weighbridge-stream exited with code -9" in message
