"""Builds and caches the programs of the projects below ``weighbridge/c``: one static file per project, by cc.

Each can also be built by ``musl-gcc`` with musl, the C library of Alpine's images, with the same sources and options.
"""

import hashlib
import platform
import re
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Literal

from weighbridge import build_once
from weighbridge.errors import UserlandError
from weighbridge.linux import static_c
from weighbridge.linux.process import run
from weighbridge.model.by_hand import Build
from weighbridge.model.command import Command
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
"""Options without CPU-specific code, so that the bits are the same on every machine.

Without the last one, the compiler turns copying loops into libc's memcpy, which selects its instructions by CPU."""
_COMPILER = "compiler"
"""The file with the compiler's version, by ``cc --version``."""
_LIBC = "libc"
"""The file with the requested C library and its version."""
Libc = Literal["musl"]
"""A C library that can be requested; None is the compiler's own, which is glibc on most distributions."""
_LOADER = f"/lib/ld-musl-{platform.machine()}.so.1"
"""musl's loader, which is the library itself; it prints its version when it is started without a program."""
_VERSION_S = 20.0


def key_of(project: str, libc: Libc | None = None) -> str:
    """Return the name under which a program is cached, by its sources and build options. Raises UserlandError."""
    folder = PROJECTS / project
    if not any(folder.glob("*.c")):
        raise UserlandError(f"there is no C project '{project}'")
    inputs = " ".join((build_once.key_of_folder(folder), *_OPTIONS, platform.machine(), *filter(None, (libc,))))
    return hashlib.sha256(inputs.encode()).hexdigest()[:16]


def versions(program: Path) -> dict[str, str]:
    """Return the digest of a built program, its compiler and its libc, all of which affect its bits."""
    digest = hashlib.sha256(program.read_bytes()).hexdigest()[:16]
    libc = program.parent / _LIBC
    return {
        f"{program.name} (C program)": digest,
        "cc (compiler)": (program.parent / _COMPILER).read_text(),
        **({"libc (C library of C programs)": libc.read_text()} if libc.exists() else {}),
    }


def by_hand(project: str, place: str, libc: Libc | None = None) -> Build:
    """Return how an image builds a project's program, for the folder ``place``."""
    folder, program = PROJECTS / project, program_of(project)
    command = (compiler(libc).program, *_OPTIONS, "-o", program, *_sources(project))
    packages = ("musl-tools",) if libc else ("gcc", "libc6-dev")
    return Build(project, packages, build_once.files_below(folder), (command,), program, f"{place}/{program}")


def _sources(project: str) -> list[str]:
    return sorted(path.name for path in (PROJECTS / project).glob("*.c"))


def _build(project: str, work: Path, libc: Libc | None = None) -> None:
    folder, cc = PROJECTS / project, compiler(libc)
    cc.output(folder, cc.program, *_OPTIONS, "-o", str(work / program_of(project)), *_sources(project))
    (work / _COMPILER).write_text(cc.output(folder, cc.program, "--version").partition("\n")[0])
    if libc is not None:
        (work / _LIBC).write_text(f"{libc} {_version_of_musl()}".strip())


def _version_of_musl() -> str:
    """Return the version of this machine's musl; "" if its loader is elsewhere."""
    if not Path(_LOADER).exists():
        return ""
    output = run(Command((_LOADER,), _VERSION_S)).stderr.decode(errors="replace")
    version = re.search(r"^Version (\S{1,40})$", output, re.MULTILINE)
    return version[1] if version else ""


def compiler(libc: Libc | None = None) -> Compiler:
    """Return the compiler of the programs with a C library."""
    return _COMPILERS[libc]


_BUILDS = "the programs of some workloads"
_COMPILERS: Mapping[Libc | None, Compiler] = {
    None: Compiler(
        static_c.COMPILER, _BUILDS, static_c.missing, key_of, _build, static_c.reason, static_c.DEADLINE_S
    ),
    "musl": Compiler(
        static_c.MUSL, f"{_BUILDS} with musl", static_c.missing_for_musl, partial(key_of, libc="musl"),
        partial(_build, libc="musl"), static_c.reason, static_c.DEADLINE_S,
    ),
}  # fmt: skip
cached, cannot_build, ensure = _COMPILERS[None].cached, _COMPILERS[None].cannot_build, _COMPILERS[None].ensure
