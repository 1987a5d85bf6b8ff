"""A program that a site does not have, told in one sentence."""

import re

from weighbridge.model.command import Completed

_NO_PROGRAM = re.compile(
    r'^(?:/usr/bin/)?env: .(\S+?).: (?:No such file|Permission)|exec: "?([^\s"]+?)"?: (?:not found|executable file)',
    re.MULTILINE,
)
"""How a chroot's launcher, a shell and a container engine say it."""


def missing(completed: Completed) -> str:
    """Name the program that the userland does not have; empty where it ran. The code is 126 or 127, as of a shell."""
    said = (completed.stderr + b"\n" + completed.stdout).decode(errors="replace")
    found = _NO_PROGRAM.search(said) if completed.returncode in (126, 127) else None
    return f"the program {found[1] or found[2]} is not in the userland" if found else ""
