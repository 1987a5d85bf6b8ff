"""What compiles our C programs: a compiler, and the static libc, which many distributions package apart."""

import platform
from collections.abc import Sequence
from pathlib import Path

from weighbridge.errors import UserlandError
from weighbridge.linux.packages import this_distribution
from weighbridge.linux.process import run, which
from weighbridge.model.command import Command

COMPILER, LIBC = "cc", "libc.a"
NEEDS = (COMPILER, LIBC)
"""By their names in `weighbridge.linux.packages`."""
MUSL = "musl-gcc"
"""The same compiler, with musl in place of the C library of this machine's distribution."""
OPTIONS = ("-static", "-O2", "-s", "-Wall", "-Wextra")
"""The compiler's, for a program that needs nothing of the root folder it runs in."""
LIBC_FOLDERS = ("usr/lib64", "usr/lib", "usr/lib/*-linux-*")
"""Where the distributions that we know have it: Fedora and openSUSE, Arch and Alpine, Debian."""
_ROOT = Path("/")
DEADLINE_S = 1200.0
"""Of one compilation: seconds on a machine of today, minutes on an emulated one that others use, too."""


def missing() -> tuple[str, ...]:
    """Return what of `NEEDS` is not installed. Where a distribution that we do not know has its libc is not known."""
    if which(COMPILER) is None:
        return NEEDS
    if this_distribution() is None or any(any(_ROOT.glob(f"{folder}/{LIBC}")) for folder in LIBC_FOLDERS):
        return ()
    return (LIBC,)


def missing_for_musl() -> tuple[str, ...]:
    """Return `MUSL` where it is not installed; its packages have the library, too."""
    return () if which(MUSL) is not None else (MUSL,)


def reason(stderr: str) -> str:
    """Return the line of the compiler's complaints that says why: its first error, else its last line."""
    lines = [line.strip() for line in stderr.splitlines() if line.strip()]
    errors = [line for line in lines if "error: " in line or "undefined reference" in line or "cannot find" in line]
    return (errors or lines[-1:] or ["it printed nothing"])[0][:300]


def compiler_for(machine: str) -> str:
    """Return the compiler's name for a machine (``aarch64``): a cross compiler's where this is another one."""
    return COMPILER if machine == platform.machine() else f"{machine}-linux-gnu-gcc"


def compile_program(
    what: str, options: Sequence[str], sources: Sequence[str], program: Path, compiler: str = COMPILER
) -> None:
    """Compile and link ``sources`` to ``program``; ``what`` it is called. Raises UserlandError with the reason."""
    completed = run(Command((compiler, *options, "-o", str(program), *sources), DEADLINE_S))
    if completed.timed_out:
        raise UserlandError.too_slow(f"the compilation of {what}", DEADLINE_S)
    if completed.returncode != 0:
        raise UserlandError(f"{what} cannot be compiled: {reason(completed.stderr.decode(errors='replace'))}")
