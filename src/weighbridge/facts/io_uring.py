"""Whether a site's programs can use io_uring, from a system call inside it, and the cause of a refusal if known."""

import errno
from collections.abc import Callable
from dataclasses import replace

from weighbridge.linux.confinement import SECCOMP_MODES, line_of, status_field
from weighbridge.linux.probing import probe_of
from weighbridge.model.command import Completed
from weighbridge.model.facts import IO_URING, IO_URING_ALLOWED, IO_URING_REFUSED
from weighbridge.model.site import Site

_PROBE_S = 10
_SWITCH = "kernel.io_uring_disabled"
"""The setting that refuses io_uring: to programs without privileges (1), or to all (2)."""
_REFUSALS = (errno.EPERM, errno.EACCES, errno.ENOSYS)
"""The errors with which a kernel or a filter refuses io_uring, rather than one ring."""


def about_io_uring(site: Site, launcher_outside: Callable[[], str] = lambda: "") -> dict[str, str]:
    """Return the fact `weighbridge.model.facts.IO_URING` of a site; nothing if the launcher gave no answer.

    ``launcher_outside`` returns the launcher's path on the site's host, or "" if the host cannot be asked.
    """
    error = _answer(site.run(probe_of("io-uring", _PROBE_S)))
    if error is None:
        return {}
    setting = line_of(site, f"/proc/sys/{_SWITCH.replace('.', '/')}")
    filtered = SECCOMP_MODES.get(status_field(line_of(site, "/proc/self/status"), "Seccomp"), "") == "filter"
    allowed_outside = error in _REFUSALS and filtered and _allowed_outside(site, launcher_outside())
    return {IO_URING: io_uring_state(error, setting, filtered=filtered, allowed_outside=allowed_outside)}


def _allowed_outside(site: Site, launcher: str) -> bool:
    """Return whether the same probe makes a ring on the site's host, with the same kernel."""
    if not launcher or site.layers != site.host.layers:
        return False
    return _answer(site.host.run(replace(probe_of("io-uring", _PROBE_S), argv=(launcher, "probe-io-uring")))) == 0


def _answer(probe: Completed) -> int | None:
    text = probe.text.strip()
    return int(text) if probe.returncode == 0 and text.isdigit() else None


def io_uring_state(error: int, setting: str, *, filtered: bool, allowed_outside: bool) -> str:
    """Return the fact from the error number of io_uring_setup(2), the kernel's setting and the seccomp filter.

    ``allowed_outside``: the host of the site can use io_uring, with the same kernel. Only some errors are refusals;
    others come from limits or from the probe. The cause is known only if no other cause is possible: a filter can
    return any error, and the setting 1 depends on the user.
    """
    if not error:
        return IO_URING_ALLOWED
    name = errno.errorcode.get(error, f"error {error}")
    if error not in _REFUSALS:
        return f"not known ({name})"
    if setting == "2":
        cause = f"{_SWITCH} = 2"
    elif filtered:
        cause = "seccomp" if allowed_outside and setting != "1" else ""
    elif error == errno.ENOSYS:
        cause = "the kernel has none"
    else:
        cause = f"{_SWITCH} = 1" if setting == "1" and error == errno.EPERM else ""
    return f"{IO_URING_REFUSED} ({', '.join(part for part in (name, cause) if part)})"
