"""Whether and why this user can make user namespaces, and the user's subordinate ids.

In a user namespace, a user has root's mounts and networks, and with subordinate ids (subuid(5)) can make files of
other users.
"""

import contextlib
import os
import pwd
import shutil
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from weighbridge.errors import Unavailable
from weighbridge.linux.packages import install_here
from weighbridge.linux.process import run
from weighbridge.linux.remedies import as_root
from weighbridge.model.command import Command

_SETTINGS_FOLDER = Path("/proc/sys")
_PROFILES = Path("/etc/apparmor.d")
_TRY = ("unshare", "--map-root-user", "true")


@dataclass(frozen=True, slots=True)
class KernelSetting:
    """A kernel setting (sysctl(8)) that disables user namespaces with the value ``closed``.

    ``for_root``: also for root. ``by_profile``: not for a program with its own AppArmor profile (apparmor(7)).
    """

    name: str
    closed: str
    opened: str
    for_root: bool = False
    by_profile: bool = False

    def value(self) -> str:
        """Return its current value; "" if this kernel does not have it."""
        try:
            return (_SETTINGS_FOLDER / self.name.replace(".", "/", 1)).read_text().strip()
        except OSError:
            return ""


SETTINGS = (
    KernelSetting("user.max_user_namespaces", "0", "15000", for_root=True),
    KernelSetting("kernel.unprivileged_userns_clone", "0", "1"),  # Debian's kernel
    KernelSetting(
        "kernel.apparmor_restrict_unprivileged_userns", "1", "0", by_profile=True
    ),  # Ubuntu 23.10 and later
)


def refusal(program: str = "") -> tuple[str, str] | None:
    """Return why this user cannot create user namespaces and a remedy; None if it is possible.

    With ``program``, the answer is for that program, which an AppArmor profile can allow.
    """
    try:
        completed = run(Command(_TRY, 10))
    except Unavailable as missing:
        return str(missing), install_here([_TRY[0]]) if shutil.which(_TRY[0]) is None else "run as root"
    if completed.returncode == 0:
        return None
    for setting in SETTINGS:
        if setting.value() != setting.closed or (os.geteuid() == 0 and not setting.for_root):
            continue
        if setting.by_profile and program and (_PROFILES / program).exists():
            return None
        reason = f"this user cannot create user namespaces: {setting.name} is {setting.closed}"
        remedy = as_root(f"sysctl -w {setting.name}={setting.opened} (for good: in /etc/sysctl.d)")
        return reason, remedy if setting.for_root else f"{remedy}, or run as root"
    return (
        f"this user cannot create user namespaces ({completed.last_words})",
        "run outside this container" if os.geteuid() == 0 else "run as root, or outside this container",
    )


FILES = (Path("/etc/subuid"), Path("/etc/subgid"))
_FIRST = 100_000
"""The begin of useradd's ranges (SUB_UID_MIN of login.defs(5)); lower ids are users."""
_COUNT = 65_536


def user() -> tuple[str, str]:
    """Return the name (or number) and the number of this user."""
    number = os.geteuid()
    try:
        return pwd.getpwuid(number).pw_name, str(number)
    except KeyError:
        return str(number), str(number)


def has_ranges() -> bool:
    """Return whether both files (lines ``user:first:count``) give this user a range."""
    return all(_has_range(file) for file in FILES)


def _has_range(file: Path) -> bool:
    return any(line.split(":")[0] in user() for line in _text(file).splitlines())


def range_command() -> str:
    """Return the command with which root gives this user an unused range."""
    free = first_free(_text(file) for file in FILES)
    ids = f"{free[0]}-{free[-1]}"
    return f"usermod --add-subuids {ids} --add-subgids {ids} {user()[0]}"


def first_free(texts: Iterable[str]) -> range:
    """Return the first range of 65536 ids from 100000 on that no line ``user:first:count`` overlaps."""
    start = _FIRST
    for first, count in sorted(allocated for text in texts for allocated in _allocated_ranges(text)):
        if first < start + _COUNT and start < first + count:
            start = first + count
    return range(start, start + _COUNT)


def _allocated_ranges(text: str) -> Iterator[tuple[int, int]]:
    for line in text.splitlines():
        with contextlib.suppress(ValueError):  # not a line of subuid(5)
            _, first, count = line.split(":")
            yield int(first), int(count)


def _text(file: Path) -> str:
    with contextlib.suppress(OSError):
        return file.read_text(errors="replace")
    return ""
