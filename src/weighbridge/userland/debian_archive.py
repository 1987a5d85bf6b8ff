"""Builds from Debian's archive on any distribution, with mmdebstrap and the keys that sign the archive."""

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

from weighbridge.linux.packages import install_here
from weighbridge.linux.process import which
from weighbridge.userland.commands import must

PROGRAM, KEYRING = "mmdebstrap", "debian-archive-keyring.gpg"
_FOLDER = Path("/usr/share/keyrings")
KEYRINGS = (_FOLDER / "debian-archive-keyring.pgp", _FOLDER / KEYRING)
"""The files of the keys, in different releases of Debian."""
TRUSTED = Path("/etc/apt")
"""The folder of keys that apt trusts: the distribution's, and any that the user added."""
LEAN = (
    "--aptopt=Apt::Install-Recommends false",
    "--aptopt=Acquire::Languages none",
    "--dpkgopt=force-unsafe-io",
    "--customize-hook=rm -rf $1/usr/share/doc/* $1/usr/share/man/* $1/usr/share/locale/* $1/usr/share/info/*",
    "--customize-hook=rm -rf $1/var/lib/apt/lists $1/var/cache/apt $1/etc/hostname $1/etc/resolv.conf",
)
"""Options of mmdebstrap for a system without documentation, locales and package lists.

dpkg's ``path-exclude`` would start a Python program for each package: a third of the CPU time of a build.
"""
PHASES = {
    "running apt-get update": "reading the list of Debian's packages",
    "downloading packages": "downloading the packages",
    "extracting archives": "unpacking Debian's base",
    "installing essential packages": "installing Debian's base",
    "installing remaining packages": "installing the programs",
    "creating tarball": "archiving the root filesystem",
}
"""The phases of a build by mmdebstrap's words for them."""
_OWNER = b"Debian Archive Automatic Signing Key"
"""The owner of the keys of Debian's archive, in binary files."""


def lacking() -> tuple[str, str] | None:
    """Return why this machine cannot build from Debian's archive, and a remedy; None if it can."""
    if which(PROGRAM) is None:
        remedy = install_here([PROGRAM, *_no_keys()])
        return f"{PROGRAM}, which builds from Debian's packages, is not installed", remedy
    if _no_keys():
        reason = f"apt needs the keys that sign Debian's archive ({KEYRING}), which are not installed"
        return reason, install_here([KEYRING])
    return None


def mmdebstrap(
    *arguments: str,
    before: tuple[str, ...] = (),
    env: Mapping[str, str] | None = None,
    unavailable: Mapping[str, str] | None = None,
    say: Callable[[str], None] = lambda _: None,
) -> None:
    """Run mmdebstrap, started by ``before``. Raises the errors of `weighbridge.userland.commands.must`.

    ``say`` prints its phases. The suite is Debian's, for which mmdebstrap knows the mirror on every distribution; apt
    trusts its keys only on Debian.
    """
    argv = (*before, PROGRAM, *keyring_options(), *arguments)
    must(*argv, program=PROGRAM, env=env, unavailable=unavailable, heard=partial(_say_phase, say))


def _say_phase(say: Callable[[str], None], line: str) -> None:
    for number, (words, phase) in enumerate(PHASES.items(), 1):
        if line.startswith(f"I: {words}"):
            say(f"{phase} ({number} of {len(PHASES)})")


def keyring_options() -> tuple[str, ...]:
    """Return the option that names the keys, if apt does not trust them by default."""
    file = _keyring()
    return () if _apt_trusts_keys() or file is None else (f"--keyring={file}",)


def _no_keys() -> tuple[str, ...]:
    return () if _apt_trusts_keys() or _keyring() is not None else (KEYRING,)


def _keyring() -> Path | None:
    return next((file for file in KEYRINGS if file.is_file()), None)


def _apt_trusts_keys() -> bool:
    if any(TRUSTED.glob("trusted.gpg.d/debian-archive-*")):
        return True
    return any(_OWNER in _bytes(file) for file in (TRUSTED / "trusted.gpg", *TRUSTED.glob("trusted.gpg.d/*.gpg")))


def _bytes(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except OSError:
        return b""
