"""Whether Weighbridge itself runs in a container, and what of the machine is kept from it there."""

import re
from collections.abc import Sequence
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


def by_machine(argv: Sequence[str]) -> tuple[str, ...]:
    """Return the command that runs the machine's own program: in its mounts, where a container sees its processes.

    An image has no systemctl, and nothing that it could talk to.
    """
    inside = engine() and _own_namespaces()["pid"] == _FIRST["pid"]
    return ("nsenter", "--target", "1", "--mount", *argv) if inside else tuple(argv)


def missing_options(states: Path) -> list[str]:
    """Return the options of the engine that would give this container what of the machine is kept from it.

    ``states``: the folder of the states of root's runs. Were it the container's own, others would take them for dead.
    """
    status = (_ROOT / "proc/self/status").read_text()
    own = _own_namespaces()
    missing = [] if re.search(r"^Seccomp:\s*0$", status, re.MULTILINE) else ["--privileged"]
    missing += [_SHARES[name] for name, first in _FIRST.items() if own[name] != first]
    networks = [(_ROOT / "proc" / pid / "ns/net").stat().st_ino for pid in ("1", "self")]
    if own["pid"] != _FIRST["pid"] or len({*networks}) > 1:
        missing.append("--network host")  # where the first process is not the machine's, its network is not known
    if not {str(states), str(states.parent)} & {each.at for each in mount_table()}:
        missing.append(f"-v {states}:{states}")
    return missing


def _own_namespaces() -> dict[str, int]:
    return {name: (_ROOT / "proc/self/ns" / name).stat().st_ino for name in _FIRST}
