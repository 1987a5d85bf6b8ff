"""Only folders that Weighbridge made are removed, however a name, a link or a mount point tries to lead elsewhere."""

import os
from pathlib import Path

import pytest

from weighbridge.linux import deletion
from weighbridge.linux.deletion import DeletionRefused, OwnFolder, opened_beneath, remove_tree
from weighbridge.model.names import SafeName

ELSEWHERE = (
    "", ".", "..", "/", "/etc", "../etc", "a/b", "a/../..", "-rf", "a\0b", "a\nb", "x" * 65536, "\udcff", "ä",
)  # fmt: skip


@pytest.fixture
def base(tmp_path):
    """Two folders side by side: one in which folders of Weighbridge's are, and one that is somebody else's."""
    for name in ("base/run/data", "elsewhere/precious"):
        (tmp_path / name).mkdir(parents=True)
        (tmp_path / name / "file").write_text("kept")
    return tmp_path / "base"


@pytest.mark.parametrize("name", ELSEWHERE)
def test_a_name_that_leads_elsewhere_is_no_folder_of_ours(base, name):
    with pytest.raises(ValueError):
        OwnFolder.of(base, name)
    with pytest.raises(ValueError):
        OwnFolder(base, (SafeName("run"), name))


def test_a_base_alone_or_a_relative_one_is_no_folder_of_ours(base):
    with pytest.raises(ValueError):
        OwnFolder(base, ())
    with pytest.raises(ValueError):
        OwnFolder.of(Path("base"), "run")


def test_everything_in_a_folder_goes_and_nothing_that_its_links_lead_to(base):
    (base / "run/to_file").symlink_to(base.parent / "elsewhere/precious/file")
    (base / "run/to_folder").symlink_to(base.parent / "elsewhere")
    os.link(base.parent / "elsewhere/precious/file", base / "run/hard")
    os.mkfifo(base / "run/pipe")
    remove_tree(OwnFolder.of(base, "run"))
    assert [*base.iterdir()] == []
    assert (base.parent / "elsewhere/precious/file").read_text() == "kept"


@pytest.mark.parametrize(
    "names", [("link",), ("link", "precious"), ("run", "link", "precious"), ("run", "data", "file")]
)
def test_a_link_or_a_file_on_the_way_is_refused(base, names):
    for place in (base, base / "run"):
        (place / "link").symlink_to(base.parent / "elsewhere")
    with pytest.raises(DeletionRefused):
        remove_tree(OwnFolder.of(base, *names))
    assert (base.parent / "elsewhere/precious/file").read_text() == "kept"
    assert (base / "run/data/file").read_text() == "kept"


def test_a_mount_point_is_refused_before_anything_in_it_goes(base, monkeypatch):
    monkeypatch.setattr(deletion, "_mount_of", lambda descriptor: Path(f"/proc/self/fd/{descriptor}").readlink())
    with pytest.raises(DeletionRefused):
        remove_tree(OwnFolder.of(base, "run"))
    assert (base / "run/data/file").read_text() == "kept"


def test_a_mount_point_inside_stays_with_what_is_in_it_and_is_named(base, monkeypatch):
    (base / "run/other").mkdir()

    def mounted(descriptor):
        return str(Path(f"/proc/self/fd/{descriptor}").readlink()).startswith(str(base / "run/data"))

    monkeypatch.setattr(deletion, "_mount_of", mounted)
    with pytest.raises(OSError) as raised:
        remove_tree(OwnFolder.of(base, "run"))
    assert raised.value.filename == str(base / "run/data")
    assert (base / "run/data/file").read_text() == "kept"
    assert not (base / "run/other").exists()


@pytest.mark.parametrize("mode", [0o777, 0o1777])
def test_a_folder_of_another_user_in_a_folder_for_all_is_refused(base, monkeypatch, mode):
    base.chmod(mode)
    owner = os.geteuid()
    monkeypatch.setattr(deletion.os, "geteuid", lambda: owner + 1)
    with pytest.raises(DeletionRefused):
        remove_tree(OwnFolder.of(base, "run"))
    monkeypatch.setattr(deletion.os, "geteuid", lambda: owner)
    remove_tree(OwnFolder.of(base, "run"))
    assert not (base / "run").exists()


def test_no_tree_is_too_deep(base):
    deep = os.open(base / "run", os.O_RDONLY)
    for _ in range(3000):
        os.mkdir("d", dir_fd=deep)
        os.close(os.open("f", os.O_CREAT | os.O_WRONLY, dir_fd=deep))
        below = os.open("d", os.O_RDONLY, dir_fd=deep)
        os.close(deep)
        deep = below
    os.close(deep)
    remove_tree(OwnFolder.of(base, "run"))
    assert [*base.iterdir()] == []


def test_a_folder_is_opened_through_no_link(base):
    (base / "link").symlink_to(base / "run")
    with opened_beneath(base, (SafeName("run"), SafeName("data"))) as data:
        assert os.stat("file", dir_fd=data).st_size == 4
    with pytest.raises(DeletionRefused), opened_beneath(base, (SafeName("link"),)):
        pass
