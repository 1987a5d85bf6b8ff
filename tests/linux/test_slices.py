"""What runs have in systemd's slices, and that nothing of it stays."""

import shutil
from pathlib import Path

import pytest

from sentences import raises_sentence
from weighbridge.linux import slices
from weighbridge.linux.slices import RunSlices, slice_of
from weighbridge.model.cleanup import NO_RUN, Leftover, OrphanedRun, RunFolders
from weighbridge.model.names import RunId

RUN, OTHER = RunId("0123456789ab"), RunId("ba9876543210")


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Control groups of version 2, with a systemd that removes the groups of slices that it is told to stop."""
    (tmp_path / "cgroup.controllers").write_text("cpu")

    def systemctl(argv: tuple[str, ...]) -> str:
        assert argv[:2] == ("systemctl", "stop")
        inner = tmp_path / "weighbridge.slice" / argv[2]
        shutil.rmtree(inner if inner.exists() else tmp_path / argv[2])  # one that is above takes all in it along
        return ""

    monkeypatch.setattr(slices, "MOUNT", tmp_path)
    monkeypatch.setattr(slices, "output", systemctl)
    return tmp_path


def dead(tree: Path, run: str) -> OrphanedRun:
    return OrphanedRun(run, tree, tree)


def test_a_dead_runs_slice_is_told_and_stopped(tree: Path):
    for name in (slice_of(RUN), slice_of(OTHER), "weighbridge-mine.slice"):
        (tree / "weighbridge.slice" / name).mkdir(parents=True)
    kind = RunSlices()
    assert [*kind.find(RunFolders(tree, tree))] == [Leftover(run, "slice", slice_of(run)) for run in (RUN, OTHER)]
    kind.remove(dead(tree, RUN))
    assert [each.run for each in kind.find(RunFolders(tree, tree))] == [OTHER]
    (tree / "weighbridge.slice/weighbridge-mine.slice").rmdir()
    kind.remove(dead(tree, OTHER))
    assert not (tree / "weighbridge.slice").exists(), "the last one takes the one above along"


def test_one_that_systemd_keeps_is_a_failure(tree: Path, monkeypatch: pytest.MonkeyPatch):
    (tree / "weighbridge.slice" / slice_of(RUN)).mkdir(parents=True)
    monkeypatch.setattr(slices, "output", lambda _: None)
    with raises_sentence(OSError):
        RunSlices().remove(dead(tree, RUN))


def test_an_empty_one_above_is_of_no_run_and_is_stopped(tree: Path):
    """A run was killed between the stop of its own and that of the one above."""
    above = tree / "weighbridge.slice"
    above.mkdir()
    kind, folders = RunSlices(), RunFolders(tree, tree)
    assert kind.owner_may_be_unknown and [*kind.find(folders)] == [Leftover(NO_RUN, "slice", above.name)]
    kind.remove_ownerless(folders)
    assert [*kind.find(folders)] == [] and not above.exists()
    kind.remove_ownerless(folders)


def test_one_above_in_which_anything_is_is_never_stopped(tree: Path):
    for name in (slice_of(RUN), "somebodys.scope"):
        (tree / "weighbridge.slice" / name).mkdir(parents=True)
    RunSlices().remove_ownerless(RunFolders(tree, tree))
    RunSlices().remove(dead(tree, RUN))
    assert [path.name for path in (tree / "weighbridge.slice").iterdir()] == ["somebodys.scope"]


def test_an_empty_one_above_that_systemd_keeps_is_a_failure(tree: Path, monkeypatch: pytest.MonkeyPatch):
    (tree / "weighbridge.slice").mkdir(parents=True)
    monkeypatch.setattr(slices, "output", lambda _: None)
    for step in (
        lambda: RunSlices().remove(dead(tree, RUN)),
        lambda: RunSlices().remove_ownerless(RunFolders(tree, tree)),
    ):
        with raises_sentence(OSError):
            step()
