"""Whether Weighbridge itself runs in a container, and which parts of the machine are hidden from it there."""

import re
from collections.abc import Sequence
from pathlib import Path

from weighbridge.linux.folders import mount_table

FACT = "container of Weighbridge"
"""The fact with the engine of Weighbridge's container; absent if it runs on the machine itself."""
_MARKERS = {".dockerenv": "Docker", "run/.containerenv": "Podman"}
_FIRST = {"pid": 0xEFFFFFFC, "cgroup": 0xEFFFFFFB}
"""The inodes of the machine's own namespaces (Linux, include/linux/proc_ns.h)."""
_SHARES = {"pid": "--pid host", "cgroup": "--cgroupns host"}
_ROOT = Path("/")


def engine() -> str:
    """Return the engine of the container that Weighbridge runs in ("Docker"); empty outside of known engines.

    An engine's marker file also exists in images of complete machines, so the root folder must be an overlay too.
    """
    mark = next((name for marker, name in _MARKERS.items() if (_ROOT / marker).exists()), "")
    layered = any(each.at == "/" and "overlay" in each.filesystem for each in mount_table())
    return mark if mark and layered else ""


def by_machine(argv: Sequence[str]) -> tuple[str, ...]:
    """Return the command that runs the machine's own program, in its mounts if a container sees its processes.

    An image has no systemctl, and nothing that it could contact.
    """
    inside = engine() and _own_namespaces()["pid"] == _FIRST["pid"]
    return ("nsenter", "--target", "1", "--mount", *argv) if inside else tuple(argv)


def missing_options(states: Path) -> list[str]:
    """Return the engine's options that would give this container access to everything it needs of the machine.

    ``states`` is the folder with the states of root's runs. If it were private to the container, other processes
    would consider these runs dead.
    """
    status = (_ROOT / "proc/self/status").read_text()
    namespaces = _own_namespaces()
    missing = [] if re.search(r"^Seccomp:\s*0$", status, re.MULTILINE) else ["--privileged"]
    missing += [_SHARES[name] for name, first in _FIRST.items() if namespaces[name] != first]
    networks = [(_ROOT / "proc" / pid / "ns/net").stat().st_ino for pid in ("1", "self")]
    if namespaces["pid"] != _FIRST["pid"] or len({*networks}) > 1:
        missing.append("--network host")  # otherwise the machine's network is unknown
    if not {str(states), str(states.parent)} & {each.at for each in mount_table()}:
        missing.append(f"-v {states}:{states}")
    return missing


def _own_namespaces() -> dict[str, int]:
    return {name: (_ROOT / "proc/self/ns" / name).stat().st_ino for name in _FIRST}
