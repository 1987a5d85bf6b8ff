"""What the configuration of an image says of its programs: variables, folder, user."""

from pathlib import Path

import pytest

from weighbridge.errors import UserlandError
from weighbridge.model.command import Command, ProcessDefaults
from weighbridge.userland.sources._image_process import process_of


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "etc").mkdir()
    (tmp_path / "etc/passwd").write_text("root:x:0:0::/:\ndamaged\nshop:x:1000:1001:Shop:/home/shop:/bin/sh\n")
    (tmp_path / "etc/group").write_text(
        "root:x:0:\nstaff:x:50:shop\nx:y:z\nvideo:x:60:other,shop\nshopping:x:61:shopper\n"
    )
    return tmp_path


@pytest.mark.parametrize(
    ("user", "uid", "gid", "groups", "home"),
    [
        ("", None, None, (), "/"),
        ("shop", 1000, 1001, (50, 60), "/home/shop"),
        ("1000", 1000, 1001, (50, 60), "/home/shop"),
        ("shop:staff", 1000, 50, (), "/home/shop"),
        ("1000:7", 1000, 7, (), "/home/shop"),
        ("77", 77, 0, (), "/"),
        ("0", 0, 0, (), "/"),
    ],
)
def test_users_are_found_in_the_images_own_database(
    root: Path, user: str, uid: int | None, gid: int | None, groups: tuple[int, ...], home: str
):
    found = process_of({"User": user, "WorkingDir": "/srv", "Env": ["A=b=c", "PATH=/bin"]}, root)
    assert found == ProcessDefaults({"A": "b=c", "PATH": "/bin", "HOME": home}, "/srv", uid, gid, groups)


def test_a_home_that_the_image_sets_stays(root: Path):
    assert process_of({"User": "shop", "Env": ["HOME=/data"]}, root).env == {"HOME": "/data"}


@pytest.mark.parametrize(("user", "told"), [("", "root"), ("shop", "1000:1001"), ("shop:7", "1000:7")])
def test_a_sites_facts_tell_the_images_user(root: Path, user: str, told: str):
    assert process_of({"User": user}, root).user("root") == told


@pytest.mark.parametrize("user", ["nobody-here", "shop:nobody-here"])
def test_a_user_that_the_image_lacks_is_told(root: Path, user: str):
    with pytest.raises(UserlandError, match="nobody-here"):
        process_of({"User": user}, root)


def test_a_link_in_the_image_does_not_lead_to_this_machines_users(root: Path):
    (root / "etc/passwd").unlink()
    (root / "etc/passwd").symlink_to("/etc/passwd")
    with pytest.raises(UserlandError, match="daemon"):
        process_of({"User": "daemon"}, root)


def test_an_image_that_says_nothing_has_root_in_the_root_folder(tmp_path: Path):
    assert process_of({"Env": None, "WorkingDir": "", "User": None}, tmp_path) == ProcessDefaults({"HOME": "/"})


def test_the_variables_of_a_command_go_over_those_of_the_image():
    found = ProcessDefaults({"A": "image", "B": "image"}, "/srv", 7, 8, (9,)).of(Command(("true",), env={"A": "own"}))
    assert (found.env, found.cwd, found.uid, found.gid, found.groups) == (
        {"A": "own", "B": "image"}, "/srv", 7, 8, (9,),
    )  # fmt: skip
