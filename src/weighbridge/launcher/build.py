"""The launcher, a static program that needs nothing from the root folder that it runs in.

A wheel contains the built program next to its source. If it has none for this source and this machine, the program is
compiled. It is always started from the user's cache, which no other user can change.
"""

import functools
import hashlib
import platform
import shutil
from collections.abc import Callable
from pathlib import Path

from weighbridge import build_once
from weighbridge.errors import Unavailable
from weighbridge.linux import static_c
from weighbridge.linux.folders import changeable_by_others
from weighbridge.linux.packages import install_here

SOURCE = Path(__file__).parent / "source"
PREBUILT = Path(__file__).parent / "built"
"""The folder of launchers in a wheel, each in a folder that is named by its `source_key`."""
NAME = "weighbridge-launcher"
_WHAT = "the sites' launcher"


@functools.cache
def source_key(machine: str) -> str:
    """Return sixteen hexadecimal digits for its sources, its build options, and the machine (``x86_64``)."""
    how = " ".join((build_once.key_of_folder(SOURCE), *static_c.OPTIONS, machine))
    return hashlib.sha256(how.encode()).hexdigest()[:16]


def prebuilt() -> Path | None:
    """Return the launcher that the wheel contains for this machine and these sources, or None."""
    program = PREBUILT / source_key(platform.machine()) / NAME
    return program if program.is_file() else None


def key() -> str:
    """Return its name in the cache: the key of its sources, and the digest of the wheel's program."""
    name = source_key(platform.machine())
    return name if (program := prebuilt()) is None else f"{name}-{digest(program)}"


def digest(program: Path) -> str:
    """Return a digest that distinguishes builds, also of the same sources with another compiler or libc."""
    return hashlib.sha256(program.read_bytes()).hexdigest()[:16]


def cached(cache: Path) -> Path | None:
    """Return the built program, or None."""
    program = cache / "programs" / key() / NAME
    return program if program.is_file() else None


def cannot_build(cache: Path) -> tuple[str, str] | None:
    """Return why it cannot be built and a remedy; None if it can be built or is cached."""
    if cached(cache) is not None or prebuilt() is not None or not (missing := static_c.missing()):
        return None
    return f"{missing[0]}, which builds the sites' launcher, is not installed", install_here(missing)


def ensure(cache: Path, say: Callable[[str], None]) -> Path:
    """Return the program, copied or compiled if necessary.

    Raises UserlandError, DiskFull, and Unavailable without a compiler. Also raises Unavailable if another user could
    change the program: it is the first process of every site, often root's.
    """
    program = build_once.ensure(
        cache / "programs",
        key(),
        _WHAT,
        lambda: cached(cache),
        lambda: cannot_build(cache),
        say if prebuilt() is None else lambda _: None,  # copying is quick
        _build,
    )
    if (fault := next(changeable_by_others(program), None)) is not None:
        raise Unavailable(f"{fault[0]}: {fault[1]}, or set WEIGHBRIDGE_CACHE to a folder of your own")
    return program


def compile_for(machine: str, program: Path) -> None:
    """Compile ``program`` for a machine (``aarch64``). Raises UserlandError with the reason."""
    sources = [str(path) for path in sorted(SOURCE.glob("*.c"))]
    static_c.compile_program(_WHAT, static_c.OPTIONS, sources, program, static_c.compiler_for(machine))
    program.chmod(0o755)  # whatever the umask


def _build(work: Path) -> None:
    if (program := prebuilt()) is None:
        compile_for(platform.machine(), work / NAME)
    else:
        shutil.copyfile(program, work / NAME)
        (work / NAME).chmod(0o755)
