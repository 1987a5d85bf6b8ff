"""Whether this user may make user namespaces, in which a user has root's mounts and networks; and if not, why."""

import os
from dataclasses import dataclass
from pathlib import Path

from weighbridge.errors import Unavailable
from weighbridge.linux.packages import install_here
from weighbridge.linux.process import run
from weighbridge.model.command import Command

_SETTINGS_FOLDER = Path("/proc/sys")
_PROFILES = Path("/etc/apparmor.d")
_TRY = ("unshare", "--map-root-user", "true")


@dataclass(frozen=True, slots=True)
class Setting:
    """A setting of the kernel (sysctl(8)) that closes user namespaces with the value ``closed``.

    ``for_root``: to root, too. ``by_profile``: not to a program with a profile of its own (apparmor(7)).
    """

    name: str
    closed: str
    opened: str
    for_root: bool = False
    by_profile: bool = False

    def value(self) -> str:
        """Return what it is set to; "" where this kernel has no such setting."""
        try:
            return (_SETTINGS_FOLDER / self.name.replace(".", "/", 1)).read_text().strip()
        except OSError:
            return ""


SETTINGS = (
    Setting("user.max_user_namespaces", "0", "15000", for_root=True),
    Setting("kernel.unprivileged_userns_clone", "0", "1"),  # Debian's kernel
    Setting("kernel.apparmor_restrict_unprivileged_userns", "1", "0", by_profile=True),  # Ubuntu 23.10 and later
)


def refusal(program: str = "") -> tuple[str, str] | None:
    """Return why this user may not make user namespaces, by the setting that closes them, and what opens them.

    None where one was made. With ``program`` it is asked for that one, which a profile of AppArmor may let through.
    """
    try:
        done = run(Command(_TRY, 10))
    except Unavailable as missing:
        return str(missing), install_here([_TRY[0]])
    if done.returncode == 0:
        return None
    for setting in SETTINGS:
        if setting.value() != setting.closed or (os.geteuid() == 0 and not setting.for_root):
            continue
        if setting.by_profile and program and (_PROFILES / program).exists():
            return None
        why = f"this user may not make user namespaces: {setting.name} is {setting.closed}"
        return why, f"as root: sysctl -w {setting.name}={setting.opened} (for good: in /etc/sysctl.d); or run as root"
    return f"this user may not make user namespaces ({done.last_words})", "run as root, or outside of this container"
