"""Runs the programs that build root filesystems."""

from collections.abc import Mapping

from weighbridge.errors import DiskFull, Unavailable, UserlandError
from weighbridge.linux.process import run
from weighbridge.model.command import Command

BUILD_DEADLINE_S = 1800.0


def must(
    *argv: str,
    program: str = "",
    env: Mapping[str, str] | None = None,
    unavailable: Mapping[str, str] | None = None,
) -> None:
    """Run a program that a build needs. Raises UserlandError with its error message, and DiskFull.

    ``unavailable`` maps words of an error message which mean that this user cannot build to the reason to report.
    """
    completed = run(Command(argv, BUILD_DEADLINE_S, env or {}))
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
