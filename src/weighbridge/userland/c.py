"""Builds and caches the programs of the projects below ``weighbridge/c``: a static file each, by cc."""

import hashlib
import platform
from pathlib import Path

from weighbridge import build_once
from weighbridge.errors import UserlandError
from weighbridge.linux import static_c
from weighbridge.model.by_hand import Build
from weighbridge.userland.compiled import Compiler, program_of

PROJECTS = Path(__file__).parent.parent / "c"
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


def key_of(project: str) -> str:
    """The name under which a program is cached: of its sources and how it is built. Raises UserlandError."""
    folder = PROJECTS / project
    if not any(folder.glob("*.c")):
        raise UserlandError(f"there is no C project '{project}'")
    how = " ".join((build_once.key_of_folder(folder), *_OPTIONS, platform.machine()))
    return hashlib.sha256(how.encode()).hexdigest()[:16]


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
    folder = PROJECTS / project
    COMPILER.output(folder, "cc", *_OPTIONS, "-o", str(work / program_of(project)), *_sources(project))
    (work / _COMPILER).write_text(COMPILER.output(folder, "cc", "--version").partition("\n")[0])


COMPILER = Compiler(
    static_c.COMPILER, "the programs of some workloads", static_c.missing, key_of, _build, static_c.reason,
    static_c.DEADLINE_S,
)  # fmt: skip
cached, cannot_build, ensure = COMPILER.cached, COMPILER.cannot_build, COMPILER.ensure
