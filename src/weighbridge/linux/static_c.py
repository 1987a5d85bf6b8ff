"""Compiles our C programs, with a compiler and the static libc, which is often a separate package."""

import platform
from collections.abc import Sequence
from pathlib import Path

from weighbridge.errors import UserlandError
from weighbridge.linux.packages import this_distribution
from weighbridge.linux.process import run, which
from weighbridge.model.command import Command

COMPILER, LIBC = "cc", "libc.a"
NEEDS = (COMPILER, LIBC)
"""The programs and files for compiling, by their names in `weighbridge.linux.packages`."""
MUSL = "musl-gcc"
"""The same compiler with musl instead of the distribution's C library."""
OPTIONS = ("-static", "-O2", "-s", "-Wall", "-Wextra")
"""The compiler's options for a program that needs nothing from its root folder."""
LIBC_FOLDERS = ("usr/lib64", "usr/lib", "usr/lib/*-linux-*")
"""The folders of the libc in known distributions: Fedora and openSUSE, Arch and Alpine, Debian."""
_ROOT = Path("/")
DEADLINE_S = 1200.0
"""The deadline of one compilation: it needs seconds on a current machine, minutes on a busy emulated one."""


def missing() -> tuple[str, ...]:
    """Return the parts of `NEEDS` that are not installed. The libc's folder is unknown for other distributions."""
    if which(COMPILER) is None:
        return NEEDS
    if this_distribution() is None or any(any(_ROOT.glob(f"{folder}/{LIBC}")) for folder in LIBC_FOLDERS):
        return ()
    return (LIBC,)


def missing_for_musl() -> tuple[str, ...]:
    """Return `MUSL` if it is not installed; its packages include the library."""
    return () if which(MUSL) is not None else (MUSL,)


def reason(stderr: str) -> str:
    """Return the most useful line of the compiler's messages: its first error, else its last line."""
    lines = [line.strip() for line in stderr.splitlines() if line.strip()]
    errors = [line for line in lines if "error: " in line or "undefined reference" in line or "cannot find" in line]
    return (errors or lines[-1:] or ["it printed nothing"])[0][:300]


def compiler_for(machine: str) -> str:
    """Return the compiler's name for a machine (``aarch64``), which is a cross compiler for another machine."""
    return COMPILER if machine == platform.machine() else f"{machine}-linux-gnu-gcc"


def compile_program(
    what: str, options: Sequence[str], sources: Sequence[str], program: Path, compiler: str = COMPILER
) -> None:
    """Compile and link ``sources`` to ``program``, called ``what`` in errors. Raises UserlandError."""
    completed = run(Command((compiler, *options, "-o", str(program), *sources), DEADLINE_S))
    if completed.timed_out:
        raise UserlandError.too_slow(f"the compilation of {what}", DEADLINE_S)
    if completed.returncode != 0:
        raise UserlandError(f"{what} cannot be compiled: {reason(completed.stderr.decode(errors='replace'))}")
