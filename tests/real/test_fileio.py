"""sysbench fileio natively and in a container, on a volume: every mode of writing and way of syncing."""

from pathlib import Path

from .machine import Machine
from .weighing import NATIVE, trials, weighbridge, write_study

SMALL = "kind: sysbench-fileio, file_size: 32MiB, files: 4, duration: 1s"
WORKLOADS = (
    f"write: {{{SMALL}, mode: rndrw, fsync: [100, all]}}",
    f"make: {{{SMALL}, mode: seqwr, fsync: end, cold: false}}",
    f"hand-in: {{{SMALL}, mode: rndwr, io_mode: async, fsync: never, cold: false}}",
    f"map: {{{SMALL}, mode: seqrewr, io_mode: mmap, fsync: end, cold: false}}",
)
ENVIRONMENTS = (
    NATIVE,
    "volume: {kind: docker, network: none, storage: volume}",
)


def test_every_mode_on_every_storage(machine: Machine, tmp_path: Path):
    """The second level of fsync finds the files that the first has left."""
    study = write_study(
        tmp_path, environments=ENVIRONMENTS, workloads=WORKLOADS, blocks=1, resources="{memory: 256MiB}"
    )
    run = tmp_path / "run"
    done = weighbridge("run", study, "--out", run, "--yes")
    assert done.code == 0, done
    saved = trials(run)
    assert len(saved) == 2 * 5
    assert {(row["outcome"], row["message"]) for row in saved} == {("ok", "")}
    machine.must_be_unchanged()
