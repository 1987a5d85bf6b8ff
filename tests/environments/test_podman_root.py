"""This machine's own root folder in a user's rootless container: what podman is told, and who may have it."""

import os
from contextlib import ExitStack
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from sentences import raises_sentence
from weighbridge.engines import podman
from weighbridge.engines.podman import Podman
from weighbridge.environments.podman import root
from weighbridge.errors import Unavailable
from weighbridge.model.cleanup import Leftover, OrphanedRun, RunFolders
from weighbridge.model.environment import Needs
from weighbridge.model.names import RunId
from weighbridge.model.site import SiteRequest
from weighbridge.model.userland import Userland

RUN = RunId("0123456789ab")


@pytest.fixture(autouse=True)
def memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder in memory, and a machine with three mounts; we are a user."""
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    monkeypatch.setattr(os, "getegid", lambda: 100)
    monkeypatch.setattr(podman, "_MEMORY", tmp_path)
    monkeypatch.setattr(root, "bound", lambda *_: (Path("/etc"), Path("/home"), Path("/home/nfs")))
    return tmp_path


def words(stack: ExitStack, asked: list[Any], layered: str = "", runtime: str = "crun") -> list[str]:
    made = SimpleNamespace(runtime=runtime, ask=lambda *told: asked.append(told))
    request = SimpleNamespace(
        run=SimpleNamespace(id=RUN), name="site", userland=Userland("d", Path("/"), None, {}, layered=layered)
    )
    return root.root_words(stack, cast(Podman, made), cast(SiteRequest, request))


def test_it_is_bound_read_only_with_what_is_mounted_below_and_the_user_is_the_same():
    with ExitStack() as stack:
        found = words(stack, [])
        assert found[:6] == ["--userns", "keep-id", "--user", "1000:100", "--group-add", "keep-groups"]
        assert found[7::2] == [f"type=bind,src={path},dst={path},ro=true" for path in ("/etc", "/home", "/home/nfs")]
        assert "keep-groups" not in words(stack, [], runtime="runc")


def test_the_folder_is_under_a_layer_in_memory_that_podman_removes(tmp_path: Path, memory: Path):
    folder, asked = tmp_path / "work", list[Any]()
    folder.mkdir(mode=0o711)
    here = memory / f"weighbridge-{RUN}-site"
    with ExitStack() as stack:
        found = words(stack, asked, str(folder))
        assert found[-2:] == ["--volume", f"{folder}:{folder}:O,upperdir={here}/upper,workdir={here}/work"]
        assert (here / "upper").stat().st_mode & 0o7777 == 0o711
        assert here.stat().st_mode & 0o7777 == 0o700
        with raises_sentence(Unavailable):
            words(stack, asked, str(folder))
    assert asked == [("unshare", "rm", "-rf", str(here))]


def test_only_this_users_folders_are_taken_for_layers(memory: Path, monkeypatch: pytest.MonkeyPatch):
    (memory / f"weighbridge-{RUN}-native").mkdir()
    (memory / "weighbridge-ffffffffffff-x").symlink_to("/etc")
    (memory / "somebody-elses").mkdir()
    monkeypatch.setattr(os, "geteuid", lambda: memory.stat().st_uid)
    folders = RunFolders(memory / "states", memory / "data")
    own = Leftover(RUN, "folder of podman", str(memory / f"weighbridge-{RUN}-native"))
    assert [*podman.PodmanFolders().find(folders)] == [own]
    monkeypatch.setattr(os, "geteuid", lambda: memory.stat().st_uid + 1)
    assert not [*podman.PodmanFolders().find(folders)]


@pytest.mark.parametrize("data", [True, False])
def test_files_of_subordinate_ids_go_by_podman_also_where_the_data_of_the_run_has_gone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, data: bool
):
    """A killed container's notes are the container's root's, whom only podman's namespace knows."""
    asked = list[tuple[str, ...]]()
    monkeypatch.setattr(podman, "output", lambda words: asked.append(tuple(words)))
    monkeypatch.setattr(podman, "APART", tmp_path / "apart")
    run = OrphanedRun(RUN, tmp_path / "states" / RUN, tmp_path / "data")
    notes = run.state / "pod/run/overlay-containers"
    notes.mkdir(parents=True)
    if data:
        (run.data / "data-podman-user-rootless-here").mkdir(parents=True)
    podman.PodmanFolders().remove(run)
    assert len(asked) == 1 and str(notes) in asked[0][asked[0].index("unshare") :]
    assert not (run.state / "pod").exists()
    podman.PodmanFolders().remove(run)
    assert len(asked) == 1 + data


def test_only_a_users_rootless_containers_can_have_it(monkeypatch: pytest.MonkeyPatch):
    own = Needs(of_this_machine=True)
    assert root.unmet(own, rootless=True) is None
    assert root.unmet(Needs(), rootless=False) is None
    refusal = root.unmet(own, rootless=False)
    assert refusal is not None and "podman-rootless" in refusal.remedy
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    assert root.unmet(own, rootless=True) is not None
