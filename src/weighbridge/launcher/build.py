"""Builds and caches the launcher, a static program: it needs nothing of the root folder that it runs in."""

import functools
import hashlib
import platform
from collections.abc import Callable
from pathlib import Path

from weighbridge import build_once
from weighbridge.errors import Unavailable
from weighbridge.linux import static_c
from weighbridge.linux.folders import changeable_by_others
from weighbridge.linux.packages import install_here

SOURCE = Path(__file__).parent / "source"
NAME = "weighbridge-launcher"


@functools.cache
def key() -> str:
    """The name under which it is cached: of its sources, how it is built, and for which machines."""
    how = " ".join((build_once.key_of_folder(SOURCE), *static_c.OPTIONS, platform.machine()))
    return hashlib.sha256(how.encode()).hexdigest()[:16]


def digest(program: Path) -> str:
    """What tells a built launcher from another, also of the same sources: another compiler or libc makes another."""
    return hashlib.sha256(program.read_bytes()).hexdigest()[:16]


def cached(cache: Path) -> Path | None:
    """The built program, or None."""
    program = cache / "programs" / key() / NAME
    return program if program.is_file() else None


def cannot_build(cache: Path) -> tuple[str, str] | None:
    """Why it cannot be built, where it is not cached yet, and what helps; None where all is well."""
    if cached(cache) is not None or not (missing := static_c.missing()):
        return None
    return f"{missing[0]}, which it takes to build the launcher of sites, is not installed", install_here(missing)


def ensure(cache: Path, say: Callable[[str], None]) -> Path:
    """The program, built if need be. Raises Unavailable without a compiler, UserlandError, DiskFull.

    Unavailable, too, where somebody else could change it: it is the first process of every site, often root's.
    """
    program = build_once.ensure(
        cache / "programs",
        key(),
        "the launcher of sites",
        lambda: cached(cache),
        lambda: cannot_build(cache),
        say,
        _build,
    )
    if (fault := next(changeable_by_others(program), None)) is not None:
        raise Unavailable(f"{fault[0]}: {fault[1]}, or set WEIGHBRIDGE_CACHE to a folder of your own")
    return program


def _build(work: Path) -> None:
    sources = [str(path) for path in sorted(SOURCE.glob("*.c"))]
    static_c.compile_program("the launcher of sites", static_c.OPTIONS, sources, work / NAME)
    (work / NAME).chmod(0o755)  # whatever the umask
