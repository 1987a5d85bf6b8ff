"""Whether Weighbridge itself runs in a container, and what of the machine is kept from it there."""

import re
from pathlib import Path

from weighbridge.linux.folders import mount_table

FACT = "container of Weighbridge"
"""The fact that says which engine's container it is; absent where it runs on the machine itself."""
_MARKERS = {".dockerenv": "Docker", "run/.containerenv": "Podman"}
_FIRST = {"pid": 0xEFFFFFFC, "cgroup": 0xEFFFFFFB}
"""The inodes of the machine's own namespaces (Linux, include/linux/proc_ns.h)."""
_SHARES = {"pid": "--pid host", "cgroup": "--cgroupns host"}
_ROOT = Path("/")


def engine() -> str:
    """Return whose container Weighbridge runs in ("Docker"); empty where it runs in none that is known.

    An engine's mark alone is also in images of whole machines: the root folder has to be made of layers, too.
    """
    mark = next((name for marker, name in _MARKERS.items() if (_ROOT / marker).exists()), "")
    layered = any(each.at == "/" and "overlay" in each.filesystem for each in mount_table())
    return mark if mark and layered else ""


def missing_options() -> list[str]:
    """Return the options of the engine that would give this container what of the machine is kept from it."""
    status = (_ROOT / "proc/self/status").read_text()
    own = {name: (_ROOT / "proc/self/ns" / name).stat().st_ino for name in _FIRST}
    missing = [] if re.search(r"^Seccomp:\s*0$", status, re.MULTILINE) else ["--privileged"]
    missing += [_SHARES[name] for name, first in _FIRST.items() if own[name] != first]
    networks = [(_ROOT / "proc" / pid / "ns/net").stat().st_ino for pid in ("1", "self")]
    if own["pid"] != _FIRST["pid"] or len({*networks}) > 1:
        missing.append("--network host")  # where the first process is not the machine's, its network is not known
    return missing
