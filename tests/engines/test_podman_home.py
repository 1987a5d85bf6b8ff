"""Where a user's podman has its storage: within the run's data, unless a container has a layer over that."""

import os
from pathlib import Path

import pytest

from sentences import raises_sentence
from weighbridge.engines import podman, podman_home
from weighbridge.errors import Unavailable
from weighbridge.model.cleanup import Leftover, OrphanedRun, RunFolders
from weighbridge.model.names import RunId

RUN, OTHER = RunId("0123456789ab"), RunId("ba9876543210")


@pytest.fixture(autouse=True)
def apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "apart"
    folder.mkdir()
    monkeypatch.setattr(podman_home, "APART", folder)
    monkeypatch.setattr(podman, "APART", folder)
    monkeypatch.setattr(podman, "_MEMORY", tmp_path / "memory")
    return folder


def left(tmp_path: Path) -> list[Leftover]:
    return [*podman.PodmanFolders().find(RunFolders(tmp_path, tmp_path))]


def roots(tmp_path: Path) -> set[str]:
    words = podman_home.program_of_user(RUN, tmp_path / "state", tmp_path / "data")
    told = (tmp_path / "state/pod/storage.conf").read_text()
    (graphroot,) = [line.split('"')[1] for line in told.splitlines() if line.startswith("graphroot")]
    return {graphroot, words[words.index("--root") + 1]}


def test_apart_it_is_found_by_podman_and_by_clean(tmp_path: Path, apart: Path):
    podman_home.store_apart(RUN)
    podman_home.store_apart(OTHER)
    (folder,) = roots(tmp_path)
    assert Path(folder).parent == apart and Path(folder).stat().st_mode & 0o777 == 0o700
    assert Leftover(RUN, "folder of podman", folder) in left(tmp_path)


def test_a_storage_of_a_run_whose_data_has_gone_is_removed(tmp_path: Path, apart: Path):
    podman_home.store_apart(RUN)
    podman_home.store_apart(OTHER)
    next(apart.glob(f"*{RUN}*")).joinpath("storage.lock").touch()
    podman.PodmanFolders().remove(OrphanedRun(RUN, tmp_path / "state", tmp_path / "data"))
    assert [leftover.run for leftover in left(tmp_path)] == [OTHER]


def test_what_somebody_else_put_there_is_not_taken(tmp_path: Path, apart: Path, monkeypatch: pytest.MonkeyPatch):
    podman_home.store_apart(RUN)
    with raises_sentence(Unavailable):
        podman_home.store_apart(RUN)
    monkeypatch.setattr(os, "geteuid", lambda: 4711)
    assert roots(tmp_path) == {str(tmp_path / "data/storage")}
    assert left(tmp_path) == []
    for path in apart.iterdir():
        path.rmdir()
        path.symlink_to(tmp_path)
    monkeypatch.undo()
    monkeypatch.setattr(podman_home, "APART", apart)
    assert roots(tmp_path) == {str(tmp_path / "data/storage")}
