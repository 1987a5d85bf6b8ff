"""Process groups of programs that Weighbridge starts: their numbers, and what is left in them."""

import os
import signal
import time
from pathlib import Path

from weighbridge.linux.process import Process, talk
from weighbridge.model.command import Command

from .programs import await_that

LAST_NUMBER = Path("/proc/sys/kernel/ns_last_pid")


def _one_with_the_number(pid: int) -> int:
    """Start a process in a group of its own that gets a number if that is free; return the number that it got."""
    LAST_NUMBER.write_text(str(pid - 1))
    child = os.fork()
    if child == 0:
        os.setsid()
        time.sleep(60)
        os._exit(0)
    return child


def test_a_group_of_another_program_with_the_same_number_is_not_ended():
    """The number of a process is free once it is reaped: with few numbers the next program has it in a minute."""
    process = Process(Command(("sh", "-c", "exit 3")))
    assert process.wait(10) and process.poll() == 3
    others = [_one_with_the_number(process.pid) for _ in range(20)]  # other programs start meanwhile
    try:
        time.sleep(0.2)  # they make their groups
        assert process.stop().returncode == 3
        time.sleep(0.2)  # one that is killed ends a moment later
        assert [os.waitpid(each, os.WNOHANG) for each in others] == [(0, 0)] * len(others)
    finally:
        for each in others:
            os.kill(each, signal.SIGKILL)
            os.waitpid(each, 0)


def _runs(folder: Path) -> bool:
    """Return whether a process exists and has not ended; ``folder`` is its folder in /proc."""
    try:
        return (folder / "stat").read_text().split()[2] != "Z"
    except OSError:
        return False


def test_what_the_leader_of_a_group_has_left_is_ended():
    process = Process(Command(("sh", "-c", "sleep 60 & echo $!")))
    assert process.wait(10)
    left = Path("/proc", process.output_so_far().decode().strip())
    assert left.exists()
    assert process.stop().returncode == 0
    await_that(lambda: not _runs(left))


def test_a_stream_ends_with_its_program_although_another_process_holds_it():
    process, stream = talk(Command(("sh", "-c", "sleep 600 & echo $!")))
    left = Path("/proc") / stream.receive(60).decode().strip()
    assert stream.receive(60) == b"" and _runs(left)
    process.stop()


def test_a_process_that_a_signal_has_ended():
    process = Process(Command(("sleep", "60")))
    assert process.poll() is None
    assert process.stop().returncode == -signal.SIGTERM
    assert process.poll() == -signal.SIGTERM
