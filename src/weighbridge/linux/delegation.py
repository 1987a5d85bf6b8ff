"""Control groups of a user without root, in a part of the tree that systemd delegates to the user.

A process can only be moved between groups by a user who can write to a common ancestor (cgroups(7), delegation
containment). So this process itself moves, with all its later children, into a scope that it requests from the user's
systemd. Groups below it are made as for root.
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
"""The controllers that systemd delegates to a user's scope."""
_VERSION_1 = "only root can use control groups of version 1"


def lacking(mount: Path = MOUNT) -> str:
    """Return why this user can have no control groups, as far as is known without making one; "" if possible."""
    if os.geteuid() == 0:
        return "" if version(mount) else f"no control groups are mounted at {mount}"
    if version(mount) != 2:
        return _VERSION_1 if version(mount) else f"no control groups are mounted at {mount}"
    group = _own_group(mount)
    if group is not None and _has_for_itself(group):
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
    """Return what lets this user have control groups, if `lacking` reports an obstacle."""
    if not version(mount):
        return f"mount control groups at {mount}"
    if version(mount) == 2:
        return "run as root, or use a machine where systemd delegates control groups to users"
    return "run as root, or use a machine where systemd delegates control groups v2 to users"


def controllers(mount: Path = MOUNT) -> frozenset[str]:
    """Return the controllers of version 2 that this user's groups can have, if `lacking` reports no obstacle.

    They are the controllers of the user's systemd, or of a scope that was delegated to this process. Debian's systemd
    does not delegate ``cpuset`` to users.
    """
    group = _own_group(mount)
    if group is None or not _has_for_itself(group):
        user = os.geteuid()
        group = mount / f"user.slice/user-{user}.slice/user@{user}.service"
    with contextlib.suppress(OSError):
        return frozenset((group / "cgroup.controllers").read_text().split())
    return frozenset()


def user_slice() -> str | None:
    """Return the systemd slice of this user (``user-1000.slice``), or None outside of it."""
    group, name = _own_group(MOUNT), f"user-{os.geteuid()}.slice"
    return name if group is not None and name in group.parts else None


def tree(run_id: RunId, mount: Path = MOUNT) -> Path:
    """Return where this process can make control groups: root everywhere, others in a scope that is made now.

    The scope stays the same while this process lives, and ends with its last process. Raises Unavailable.
    """
    return mount if os.geteuid() == 0 else _delegated_tree(run_id, mount)


@functools.cache
def _delegated_tree(run_id: RunId, mount: Path) -> Path:
    if obstacle := lacking(mount):
        raise Unavailable(f"no control group can be created: {obstacle}")
    group = _own_group(mount)
    if group is None or not _has_for_itself(group):
        group = _scope(f"weighbridge-{run_id}-{os.getpid()}.scope", mount)
    for again in (True, False):
        try:
            (group / ITSELF).mkdir(exist_ok=True)
            (group / ITSELF / "cgroup.procs").write_text(str(os.getpid()))
            break
        except OSError as error:
            if not (again and isinstance(error, FileNotFoundError)):  # another run that ended removed it
                raise Unavailable(f"no control group can be created ({error.filename}: {error.strerror})") from error
    return group


def _own_group(mount: Path) -> Path | None:
    """Return the group of this process in version 2; its parent if the process has moved to `ITSELF`."""
    for line in _PROCESS.read_text().splitlines():
        if line.startswith("0::/"):
            group = mount / line.removeprefix("0::/")
            return group.parent if group.name == ITSELF else group
    return None


def _has_for_itself(group: Path) -> bool:
    """Return whether this user can make groups with limits in it, and no other process is in it."""
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
    """Make the user's systemd move this process into a new scope; return its group. Raises Unavailable."""
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
        group = _own_group(mount)
        if group is not None and group.name == unit:
            return group
        time.sleep(0.01)
    raise Unavailable(f"no control group can be created because systemd did not move this process to {unit}")


def trees(mount: Path = MOUNT) -> list[Path]:
    """Return where this user has control groups of runs: root at the top, others in each remaining scope."""
    if os.geteuid() == 0 or version(mount) != 2:
        return [mount]
    return sorted({*_parents_of_ours(mount)})


def _parents_of_ours(mount: Path) -> Iterator[Path]:
    for folder, below, _ in os.walk(mount):
        for name in {TOP, IDLE, ITSELF} & {*below}:
            with contextlib.suppress(OSError):
                if (Path(folder) / name).stat().st_uid == os.geteuid():
                    yield Path(folder)
