"""Whether a site's programs can use io_uring, from a system call inside it, and the cause of a refusal if known."""

import errno

from weighbridge.linux.confinement import SECCOMP_MODES, status_field
from weighbridge.linux.probing import probe_of
from weighbridge.model.facts import IO_URING, IO_URING_ALLOWED
from weighbridge.model.site import Site

_PROBE_S = 10
_SWITCH = "kernel.io_uring_disabled"
"""The setting that refuses io_uring: to programs without privileges (1), or to all (2)."""


def about_io_uring(site: Site) -> dict[str, str]:
    """Return the fact `weighbridge.model.facts.IO_URING` of a site; nothing if the launcher gave no answer."""
    answer = site.run(probe_of("io-uring", _PROBE_S))
    text = answer.text.strip()
    if answer.returncode != 0 or not text.isdigit():
        return {}
    setting = _read(site, f"/proc/sys/{_SWITCH.replace('.', '/')}").strip()
    seccomp = SECCOMP_MODES.get(status_field(_read(site, "/proc/self/status"), "Seccomp"), "")
    return {IO_URING: io_uring_state(int(text), setting, seccomp)}


def io_uring_state(error: int, setting: str, seccomp: str) -> str:
    """Return the fact from the error number of io_uring_setup(2), the kernel's setting and the seccomp mode.

    The cause is known only if no other cause is possible: a filter can return any error, and the setting 1 depends
    on the user.
    """
    if not error:
        return IO_URING_ALLOWED
    if setting == "2":
        cause = f"{_SWITCH} = 2"
    elif seccomp == "filter":
        cause = "" if setting == "1" else "seccomp"
    elif error == errno.ENOSYS:
        cause = "the kernel has none"
    else:
        cause = f"{_SWITCH} = 1" if setting == "1" and error == errno.EPERM else ""
    name = errno.errorcode.get(error, f"error {error}")
    return f"refused ({', '.join(part for part in (name, cause) if part)})"


def _read(site: Site, path: str) -> str:
    try:
        return site.read(path).decode(errors="replace")
    except OSError:
        return ""
