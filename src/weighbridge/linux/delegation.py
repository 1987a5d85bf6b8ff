"""Control groups of a user who is not root: a part of the tree that the user may change, as systemd delegates one.

A process may only be moved between groups by whoever may write to a group above both (cgroups(7), delegation
containment). So this process itself moves, into a scope of its own that it asks the user's systemd for, with what it
starts from then on; below it groups are made as root makes them.
"""

import contextlib
import functools
import os
import shutil
import time
from collections.abc import Iterator
from pathlib import Path

from weighbridge.errors import Unavailable
from weighbridge.linux import process
from weighbridge.linux.cgroup_files import IDLE, ITSELF, MOUNT, TOP, version
from weighbridge.model.command import Command
from weighbridge.model.names import RunId

_PROCESS = Path("/proc/self/cgroup")
_RUNTIME = Path("/run/user")
_MOVED_S = 5.0
_ASK_S = 20.0
_UNLIMITED = str(2**64 - 1)
_CONTROLLERS = {"cpu", "memory", "pids"}
"""What systemd delegates to a user's scope."""
_VERSION_1 = "only root can use control groups of version 1"


def lacking(mount: Path = MOUNT) -> str:
    """Why this user can have no control groups, as far as is known without making one; "" where nothing is."""
    if os.geteuid() == 0:
        return "" if version(mount) else f"no control groups are mounted at {mount}"
    if version(mount) != 2:
        return _VERSION_1 if version(mount) else f"no control groups are mounted at {mount}"
    own = _own_group(mount)
    if own is not None and _has_for_itself(own):
        return ""
    if not _bus().exists():
        return (
            f"this user's systemd does not answer because {_bus()} is missing: install dbus-user-session and log in "
            "again"
        )
    return (
        ""
        if shutil.which("busctl")
        else "busctl is not installed, and Weighbridge needs it to ask systemd for a control group"
    )


def remedy(mount: Path = MOUNT) -> str:
    """Return what lets this user have control groups, where `lacking` knows an obstacle."""
    if not version(mount):
        return f"mount control groups at {mount}"
    if version(mount) == 2:
        return "run as root, or use a machine where systemd delegates control groups to users"
    return "run as root, or use a machine where systemd delegates control groups v2 to users"


def controllers(mount: Path = MOUNT) -> frozenset[str]:
    """Return the controllers of version 2 that the groups of this user can have, where `lacking` knows no obstacle.

    They are those of the user's systemd, or of a scope that was delegated to this process. Debian's systemd delegates
    no ``cpuset`` to users.
    """
    own = _own_group(mount)
    if own is None or not _has_for_itself(own):
        user = os.geteuid()
        own = mount / f"user.slice/user-{user}.slice/user@{user}.service"
    with contextlib.suppress(OSError):
        return frozenset((own / "cgroup.controllers").read_text().split())
    return frozenset()


def user_slice() -> str | None:
    """Return the slice in which systemd keeps all that is this user's (``user-1000.slice``), None outside of it."""
    own, name = _own_group(MOUNT), f"user-{os.geteuid()}.slice"
    return name if own is not None and name in own.parts else None


def tree(run_id: RunId, mount: Path = MOUNT) -> Path:
    """Return where this process may make control groups: root everywhere, others in a scope that is made now.

    The scope is the same as long as this process lives, and ends with all that is in it. Raises Unavailable.
    """
    return mount if os.geteuid() == 0 else _delegated_tree(run_id, mount)


@functools.cache
def _delegated_tree(run_id: RunId, mount: Path) -> Path:
    if why := lacking(mount):
        raise Unavailable(f"no control group can be created: {why}")
    own = _own_group(mount)
    if own is None or not _has_for_itself(own):
        own = _scope(f"weighbridge-{run_id}-{os.getpid()}.scope", mount)
    for again in (True, False):
        try:
            (own / ITSELF).mkdir(exist_ok=True)
            (own / ITSELF / "cgroup.procs").write_text(str(os.getpid()))
            break
        except OSError as error:
            if not (again and isinstance(error, FileNotFoundError)):  # another run that ends has removed it meanwhile
                raise Unavailable(f"no control group can be created ({error.filename}: {error.strerror})") from error
    return own


def _own_group(mount: Path) -> Path | None:
    """The group that this process is in, version 2; the one above where it has moved to `ITSELF`."""
    for line in _PROCESS.read_text().splitlines():
        if line.startswith("0::/"):
            group = mount / line.removeprefix("0::/")
            return group.parent if group.name == ITSELF else group
    return None


def _has_for_itself(group: Path) -> bool:
    """Whether this user may make groups with limits in it, and no other process is in the way."""
    names = ("cgroup.procs", "cgroup.subtree_control")
    try:
        writable = os.access(group, os.W_OK) and all(os.access(group / name, os.W_OK) for name in names)
        delegated = {*(group / "cgroup.controllers").read_text().split()} >= _CONTROLLERS
        return writable and delegated and set((group / "cgroup.procs").read_text().split()) <= {str(os.getpid())}
    except OSError:
        return False


def _bus() -> Path:
    return _RUNTIME / str(os.geteuid()) / "bus"


def _scope(unit: str, mount: Path) -> Path:
    """Have the user's systemd move this process into a new scope; gives its group. Raises Unavailable."""
    completed = process.run(
        Command(
            (
                "busctl", f"--address=unix:path={_bus()}", "call", "org.freedesktop.systemd1",
                "/org/freedesktop/systemd1", "org.freedesktop.systemd1.Manager", "StartTransientUnit",
                "ssa(sv)a(sa(sv))", unit, "fail", "5",
                "PIDs", "au", "1", str(os.getpid()),
                "Delegate", "b", "true",
                "TasksMax", "t", _UNLIMITED,
                "CollectMode", "s", "inactive-or-failed",
                "Description", "s", "programs that Weighbridge measures",
                "0",
            ),
            _ASK_S,
        )
    )  # fmt: skip
    if completed.returncode != 0:
        raise Unavailable(
            f"no control group can be created because systemd did not create a scope: {completed.last_words}"
        )
    deadline = time.monotonic() + _MOVED_S
    while time.monotonic() < deadline:
        own = _own_group(mount)
        if own is not None and own.name == unit:
            return own
        time.sleep(0.01)
    raise Unavailable(f"no control group can be created because systemd did not move this process to {unit}")


def trees(mount: Path = MOUNT) -> list[Path]:
    """Where this user has control groups of runs: root at the top, others in each scope that is still there."""
    if os.geteuid() == 0 or version(mount) != 2:
        return [mount]
    return sorted({*_parents_of_ours(mount)})


def _parents_of_ours(mount: Path) -> Iterator[Path]:
    for folder, below, _ in os.walk(mount):
        for name in {TOP, IDLE, ITSELF} & {*below}:
            with contextlib.suppress(OSError):
                if (Path(folder) / name).stat().st_uid == os.geteuid():
                    yield Path(folder)
