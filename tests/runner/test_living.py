"""Whether a run is alive, where others may have put anything in the place of a lock."""

import errno
import fcntl
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from weighbridge.analysis.conditions import Fact
from weighbridge.analysis.remarks.confounders import HostsDiffer, confounders
from weighbridge.errors import Unavailable
from weighbridge.linux import file_locks
from weighbridge.linux.file_locks import is_locked
from weighbridge.model.facts import HostDifference
from weighbridge.report.text.remarks import remark_text
from weighbridge.runner import file_ownership, living
from weighbridge.runner import run as running
from weighbridge.runner import run_lock as state
from weighbridge.runner.file_ownership import Fault, Foreign

RUN, OTHER = "0123456789ab", "ba9876543210"


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


def test_runs_of_one_fleet_are_no_others_of_each_other(machine: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv(state.FLEET_VARIABLE, "/fleets/one")
    with state.claim(RUN, machine / "cache", machine / "runs/first"):
        assert living.others() == {}
        living.require_alone(allow_concurrent=False)
        for fleet in ("/fleets/other", ""):
            monkeypatch.setenv(state.FLEET_VARIABLE, fleet)
            assert living.others() == {RUN: str(machine / "runs/first")}


def test_who_measures_beside_a_run_is_told_with_its_directory(machine: Path):
    with state.claim(RUN, machine / "cache", machine / "runs/first"):
        assert living.others() == {RUN: str(machine / "runs/first")}
        assert living.others(RUN) == {}, "a run is not beside itself"
        with pytest.raises(Unavailable) as refused:
            living.require_alone(allow_concurrent=False)
        assert {RUN, str(machine / "runs/first"), "--allow-concurrent"} <= {*re.split(r"[ ,]+", str(refused.value))}
        assert re.search(r" since \d\d:\d\d, and", str(refused.value))
        os.utime(state.base() / RUN / "lock", (1e9, 1e9))
        with pytest.raises(Unavailable, match=r" since 2001-09-0[89] "):
            living.require_alone(allow_concurrent=False)
        living.require_alone(allow_concurrent=True)
    living.require_alone(allow_concurrent=False)


@pytest.mark.parametrize(
    ("mode", "locked", "refused"),
    [(0o755, True, True), (0o755, None, True), (0o755, False, False), (0o777, True, False)],
)
def test_a_user_is_told_of_a_run_of_root_that_lives(
    machine: Path, monkeypatch: pytest.MonkeyPatch, mode: int, locked: bool | None, refused: bool
):
    """Its folder is root's alone; two runs at once were not refused. A folder that others write to says nothing.

    What a killed run of root left had every user refused until root cleaned up.
    """

    @contextmanager
    def opened(base: Path, parts: Sequence[str], owner: int) -> Iterator[int]:
        if parts:
            raise PermissionError(errno.EACCES, "Permission denied")
        with file_ownership.opened(base, (), os.getuid()) as folder:
            yield folder

    (machine / "run/weighbridge" / RUN).mkdir(parents=True)
    (machine / "run/weighbridge/not-a-run").mkdir()
    (machine / "run/weighbridge").chmod(mode)
    assert living.hidden_runs() == [], "root knows them"
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    monkeypatch.setattr(living, "opened", opened)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(machine / "run/user/1000"))
    monkeypatch.setattr(living, "is_locked", lambda _: locked)
    assert living.hidden_runs() == ([RUN] if refused else [])
    living.require_alone(allow_concurrent=True)
    with (
        pytest.raises(Unavailable, match=f"run {RUN}, which belongs to root, is probably measuring")
        if refused
        else nullcontext()
    ):
        living.require_alone(allow_concurrent=False)


def test_everybody_sees_that_a_run_lives_by_its_folder(machine: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(file_locks, "_sees_everybody", lambda: True)
    folder = state.base() / RUN
    with state.claim(RUN, machine / "cache"):
        assert is_locked(folder.lstat()) is True
    assert is_locked(folder.lstat()) is False, "its process has ended"
    with state.lock_run(RUN, "clean"):
        assert is_locked(folder.lstat()) is False, "who cleans measures nothing"


def test_a_lock_of_another_kind_or_that_is_waited_for_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    status, locks = tmp_path.stat(), tmp_path / "locks"
    monkeypatch.setattr(file_locks, "_sees_everybody", lambda: True)
    place = f"{os.major(status.st_dev):02x}:{os.minor(status.st_dev):02x}:{status.st_ino}"
    for line, locked in (
        ("1: FLOCK  ADVISORY  WRITE 708 {} 0 EOF", True),
        ("1: FLOCK  ADVISORY  WRITE 708 {}1 0 EOF", False),
        ("1: FLOCK  ADVISORY  READ 708 {} 0 EOF", False),
        ("1: -> FLOCK  ADVISORY  WRITE 708 {} 0 EOF", False),
        ("2: POSIX  ADVISORY  WRITE 708 {} 0 EOF", False),
    ):
        locks.write_text(line.format(place) + "\n")
        assert is_locked(status, locks) is locked, line
    assert is_locked(status, tmp_path / "none") is None


def test_in_a_namespace_of_process_numbers_no_lock_is_not_known(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(file_locks, "_OWN_NUMBERS", tmp_path)
    (locks := tmp_path / "locks").write_text("")
    assert is_locked(tmp_path.stat(), locks) is None


def test_a_run_keeps_which_others_measured_meanwhile(monkeypatch: pytest.MonkeyPatch):
    kept: list[Fact] = []

    def add_facts(scope: str, facts: Mapping[str, str]) -> None:
        kept.extend((scope, key, value, 0.0) for key, value in facts.items())

    monkeypatch.setattr(living, "others", lambda own: {OTHER: "/runs/second"} if own == RUN else {})
    store: Any = SimpleNamespace(add_facts=add_facts)
    noted: set[str] = set()
    for _ in range(2):  # after each trial: the other may begin later, and end sooner
        running._note_others(store, RUN, noted)
    assert len(kept) == 1
    (remark,) = confounders(kept, {"native": "native"})
    assert isinstance(remark, HostsDiffer) and remark.difference is not None
    assert remark.difference == HostDifference(kind="beside", values=((OTHER, "/runs/second"),))
    assert OTHER in remark_text(remark) and "/runs/second" in remark_text(remark)
