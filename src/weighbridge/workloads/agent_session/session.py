"""Runs the steps of an agent session, and times each of them. This script runs inside a site.

    python3 session.py FOLDER SESSIONS

Each command is a separate process whose output goes to a pipe, like the commands of an agent. The script prints a
JSON line for each step of each session, and one line at the end. The time of a step is the sum over its commands,
each from before its process starts until after it ends. The script needs only Python 3.9 and the programs of
`COMMANDS`. The plug-in sets git's variables.
"""

import json
import os
import re
import subprocess
import sys
import time
import zlib
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

PATCH = f"{Path(__file__).parent}/weighbridge-agent-fix.patch"
"""The changes of the session, next to this script. The tests, the build and the check work on the changed files."""
EDITED = ("README.md", "native/harbour.h", "src/harbour/base.py", "web/format.js")
"""The tracked files that the session changes."""
_READ = (
    "README.md", "native/Makefile", "native/harbour.h", "native/main.c", "native/part0.c", "src/harbour/base.py",
    "tools/lint.js", "web/format.js",
)  # fmt: skip
COMMANDS: Sequence[tuple[str, tuple[str, ...]]] = (
    ("git_status", ("git", "status", "--short", "--branch")),
    ("git_status", ("git", "log", "--oneline", "--max-count=20")),
    ("find", ("ls", "src/harbour")),
    ("find", ("find", ".", "-name", "*.c", "-not", "-path", "./.git/*")),
    ("find", ("find", "src", "-name", "m0*.py", "-type", "f")),
    ("find", ("find", "docs", "web", "-type", "f", "-size", "+2k")),
    ("search", ("rg", "--line-number", "def parse_")),
    ("search", ("rg", "--files-with-matches", "formatWeight|checksum")),
    ("search", ("rg", "--files", "--glob", "*.md")),
    ("search", ("rg", "--count", "--ignore-case", "revision 1[0-9]", "docs")),
    ("search", ("rg", "--line-number", "--context=2", "weighLock", "web")),
    ("search", ("rg", "--line-number", "no such name")),
    *(("read", ("cat", path)) for path in _READ),
    *(("read", ("sed", "-n", "1,40p", path)) for path in _READ),
    ("edit", ("git", "apply", PATCH)),
    ("edit", ("sed", "--in-place", "s/artificial/small/", "README.md")),
    ("edit", ("sed", "--in-place", "s/HARBOUR_H/HARBOUR_HEADER/", "native/harbour.h")),
    ("git_status", ("git", "status", "--short", "--branch")),
    ("git_diff", ("git", "diff")),
    ("git_diff", ("git", "diff", "--stat", "HEAD")),
    ("git_diff", ("git", "diff", "--stat", "HEAD~5", "HEAD")),
    ("python_tests", ("python3", "-m", "unittest", "discover", "-s", "tests", "-t", ".")),
    ("c_build", ("make", "--silent", "-C", "native")),
    ("c_build", ("native/harbour",)),
    ("javascript_check", ("node", "--check", "web/format.js")),
    ("javascript_check", ("node", "tools/lint.js")),
    ("edit", ("git", "restore", ".")),
    ("edit", ("git", "clean", "--quiet", "-fdx")),
    ("git_status", ("git", "status", "--short", "--branch")),
)  # fmt: skip
"""The commands of a session in their order, each with its step."""
PROCESSES = Counter(step for step, _ in COMMANDS)
"""The number of commands by step."""
STEPS = tuple(PROCESSES)
PROGRAMS = ("git", "rg", "find", "sed", "python3", "cc", "make", "node")
"""The programs of the commands."""
SUCCESS: dict[str, tuple[int, ...]] = {"search": (0, 1)}
"""The exit codes of success by step, if there are others than 0. ripgrep ends with 1 if it finds nothing."""
EXPECTED: dict[str, tuple[int, int]] = {
    "git_status": (28, 95177125),
    "find": (451, 3619528737),
    "search": (2685, 2698337479),
    "read": (421, 2699146720),
    "edit": (0, 0),
    "git_diff": (136, 2265145640),
    "python_tests": (5, 3094723881),
    "c_build": (1, 1108245227),
    "javascript_check": (1, 3256961079),
}
"""The lines that the commands of each step print together, and their checksum. They follow from the repository."""
_VARIABLE = re.compile(rb"in [0-9.]+s$", re.MULTILINE)
"""The part of the outputs that is different each time: how long the unit tests took."""


def timed(argv: tuple[str, ...], stdin: int) -> tuple[int, int, bytes]:
    """Run one process. Return its nanoseconds, its exit code, and everything that it printed."""
    printed, write = os.pipe()
    actions = [(os.POSIX_SPAWN_DUP2, stdin, 0), (os.POSIX_SPAWN_DUP2, write, 1), (os.POSIX_SPAWN_DUP2, write, 2)]
    chunks = []
    start = time.monotonic_ns()
    pid = os.posix_spawnp(argv[0], argv, os.environ, file_actions=actions)
    os.close(write)
    while chunk := os.read(printed, 65536):
        chunks.append(chunk)
    status = os.waitpid(pid, 0)[1]
    nanoseconds = time.monotonic_ns() - start
    os.close(printed)
    return nanoseconds, os.waitstatus_to_exitcode(status), b"".join(chunks)


def checksum(outputs: bytes) -> tuple[int, int]:
    """Return the number of lines, and a checksum that ignores their order, which varies for find and ripgrep."""
    lines = sorted(_VARIABLE.sub(b"", outputs).splitlines())
    return len(lines), zlib.crc32(b"\n".join(lines))


def session() -> dict[str, tuple[int, int, int]]:
    """Run all commands in the current folder. Return by step: processes, nanoseconds and printed lines.

    Exits with one sentence if a command fails, or prints something else than it should.
    """
    nanoseconds, outputs = dict.fromkeys(STEPS, 0), dict.fromkeys(STEPS, b"")
    nothing = os.open(os.devnull, os.O_RDONLY)
    for step, argv in COMMANDS:
        try:
            took, code, printed = timed(argv, nothing)
        except OSError as error:
            sys.exit(f"step {step}: {argv[0]} cannot be started: {error.strerror}")
        if code not in SUCCESS.get(step, (0,)):
            last = (printed.decode(errors="replace").strip() or "it printed nothing").splitlines()[-1]
            sys.exit(f"step {step}: '{' '.join(argv)}' exited with code {code}: {last[:300]}")
        nanoseconds[step] += took
        outputs[step] += printed
    os.close(nothing)
    for step, printed in outputs.items():
        if (actual := checksum(printed)) != EXPECTED[step]:
            found, expected = (f"{lines} lines with checksum {crc}" for lines, crc in (actual, EXPECTED[step]))
            sys.exit(f"step {step}: its commands printed {found}, not {expected}")
    return {step: (PROCESSES[step], nanoseconds[step], EXPECTED[step][0]) for step in STEPS}


def reset(modified: dict[str, int]) -> None:
    """Give the edited files their old times, and refresh git's index, so that the next session does the same work."""
    for path, ns in modified.items():
        os.utime(path, ns=(ns, ns))
    subprocess.run(["git", "update-index", "-q", "--refresh"], check=True)


def versions() -> dict[str, str]:
    """Return the first line of each program's version."""
    found = {}
    for program in PROGRAMS:
        try:
            done = subprocess.run([program, "--version"], stdout=subprocess.PIPE, check=True)
        except (OSError, subprocess.CalledProcessError) as error:
            sys.exit(f"{program} --version failed: {error}")
        found[program] = done.stdout.decode(errors="replace").partition("\n")[0]
    return found


def main(folder: str, sessions: str) -> None:
    """Run the sessions, and print the times when all have ended."""
    os.chdir(folder)
    modified = {path: Path(path).stat().st_mtime_ns for path in EDITED}
    lines: list[dict[str, object]] = []
    for number in range(int(sessions)):
        for step, (processes, nanoseconds, printed) in session().items():
            figures = {"processes": processes, "nanoseconds": nanoseconds, "lines": printed}
            lines.append({"session": number + 1, "step": step, **figures})
        reset(modified)
    files = sum(len(names) for place, _, names in os.walk(".") if not place.startswith("./.git"))
    lines.append({"sessions": int(sessions), "files": files, "versions": versions()})
    print("\n".join(json.dumps(line) for line in lines))


if __name__ == "__main__":
    main(*sys.argv[1:])
