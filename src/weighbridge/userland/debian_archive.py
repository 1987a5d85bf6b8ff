"""What it takes to build from Debian's archive, on whatever distribution: mmdebstrap, and the keys that sign it."""

from collections.abc import Mapping
from pathlib import Path

from weighbridge.linux.packages import install_here
from weighbridge.linux.process import which
from weighbridge.userland.commands import must

PROGRAM, KEYRING = "mmdebstrap", "debian-archive-keyring.gpg"
_FOLDER = Path("/usr/share/keyrings")
KEYRINGS = (_FOLDER / "debian-archive-keyring.pgp", _FOLDER / KEYRING)
"""Where the package of the keys has them, by the releases of Debian."""
TRUSTED = Path("/etc/apt")
"""Where apt has what it trusts anyway: the distribution's keys, and any that the user has put there."""
_OWNER = b"Debian Archive Automatic Signing Key"
"""Of the keys of Debian's archive, in the files that are no text."""


def lacking() -> tuple[str, str] | None:
    """Return what this machine lacks to build from Debian's archive, and what helps; None where it lacks nothing."""
    if which(PROGRAM) is None:
        remedy = install_here([PROGRAM, *_no_keys()])
        return f"{PROGRAM}, which builds from Debian's packages, is not installed", remedy
    if _no_keys():
        why = f"apt needs the keys that sign Debian's archive ({KEYRING}), which are not installed"
        return why, install_here([KEYRING])
    return None


def mmdebstrap(
    *arguments: str,
    before: tuple[str, ...] = (),
    env: Mapping[str, str] | None = None,
    unavailable: Mapping[str, str] | None = None,
) -> None:
    """Run mmdebstrap, started by ``before``. Raises what `weighbridge.userland.commands.must` does.

    The suite is Debian's, for which it knows the mirror on every distribution; apt trusts its keys on Debian alone.
    """
    argv = (*before, PROGRAM, *keyring_options(), *arguments)
    must(*argv, program=PROGRAM, env=env, unavailable=unavailable)


def keyring_options() -> tuple[str, ...]:
    """Return the option that names the keys, where apt does not trust them by itself."""
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
