"""This machine's own root folder in a container: what is bound, what an image has of it, with whose rights."""

import io
import os
import resource
import tarfile
from pathlib import Path
from types import SimpleNamespace

import pytest

from sentences import raises_sentence
from weighbridge.engines import client, shared_root
from weighbridge.engines.container import process_options, user_options
from weighbridge.environments import docker
from weighbridge.errors import Unavailable
from weighbridge.linux.folders import Mounted
from weighbridge.model.plugin import Readiness
from weighbridge.model.userland import Userland


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    for name in ("usr", "etc", "proc", "tmp", "home"):
        (tmp_path / name).mkdir()
    (tmp_path / "home/nfs").mkdir()
    (tmp_path / "bin").symlink_to("usr/bin")
    (tmp_path / "usr").chmod(0o711)
    (tmp_path / "vmlinuz").write_text("no program")
    return tmp_path


def test_an_image_of_it_has_the_launcher_folders_to_mount_onto_and_links(tree: Path):
    with tarfile.open(fileobj=io.BytesIO(shared_root.bare_layer(tree, "/launcher", b"ELF"))) as layer:
        found = {member.name: member for member in layer.getmembers()}
        assert layer.extractfile("launcher").read() == b"ELF"  # type: ignore[union-attr]
    assert {*found} == {"launcher", "usr", "etc", "proc", "tmp", "home", "bin"}
    assert (found["bin"].issym(), found["bin"].linkname) == (True, "usr/bin")
    assert (found["usr"].isdir(), found["usr"].mode) == (True, 0o711)


def test_what_is_mounted_below_it_is_bound_by_itself_but_no_engines_and_no_kernels(
    tree: Path, monkeypatch: pytest.MonkeyPatch
):
    table = [
        Mounted("/", "ext4"), Mounted(f"{tree}/home/nfs", "nfs4"), Mounted(f"{tree}/proc", "proc"),
        Mounted(f"{tree}/usr", "overlay"), Mounted(f"{tree}/home/gone", "ext4"),
        Mounted(f"{tree}/home/memory", "tmpfs"), Mounted(f"{tree}/home/layers", "overlay"),
        Mounted(f"{tree}/home/file", "ext4"), Mounted(f"{tree}/home/kernel", "tracefs"),
        Mounted(f"{tree}/usr/docker/overlay2/0/merged", "overlay"),
        Mounted(f"{tree}/usr/containers/storage/0/userdata/shm", "tmpfs"),
    ]  # fmt: skip
    for folder in ("memory", "layers", "kernel"):
        (tree / "home" / folder).mkdir()
    (tree / "home/file").touch()
    for folder in ("docker/overlay2/0/merged", "containers/storage/0/userdata/shm"):
        (tree / "usr" / folder).mkdir(parents=True)
    monkeypatch.setattr(shared_root, "mount_table", lambda: table)
    found = shared_root.bound(tree)
    assert found == (
        tree / "etc",
        tree / "home",
        tree / "usr",
        *(tree / "home" / each for each in ("nfs", "memory", "layers", "file")),
    )


def test_a_file_that_docker_replaces_has_to_be_there(tree: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(shared_root, "_ENGINES_FILES", (str(tree / "etc/hostname"),))
    with raises_sentence(Unavailable):
        shared_root.bound(tree)


def test_an_engine_that_gives_other_ids_is_refused_for_a_user_alone(tree: Path, monkeypatch: pytest.MonkeyPatch):
    """Its root may neither read the user's files nor become the user; root's programs are read by everybody."""
    monkeypatch.setattr(shared_root, "_ENGINES_FILES", ())
    for options, user, refused in (
        (["name=userns"], 1000, True), (["name=userns"], 0, False),
        (["name=rootless"], 1000, False), (None, 1000, False),
    ):  # fmt: skip
        info = {"SecurityOptions": options}
        engine = SimpleNamespace(info=lambda told=info: told, close=lambda: None)
        monkeypatch.setattr(client, "client_from_environment", lambda engine=engine: engine)
        monkeypatch.setattr(os, "geteuid", lambda user=user: user)
        found = shared_root.refusal()
        assert (found is not None and "userns-remap" in found.detail) == refused, (options, user)
        monkeypatch.setattr(docker, "readiness", lambda: Readiness(True, "the engine that answers"))
        monkeypatch.setattr(docker.runtimes, "known_here", lambda: "runc 1")
        told = docker.PLUGIN.ready()  # for doctor: an image it can have
        assert (told.ready, bool(told.caveat)) == (True, refused)


def test_a_container_of_a_users_runs_as_the_user_unless_its_root_is_the_user(monkeypatch: pytest.MonkeyPatch):
    """The rights to the files of this machine's are the same natively: those of an image are the container's own."""
    own, image = Userland("d", Path("/"), None, {}), Userland("d", Path("/x"), Path("/x.tar"), {})
    rootful, rootless = SimpleNamespace(rootless=False), SimpleNamespace(rootless=True)
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    monkeypatch.setattr(os, "getegid", lambda: 100)
    monkeypatch.setattr(os, "getgroups", lambda: [100, 102])
    assert user_options(rootful, own) == {"user": "1000:100", "group_add": ["100", "102"]}  # type: ignore[arg-type]
    assert user_options(rootful, image) == user_options(rootless, own) == {}  # type: ignore[arg-type]
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    assert user_options(rootful, own) == {}  # type: ignore[arg-type]


@pytest.mark.parametrize("user", [0, 1000])
def test_a_container_on_this_machine_has_the_limits_of_native_programs(monkeypatch: pytest.MonkeyPatch, user: int):
    """An engine of systemd's has others; a rootless one cannot raise its own, nor do those of elsewhere know ours."""
    own = Userland("d", Path("/"), None, {})
    host = SimpleNamespace(this_machine=True, read=lambda path: (_ for _ in ()).throw(FileNotFoundError(path)))
    limits = {resource.RLIMIT_NPROC: (900, 1000), resource.RLIMIT_NOFILE: (9, 9)}
    monkeypatch.setattr(resource, "getrlimit", lambda limit: limits.get(limit, (-1, -1)))
    monkeypatch.setattr(os, "geteuid", lambda: user)
    options = process_options(SimpleNamespace(rootless=False, host=host), own)  # type: ignore[arg-type]
    told = {each.name: (each.soft, each.hard) for each in options["ulimits"]}
    assert (told["nofile"], told["nproc"], told["stack"], told["core"]) == ((9, 9), (900, 1000), (-1, -1), (-1, -1))
    (files, *_) = process_options(SimpleNamespace(rootless=False, host=host), own, 64)["ulimits"]  # type: ignore[arg-type]
    assert (files.soft, files.hard) == (64, 64)
    for rootless, here in ((True, True), (False, False)):
        host.this_machine = here
        options = process_options(SimpleNamespace(rootless=rootless, host=host), own)  # type: ignore[arg-type]
        assert [each.name for each in options["ulimits"]] == ["nofile"]


def test_what_is_mounted_there_already_is_not_bound(tree: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(shared_root, "mount_table", list)
    userland = Userland("d", tree, None, {})
    found = [each["Target"] for each in shared_root.binds(userland, {str(tree / "home")})]
    assert found == [str(tree / "etc"), str(tree / "usr")]
    assert all(each["ReadOnly"] for each in shared_root.binds(userland, ()))
    assert not shared_root.binds(Userland("d", tree, tree / "root.tar", {}), ())
