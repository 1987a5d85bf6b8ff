"""Weighbridge in a machine, as one of its users: commands, runs in the background, the machine before and after."""

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import pytest

from .guest import Answer, Guest
from .rows import User

PROGRAM = "i=0; while [ $i -lt 20000 ]; do i=$((i + 1)); done"


@dataclass(frozen=True)
class Weighbridge:
    """The installed program of one user; its runs are in the folder `~/runs`."""

    machine: Guest
    user: User

    @property
    def program(self) -> str:
        """The command's first words: Debian sid's sudo does not look in /usr/local/bin."""
        return 'sudo "$(command -v weighbridge)"' if self.user.sudo else "weighbridge"

    def __call__(self, line: str, timeout: float = 1800) -> Answer:
        """Run a command, as ``doctor --json``, in the user's home folder."""
        return self.machine.shell(self.user.login, f"{self.program} {line}", timeout=timeout)

    def json(self, line: str, codes: tuple[int, ...] = (0,)) -> Any:
        """Return the document that a command with ``--json`` prints; it ends with one of the codes."""
        answer = self(line)
        assert answer.code in codes, f"{line} ended with {answer.code}: {answer.text}"
        assert "Traceback" not in answer.text and "Exception ignored" not in answer.text, answer.text
        return json.loads(answer.out)

    @property
    def home(self) -> str:
        """Where the program's cache is: sudo's is root's."""
        return "/root" if self.user.sudo else self.user.home

    def link_userland(self) -> None:
        """Link the userland that was carried in, if one was, into the user's cache: a first run would build it."""
        sudo = "sudo " if self.user.sudo else ""
        cache = f"{self.home}/.cache/weighbridge/userlands"
        link = f"{sudo}mkdir -p {cache} && {sudo}ln -sfn /carried/userlands/* {cache}/"
        link = f"if [ -e /carried/userlands ]; then {link}; fi"
        self.machine.must(self.user.login, "sh", "-c", link)

    def start(self, line: str, log: str) -> None:
        """Start a command in the background, with its output and at last ``ended CODE`` in the log."""
        inner = f"{self.program} {line}; echo ended $?"
        self.machine.must(
            self.user.login, "sh", "-c", f"setsid nohup sh -c '{inner}' > {log} 2>&1 < /dev/null & sleep 1"
        )

    def ended(self, log: str, seconds: float) -> str:
        """Wait until the command of a log has ended; return the log."""
        ends = time.monotonic() + seconds
        while time.monotonic() < ends:
            text = self.machine.must(self.user.login, "cat", log)
            if text.rstrip().rpartition("\n")[2].startswith("ended "):
                return text
            time.sleep(5)
        pytest.fail(f"not ended after {seconds} s: {text[-2000:]}")


@contextmanager
def unchanged(machine: Guest) -> Iterator[None]:
    """Fail where the machine afterwards has changed before: groups, mounts, rules, links, files, processes."""
    before = snapshot(machine)
    yield
    difference = {}
    for _ in range(5):  # a process that is ending is no remainder
        after = snapshot(machine)
        difference = {
            section: (sorted(lines - after[section]), sorted(after[section] - lines))
            for section, lines in before.items()
            if lines != after[section]
        }
        if not difference:
            return
        time.sleep(2)
    pytest.fail(f"the machine has changed (less, more): {difference}")


def snapshot(machine: Guest) -> dict[str, set[str]]:
    """Return the lines of each section of inside/snapshot.sh."""
    sections: dict[str, set[str]] = {}
    lines: set[str] = set()
    for line in machine.must("root", "sh", "/opt/tests/snapshot.sh").splitlines():
        if line.startswith("# "):
            lines = sections.setdefault(line[2:], set())
        else:
            lines.add(line)
    return sections
