"""Builds and caches the programs of the projects below ``weighbridge/c``: a static file each, by cc."""

import hashlib
import platform
import shutil
from collections.abc import Callable, Iterable
from pathlib import Path

from weighbridge import build_once
from weighbridge.errors import UserlandError
from weighbridge.linux.process import run
from weighbridge.model.by_hand import Build
from weighbridge.model.command import Command

PROJECTS = Path(__file__).parent.parent / "c"
BUILD_DEADLINE_S = 120.0
_OPTIONS = (
    "-static",
    "-std=gnu11",
    "-O3",
    "-s",
    "-pthread",
    "-Wall",
    "-Wextra",
    "-fno-tree-loop-distribute-patterns",
)
"""For every CPU of its kind alike, so that the bits are the same on every machine. A loop that copies stays a loop:
else the compiler makes it libc's memcpy, which chooses its instructions by the CPU that it finds."""
_COMPILER = "compiler"
"""Beside the program: what built it, as ``cc --version`` tells it."""


def program_of(project: str) -> str:
    """The name of a project's program."""
    return f"weighbridge-{project}"


def key_of(project: str) -> str:
    """The name under which a program is cached: of its sources and how it is built. Raises UserlandError."""
    folder = PROJECTS / project
    if not any(folder.glob("*.c")):
        raise UserlandError(f"there is no C project '{project}'")
    how = " ".join((build_once.key_of_folder(folder), *_OPTIONS, platform.machine()))
    return hashlib.sha256(how.encode()).hexdigest()[:16]


def cached(project: str, cache: Path) -> Path | None:
    """The project's built program, or None."""
    program = cache / "programs" / key_of(project) / program_of(project)
    return program if program.is_file() else None


def cannot_build(projects: Iterable[str], cache: Path) -> tuple[str, str] | None:
    """Why the programs that are not cached yet cannot be built, and what helps; None where all is well."""
    if shutil.which("cc") is not None or all(cached(project, cache) is not None for project in projects):
        return None
    return "cc, which builds the programs of some workloads, is not installed", "apt-get install gcc libc6-dev"


def ensure(project: str, cache: Path, say: Callable[[str], None]) -> Path:
    """The project's program, built if need be.

    Raises Unavailable without a compiler, UserlandError where the build fails, DiskFull.
    """
    return build_once.ensure(
        cache / "programs",
        key_of(project),
        program_of(project),
        lambda: cached(project, cache),
        lambda: cannot_build([project], cache),
        say,
        lambda work: _build(project, work),
    )


def versions(program: Path) -> dict[str, str]:
    """The digest of a built program, and what built it: another compiler, or another libc, makes other bits."""
    digest = hashlib.sha256(program.read_bytes()).hexdigest()[:16]
    return {f"{program.name} (C program)": digest, "cc (compiler)": (program.parent / _COMPILER).read_text()}


def by_hand(project: str, place: str) -> Build:
    """How an image builds a project's program, for the folder ``place``."""
    folder, program = PROJECTS / project, program_of(project)
    command = ("cc", *_OPTIONS, "-o", program, *_sources(project))
    packages = ("gcc", "libc6-dev")
    return Build(project, packages, build_once.files_below(folder), (command,), program, f"{place}/{program}")


def _sources(project: str) -> list[str]:
    return sorted(path.name for path in (PROJECTS / project).glob("*.c"))


def _build(project: str, work: Path) -> None:
    """The sources are only read, where they are."""
    _cc(project, *_OPTIONS, "-o", str(work / program_of(project)), *_sources(project))
    (work / _COMPILER).write_text(_cc(project, "--version").partition("\n")[0])


def _cc(project: str, *arguments: str) -> str:
    """What the compiler printed."""
    argv = ("setpriv", "--pdeathsig", "KILL", "--", "env", f"--chdir={PROJECTS / project}", "cc", *arguments)
    completed = run(Command(argv, BUILD_DEADLINE_S))
    if completed.timed_out:
        raise UserlandError(f"cc did not end within {BUILD_DEADLINE_S / 60:.0f} minutes")
    if completed.returncode != 0:
        raise UserlandError(f"cc failed: {reason(completed.stderr.decode(errors='replace'))}")
    return completed.text


def reason(stderr: str) -> str:
    """The line of the compiler's complaints that says why: its first error, else its last line."""
    lines = [line.strip() for line in stderr.splitlines() if line.strip()]
    errors = [line for line in lines if "error: " in line or "undefined reference" in line or "cannot find" in line]
    return (errors or lines[-1:] or ["it printed nothing"])[0][:300]
