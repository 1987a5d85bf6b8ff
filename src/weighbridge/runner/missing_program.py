"""A program that a site does not have, or that failed beside the measured one, told in one sentence."""

import errno
import os
import re

from weighbridge.model.command import Completed

_NO_PROGRAM = re.compile(r"exec: (\S+): not found")
"""How a shell says it."""


def missing(completed: Completed) -> str:
    """Name the program that the userland does not have; empty where it ran.

    Where a shell was to start it, the shell says so with code 126 or 127.
    """
    if completed.error == errno.ENOENT:
        return f"the program {completed.argv[0]} is not in the userland"
    if completed.error:
        return f"the program {completed.argv[0]} cannot be started: {os.strerror(completed.error)}"
    said = (completed.stderr + b"\n" + completed.stdout).decode(errors="replace")
    found = _NO_PROGRAM.search(said) if completed.returncode in (126, 127) else None
    return f"the program {found[1]} is not in the userland" if found else ""


def failure_beside(completed: Completed) -> str:
    """Tell why a program failed that was run beside the measured one."""
    why = "it did not end in time" if completed.timed_out else missing(completed) or completed.last_words
    return f"{ended_with(completed)}{why}"


def ended_with(completed: Completed) -> str:
    """Tell with which code a program ended, where that says something of its own; with a colon behind it."""
    if completed.timed_out or completed.error:
        return ""
    return f"{completed.argv[0]} ended with code {completed.returncode}: "
