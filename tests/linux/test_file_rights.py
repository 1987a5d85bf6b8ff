"""Root gives up its rights over files in a folder of another user, and has them again afterwards."""

import ctypes
import os
import threading
from pathlib import Path
from types import SimpleNamespace

import pytest

from weighbridge.linux.file_rights import rights_of_owner

NOBODY = 65534
AS_ROOT = pytest.mark.skipif(os.geteuid() != 0, reason="gives a folder to another user: needs root")


@pytest.fixture
def users_folder(tmp_path: Path) -> Path:
    folder = tmp_path / "users"
    folder.mkdir()
    os.chown(folder, NOBODY, NOBODY)
    return folder


@AS_ROOT
def test_root_has_no_more_rights_than_the_owner(users_folder: Path):
    secret, within = os.open(users_folder.parent, os.O_RDONLY), os.open(users_folder, os.O_RDONLY)
    os.close(os.open("secret", os.O_CREAT, 0o600, dir_fd=secret))
    with rights_of_owner(users_folder.stat()):
        for flags in (os.O_RDONLY, os.O_WRONLY):
            with pytest.raises(PermissionError):
                os.open("secret", flags, dir_fd=secret)
        with pytest.raises(PermissionError):
            os.unlink("secret", dir_fd=secret)
        os.close(os.open("new", os.O_CREAT, 0o600, dir_fd=within))
    assert (users_folder / "new").stat().st_uid == (users_folder / "new").stat().st_gid == NOBODY
    os.close(os.open("secret", os.O_WRONLY, dir_fd=secret))
    os.close(secret)
    os.close(within)


@AS_ROOT
def test_other_threads_keep_their_rights_and_an_error_ends_it_too(users_folder: Path):
    given_up, paths = threading.Event(), [users_folder.parent / name for name in ("by-another-thread", "after")]

    def create() -> None:
        given_up.wait()
        paths[0].touch()

    other = threading.Thread(target=create)
    other.start()
    with pytest.raises(KeyError), rights_of_owner(users_folder.stat()):
        given_up.set()
        other.join()
        raise KeyError
    paths[1].touch()
    assert [path.stat().st_uid for path in paths] == [0, 0]


def test_nothing_changes_for_other_users(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    with rights_of_owner(tmp_path.stat()):
        (tmp_path / "file").touch()
    assert (tmp_path / "file").exists()


def test_a_root_that_cannot_take_the_rights_of_a_user_goes_on(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    """As in a container without CAP_SETUID, or where the owner has no id in the user namespace."""
    calls = []
    fake = SimpleNamespace(setfsuid=lambda user: 0, setfsgid=lambda group: calls.append(group) or 0)
    monkeypatch.setattr(ctypes, "CDLL", lambda _: fake)
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    with rights_of_owner(SimpleNamespace(st_uid=NOBODY, st_gid=NOBODY)):  # type: ignore[arg-type]
        assert calls == [NOBODY, 0]
        (tmp_path / "file").touch()
    assert (tmp_path / "file").exists()
