"""What is built once into the cache, and what is told where that fails."""

import errno
import fcntl
import os
from pathlib import Path

import pytest

from weighbridge import build_once
from weighbridge.errors import Cancelled, DiskFull, UserlandError, WeighbridgeError
from weighbridge.linux.cancellation import Cancellation


@pytest.mark.parametrize(
    ("number", "failure"),
    [(errno.ENOSPC, DiskFull), (errno.EDQUOT, DiskFull), (errno.EACCES, UserlandError), (errno.EIO, UserlandError)],
)
def test_only_a_full_disk_is_told_as_one(tmp_path: Path, number: int, failure: type[WeighbridgeError]):
    def build(work: Path) -> None:
        raise OSError(number, os.strerror(number), str(work / "part"))

    with pytest.raises(WeighbridgeError) as told:
        build_once.ensure(tmp_path, "k", "the thing", lambda: None, lambda: None, lambda _: None, build)
    assert type(told.value) is failure
    assert os.strerror(number) in str(told.value) and "WEIGHBRIDGE_CACHE" in str(told.value)
    assert len(str(told.value).splitlines()) == 1 and [*tmp_path.glob(".building*")] == []


def test_a_wait_for_the_build_of_another_run_can_be_cancelled(tmp_path: Path):
    stop = Cancellation()

    def build(work: Path) -> None:
        pytest.fail("the other run builds it")

    def say(_: str) -> None:
        stop.request()

    with (tmp_path / "k.lock").open("w") as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        with stop.heeded(), pytest.raises(Cancelled):
            build_once.ensure(tmp_path, "k", "the thing", lambda: None, lambda: None, say, build)
    stop.close()
    assert [*tmp_path.iterdir()] == [tmp_path / "k.lock"]
