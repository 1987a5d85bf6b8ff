"""Engines of one run share the lock of the machine's packet filter; those of another run wait, or leave it alone."""

import fcntl
import os
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace

import pytest

from sentences import raises_sentence
from weighbridge.engines import firewall, machine_lock
from weighbridge.errors import Cancelled, Unavailable
from weighbridge.linux.cancellation import Cancellation

LONG_S = 60.0


@pytest.fixture(autouse=True)
def users_engine(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Whether an engine of the user's answers: the last that is in the list."""
    answers = [False]
    monkeypatch.setattr(machine_lock.client, "answers", lambda: answers[-1])
    return answers


@pytest.fixture
def restored(monkeypatch: pytest.MonkeyPatch) -> list[tuple[object, bool]]:
    calls: list[tuple[object, bool]] = []

    def restore(_: Path, adds: object = None, *, beside_engine: bool = False) -> None:
        calls.append((adds, beside_engine))

    monkeypatch.setattr(firewall, "restore", restore)
    return calls


def locked(folder: Path) -> bool:
    other = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(other)
    return False


def test_the_lock_is_held_until_the_last_engine_has_gone(tmp_path: Path, restored: list[tuple[object, bool]]):
    said: list[str] = []
    with machine_lock.exclusive_machine_lock(tmp_path, said.append):
        with machine_lock.exclusive_machine_lock(tmp_path, said.append):
            assert locked(tmp_path)
        assert locked(tmp_path)
        machine_lock.restore(tmp_path, firewall.Adds.PODMAN)
    assert not locked(tmp_path)
    machine_lock.restore(tmp_path, firewall.Adds.DOCKER)
    assert restored == [(firewall.Adds.PODMAN, False), (None, False)]
    assert not said


def test_another_runs_engine_is_waited_for_but_not_for_ever(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    other = os.open(tmp_path, os.O_RDONLY)
    fcntl.flock(other, fcntl.LOCK_EX)
    now = [0.0]

    def sleep(seconds: float) -> None:
        now[0] += seconds
        if now[0] > ends:
            fcntl.flock(other, fcntl.LOCK_UN)

    monkeypatch.setattr(machine_lock, "time", SimpleNamespace(monotonic=lambda: now[0]))
    monkeypatch.setattr(machine_lock, "cancellation", SimpleNamespace(sleep=sleep))
    said: list[str] = []
    ends = machine_lock.WAIT_S + 1
    with raises_sentence(Unavailable), machine_lock.exclusive_machine_lock(tmp_path, said.append):
        pytest.fail("another run has it")
    assert now[0] == pytest.approx(machine_lock.WAIT_S, abs=1)
    ends = now[0] + 5
    with machine_lock.exclusive_machine_lock(tmp_path, said.append):
        assert locked(tmp_path)
    os.close(other)
    assert len(said) == 2 and max(map(len, said)) < 59, "what a terminal of 80 columns shows of it"


def test_engines_of_one_run_that_start_at_the_same_time_share_the_lock(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """A thread that takes the lock gives another one the time to try it, too."""
    both, have_it, tried = threading.Barrier(2), threading.Barrier(2), threading.Barrier(2)
    take = machine_lock.file_lock.take

    def slow_take(folder: int) -> bool:
        with suppress(threading.BrokenBarrierError):
            tried.wait(0.2)
        return take(folder)

    def engine() -> bool:
        both.wait(LONG_S)
        with machine_lock.exclusive_machine_lock(tmp_path, said.append):
            have_it.wait(LONG_S)
            return locked(tmp_path)

    said: list[str] = []
    monkeypatch.setattr(machine_lock.file_lock, "take", slow_take)
    monkeypatch.setattr(machine_lock, "WAIT_S", 0.0)
    with ThreadPoolExecutor(2) as threads:
        started = [threads.submit(engine), threads.submit(engine)]
        assert [each.result() for each in started] == [True, True]
    assert not locked(tmp_path) and not said and not machine_lock._locks


def test_a_wait_for_another_run_can_be_cancelled(tmp_path: Path):
    other, stop = os.open(tmp_path, os.O_RDONLY), Cancellation()
    fcntl.flock(other, fcntl.LOCK_EX)

    def say(_: str) -> None:
        stop.request()

    with stop.heeded(), pytest.raises(Cancelled), machine_lock.exclusive_machine_lock(tmp_path, say):
        pytest.fail("another run has it")
    stop.close()
    os.close(other)
    assert not locked(tmp_path) and not machine_lock._locks


def test_an_engine_of_the_users_that_answers_is_told(
    tmp_path: Path, restored: list[tuple[object, bool]], users_engine: list[bool]
):
    users_engine.append(True)
    machine_lock.restore(tmp_path, firewall.Adds.DOCKER)
    assert restored.pop() == (None, False), "nobody is asked where nothing was noted"
    (tmp_path / firewall.NOTE).touch()
    machine_lock.restore(tmp_path, firewall.Adds.DOCKER)
    assert restored == [(None, True)]


def test_what_another_run_needs_is_left_alone(tmp_path: Path, restored: list[tuple[object, bool]]):
    other = os.open(tmp_path, os.O_RDONLY)
    fcntl.flock(other, fcntl.LOCK_EX)
    further: list[str] = []
    machine_lock.restore(tmp_path, firewall.Adds.DOCKER, lambda: further.append("done"))
    os.close(other)
    assert not restored
    assert not further


def test_what_is_left_is_told_unless_another_run_needs_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    held: list[bool] = []

    def left(base: Path, *, beside_engine: bool) -> list[str]:
        held.append(locked(base))
        return [] if beside_engine else ["ip6tables nat: 2 of rules"]

    monkeypatch.setattr(firewall, "left", left)
    assert machine_lock.left(tmp_path) == ["ip6tables nat: 2 of rules"]
    assert held == [False], "a run that ends meanwhile must get the lock at once"
    other = os.open(tmp_path, os.O_RDONLY)
    fcntl.flock(other, fcntl.LOCK_EX)
    assert machine_lock.left(tmp_path) == []
    os.close(other)
    assert machine_lock.left(tmp_path / "never made") == []
