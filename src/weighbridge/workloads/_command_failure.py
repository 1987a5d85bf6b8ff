"""Why a program of the study's own failed, where it says so in the words of the C library or of a shell."""

import errno
import os
import re

from weighbridge.model.command import Completed

_LAST = 4096
"""Bytes of each stream in which a program's reason is looked for."""
_TOLD = (
    (
        re.compile(re.escape(os.strerror(errno.EROFS))),
        "it writes where nothing can be written: only /tmp and /run can",
    ),
    (
        re.compile(
            rf"{re.escape(os.strerror(errno.ENOTTY))}"
            r"|\b(?:is|are) not a (?:tty|terminal)\b|\bnot a TTY\b|\bneeds? a (?:tty|terminal)\b",
            re.IGNORECASE,
        ),
        "it needs a terminal, and has none here",
    ),
    (re.compile(re.escape(os.strerror(errno.EADDRINUSE)), re.IGNORECASE), "its port is in use by another program"),
)
"""What is known of a reason: how it is worded, and what to say of it."""
_NOT_FOUND = re.compile(r"(?:^|\s)(\S+?): (?:command )?not found\s*$", re.MULTILINE)
NOT_FOUND, NOT_STARTED = 127, 126
"""The codes of a shell for a program that is not there, and one that cannot be started."""


def failure_of(done: Completed, *, shell: bool) -> str:
    """Return one sentence about a program that ended with another code than 0; with its last words."""
    if done.returncode == NOT_FOUND and shell:
        found = _NOT_FOUND.search(_end(done.stderr))
        if found:
            return f"the program {found[1]} is not in the userland"
    how = f"signal {-done.returncode}" if done.returncode < 0 else f"code {done.returncode}"
    why = reason(done)
    told = f"{why}: " if why else ""
    return f"{done.argv[0]} ended with {how}: {told}{done.last_words}"


def reason(done: Completed) -> str:
    """Return what the program's end is known to mean; empty where it is not known."""
    said = _end(done.stderr) + "\n" + _end(done.stdout)
    return next((meaning for pattern, meaning in _TOLD if pattern.search(said)), "")


def _end(printed: bytes) -> str:
    return printed[-_LAST:].decode(errors="replace")
