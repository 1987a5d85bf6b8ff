"""Runs the programs that build root filesystems."""

import time
from collections.abc import Callable, Mapping

from weighbridge.errors import DiskFull, Unavailable, UserlandError
from weighbridge.linux.process import Process
from weighbridge.model.command import Command, Completed

BUILD_DEADLINE_S = 1800.0
_LOOK_S = 0.5


def must(
    *argv: str,
    program: str = "",
    env: Mapping[str, str] | None = None,
    unavailable: Mapping[str, str] | None = None,
    heard: Callable[[str], None] = lambda _: None,
) -> None:
    """Run a program that a build needs. Raises UserlandError with its error message, and DiskFull.

    ``heard`` is called with each line of its standard error while it runs.
    ``unavailable`` maps words of an error message which mean that this user cannot build to the reason to report.
    """
    completed = run(Command(argv, BUILD_DEADLINE_S, env or {}), heard)
    program = program or argv[0]
    if completed.timed_out:
        raise UserlandError.too_slow(program, BUILD_DEADLINE_S)
    if completed.returncode != 0:
        lines = completed.stderr.decode(errors="replace").splitlines()
        errors = [line for line in lines if line.startswith("E:")] or lines[-1:] or ["no message"]
        for words, reason in (unavailable or {}).items():
            if words in " ".join(lines):
                raise Unavailable(reason)
        if "No space left" in " ".join(lines):
            raise DiskFull(f"{program} ran out of disk space: {errors[0]}")
        raise UserlandError(f"{program} failed: {errors[0]}")


def run(command: Command, heard: Callable[[str], None]) -> Completed:
    """Run a command to its end; call ``heard`` with each line of its standard error while it runs."""
    process, read, ended = Process(command), 0, False
    deadline = time.monotonic() + command.deadline_s
    try:
        while not ended and time.monotonic() < deadline:
            ended = process.wait(_LOOK_S)
            errors = process.errors_so_far()[read:]
            complete = errors[: errors.rfind(b"\n") + 1]
            read += len(complete)
            for line in complete.decode(errors="replace").splitlines():
                heard(line)
    finally:
        completed = process.stop(timed_out=not ended)
    return completed
