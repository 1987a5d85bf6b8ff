"""Whether a run is alive, where others may have put anything in the place of a lock."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from weighbridge.runner import living
from weighbridge.runner import run_lock as state
from weighbridge.runner.trust import Fault, Foreign

RUN = "0123456789ab"


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine's folders, as root sees them; all belong to whoever runs the test."""
    monkeypatch.setattr(state, "ROOTS", tmp_path / "run/weighbridge")
    monkeypatch.setattr(state, "TEMPORARY", tmp_path / "tmp")
    monkeypatch.setattr(living, "USERS", tmp_path / "run/user")
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    return tmp_path


def _of_a_user(machine: Path) -> Path:
    folder = machine / f"tmp/weighbridge-{os.getuid()}" / RUN
    folder.mkdir(parents=True)
    return folder


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


@pytest.mark.parametrize("place", ["tmp/weighbridge-{}", "run/user/{}/weighbridge"])
def test_a_users_run_is_alive_while_its_lock_is_held(machine: Path, place: str):
    folder = machine / place.format(os.getuid()) / RUN
    with _locked(folder):
        assert living.holder(RUN) == folder and living.alive(RUN)
    assert not living.alive(RUN)
    assert living.foreign([RUN]) == []


def test_nobody_else_keeps_roots_run_alive(machine: Path):
    with _locked(_of_a_user(machine)):
        (machine / "run/weighbridge" / RUN).mkdir(parents=True)
        assert not living.alive(RUN)


def test_a_pipe_is_not_waited_for(machine: Path):
    lock = _of_a_user(machine) / "lock"
    os.mkfifo(lock)
    assert not living.alive(RUN)
    assert living.foreign([RUN]) == [Foreign(lock, Fault.KIND)]


@pytest.mark.parametrize("part", ["", RUN, f"{RUN}/lock"])
def test_no_link_is_followed(machine: Path, part: str):
    place = machine / f"tmp/weighbridge-{os.getuid()}"
    with _locked(machine / "elsewhere" / RUN):
        target = machine / "elsewhere" / part
        (place / part).parent.mkdir(parents=True, exist_ok=True)
        (place / part).symlink_to(target)
        assert not living.alive(RUN)
        assert living.foreign([RUN]) == [Foreign(place / part, Fault.KIND)]


def test_a_folder_of_another_user_than_it_says_is_ignored(machine: Path):
    place = machine / f"tmp/weighbridge-{os.getuid() + 1}"
    with _locked(place / RUN):
        assert not living.alive(RUN)
        assert living.foreign([]) == [Foreign(place, Fault.OWNER)]
