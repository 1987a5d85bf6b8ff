"""Control groups, version 1 and 2: limits, freezing, and killing all processes in them."""

import contextlib
import os
import signal
import stat
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from weighbridge.errors import EnvironmentLost, Unavailable
from weighbridge.linux import cgroup_files
from weighbridge.linux.cgroup_files import IDLE, ITSELF, MOUNT, TOP, bases, version
from weighbridge.linux.delegation import trees
from weighbridge.linux.deletion import opened_beneath
from weighbridge.model.host import Limits
from weighbridge.model.names import GroupName, RunId

TOPS = (TOP, IDLE)
_CONTROLLERS = "user.weighbridge.controllers"
FREEZE_S = 10.0
_TRIES = 9
_FUSE = os.makedev(10, 229)
"""/dev/fuse (fuse(4))."""
_MAKING = threading.Lock()
"""A lock, because the maker of the topmost group records which controllers its parent had before."""
_FREEZABLE = "freezable"
"""The child of a version 2 group with the frozen processes, if not all are frozen."""


def hierarchies(mount: Path = MOUNT) -> list[Path]:
    """Return every mounted hierarchy, including those that only an engine uses (devices, systemd, ...)."""
    if version(mount) == 2:
        return [mount]
    return sorted(path.parent for path in mount.glob("*/cgroup.procs") if not path.parent.is_symlink())


def _write(path: Path, value: str) -> None:
    path.write_text(value)


def _make_or_unavailable(make: Callable[[], object]) -> None:
    """Make groups, retrying if another run that ends removes their common parent. Raises Unavailable."""
    with _MAKING:
        _retried(make)


def _retried(make: Callable[[], object]) -> None:
    try:
        for _ in range(_TRIES):
            with contextlib.suppress(FileNotFoundError):
                make()
                return
        make()
    except OSError as error:  # not allowed, or mounted read-only as in many containers
        raise Unavailable(f"no control group can be created ({error.filename}: {error.strerror})") from error


class Cgroup:
    """One group under ``weighbridge/``, in every hierarchy."""

    def __init__(self, name: GroupName, *, mount: Path = MOUNT, top: str = TOP) -> None:
        self.name, self._parts = name, name.parts
        self.version = version(mount)
        self.paths = {controller: base / top / name for controller, base in bases(mount).items()}
        self._tops = [base / top for base in hierarchies(mount)]
        self._everywhere = [above / name for above in self._tops]
        if not self.paths:
            raise Unavailable(f"no control groups are mounted at {mount}")
        self._mount = mount
        self._frozen_folder = self._path("freezer")

    @property
    def procs(self) -> list[Path]:
        """Return the files into which a process writes 0 to join."""
        return [path / "cgroup.procs" for path in self.paths.values()]

    @property
    def everywhere(self) -> list[Path]:
        """Return the files as ``procs``, after creating the group in every hierarchy. Raises Unavailable."""
        _make_or_unavailable(self._make_everywhere)
        return [path / "cgroup.procs" for path in self._everywhere]

    def create(self) -> "Cgroup":
        """Make the group in every hierarchy, and prepare its parents. Raises Unavailable without permission."""
        _make_or_unavailable(self._make)
        return self

    def _make_everywhere(self) -> None:
        for path in self._everywhere:
            path.mkdir(parents=True, exist_ok=True)

    def _make(self) -> None:
        for controller, path in self.paths.items():
            group = base = bases(self._mount)[controller]
            for part in path.relative_to(base).parts:
                active = self._delegate(group) if self.version == 2 else []
                is_new, group = not (group / part).exists(), group / part
                group.mkdir(exist_ok=True)
                if self.version == 2 and is_new and group.parent == base:
                    _record_controllers(group, active)
                if controller == "cpuset":
                    self._inherit_cpuset(group)

    @staticmethod
    def _delegate(parent: Path) -> list[str]:
        """Enable controllers for a group's children; return those that they had before."""
        available = (parent / "cgroup.controllers").read_text().split()
        active = _active(parent)
        for controller in ("cpu", "cpuset", "memory", "pids"):
            if controller in available and controller not in active:
                with contextlib.suppress(OSError):
                    _write(parent / "cgroup.subtree_control", f"+{controller}")
        return active

    @staticmethod
    def _inherit_cpuset(path: Path) -> None:
        for name in ("cpuset.cpus", "cpuset.mems"):
            if not (path / name).read_text().strip():
                _write(path / name, (path.parent / name).read_text().strip())
        with contextlib.suppress(FileNotFoundError):  # version 1: also for groups that LXC creates in it
            _write(path / "cgroup.clone_children", "1")

    def limit(self, limits: Limits) -> dict[str, str]:
        """Set the limits; return those that could not be set, with the reasons."""
        refused = {}
        for limit, files in self._limit_files(limits).items():
            for path, value in files:
                try:
                    _write(path, value)
                except OSError as error:
                    refused[limit] = self._not_delegated(path) or f"{error.strerror} ({path.name}={value})"
                    break
        return refused

    def _not_delegated(self, path: Path) -> str:
        """Return why a controller's file is missing in a user's part of the tree; "" if that is not the reason."""
        controller = path.name.partition(".")[0]
        with contextlib.suppress(OSError):
            if self.version == 2 and controller not in (self._mount / "cgroup.controllers").read_text().split():
                return f"the controller {controller} is not delegated to this user"
        return ""

    def _limit_files(self, limits: Limits) -> dict[str, list[tuple[Path, str]]]:
        files: dict[str, list[tuple[Path, str]]] = {}
        period, quota = limits.cpu_period_us, limits.cpu_quota_us
        if limits.cpus is not None:
            files["cpus"] = (
                [(self.paths[""] / "cpu.max", f"{quota} {period}")]
                if self.version == 2
                else [
                    (self._path("cpu") / "cpu.cfs_period_us", str(period)),
                    (self._path("cpu") / "cpu.cfs_quota_us", str(quota)),
                ]
            )
        if limits.memory is not None:
            name = "memory.max" if self.version == 2 else "memory.limit_in_bytes"
            files["memory"] = [(self._path("memory") / name, str(limits.memory))]
        if limits.cpuset is not None:
            files["pin"] = [(self._path("cpuset") / "cpuset.cpus", limits.cpuset)]
        return files

    def _path(self, controller: str) -> Path:
        return self.paths[""] if self.version == 2 else self.paths.get(controller, Path("/nonexistent") / controller)

    def freeze(self) -> None:
        """Stop every process in it, except exempt ones; return when they are stopped."""
        self._set_frozen(frozen=True)

    def thaw(self) -> None:
        """Let every process in it run again."""
        self._set_frozen(frozen=False)

    def exempt_file_servers(self) -> None:
        """Exempt processes that serve FUSE file systems from freezing; limits and counters still include them.

        A process that waits for their answer cannot be frozen, so freezing them would freeze nothing. Raises
        EnvironmentLost.
        """
        try:
            servers = {pid for pid in self.pids() if _serves_files(pid)}
            if not servers:
                return
            if self.version == 1:  # they leave the group only in this hierarchy
                for pid in servers:
                    _write(self._frozen_folder.parent / "cgroup.procs", str(pid))
                return
            self._frozen_folder = self.paths[""] / _FREEZABLE
            self._frozen_folder.mkdir(exist_ok=True)
            listed = self.paths[""] / "cgroup.procs"
            while others := {int(line) for line in listed.read_text().split()} - servers - {0}:  # 0: see `pids`
                for pid in others:
                    with contextlib.suppress(ProcessLookupError):
                        _write(self._frozen_folder / "cgroup.procs", str(pid))
        except OSError as error:
            raise EnvironmentLost(
                f"the control group {self.name} no longer exists ({error.filename}: {error.strerror})"
            ) from error

    def _set_frozen(self, *, frozen: bool) -> None:
        if self.version == 2:
            path, state = self._frozen_folder / "cgroup.freeze", self._frozen_folder / "cgroup.events"
            value, expected_state = str(int(frozen)), f"frozen {int(frozen)}"
        else:
            path = state = self._frozen_folder / "freezer.state"
            value = expected_state = "FROZEN" if frozen else "THAWED"
        try:
            _write(path, value)
            deadline = time.monotonic() + FREEZE_S
            while expected_state not in state.read_text():
                if time.monotonic() > deadline:
                    raise EnvironmentLost(f"{path} did not become {expected_state} within {FREEZE_S:g} s")
                time.sleep(0.001)
                if self.version == 1:  # a process that falls asleep meanwhile, as in vfork(2), needs another write
                    _write(path, value)
        except OSError as error:
            raise EnvironmentLost(
                f"the control group {self.name} no longer exists ({path}: {error.strerror})"
            ) from error

    def meters(self) -> dict[str, float]:
        """Return ``cpu_s``, ``throttled_s`` (seconds since creation) and ``memory_bytes``, if readable."""
        return cgroup_files.read_meters(self.version, self._path)

    def scope(self) -> dict[str, str]:
        """Return the files with its use over time: label -> path."""
        files = cgroup_files.scope_files(self.version, self._path)
        # a file of version 2 does not include child groups
        return {**files, "cgroup.procs": f"{self._frozen_folder}/cgroup.procs"} if self.version == 2 else files

    def pids(self) -> set[int]:
        """Return every process in it and below it that has a number here.

        The kernel lists a process of an outer PID namespace as 0, which to `os.kill` is the caller's own group.
        """
        pids: set[int] = set()
        for top in self._tops:
            with contextlib.suppress(OSError), opened_beneath(top, self._parts) as group:
                for folder in _groups_within(group):
                    pids.update(int(line) for line in (folder / "cgroup.procs").read_text().split())
        return {pid for pid in pids if pid > 0} - {os.getpid()}

    def kill(self) -> None:
        """End every process in it, frozen or not; return when none is left or after ten seconds.

        Only this method kills a control group's processes. It searches below Weighbridge's groups at the top of each
        hierarchy, through no link (`weighbridge.linux.deletion`).
        """
        deadline = time.monotonic() + 10
        with contextlib.suppress(OSError):
            self.thaw_below()
        while (pids := self.pids()) and time.monotonic() < deadline:
            for pid in pids:
                # a process with one of a user's subordinate ids ends with the first process of its namespace
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.kill(pid, signal.SIGKILL)
            time.sleep(0.005)

    def thaw_below(self) -> None:
        """Thaw all frozen processes in it or below: version 1 cannot end frozen processes. Raises OSError."""
        name, value = ("cgroup.freeze", "0") if self.version == 2 else ("freezer.state", "THAWED")
        for path in self._path("freezer").rglob(name):
            _write(path, value)

    def remove(self) -> bool:
        """Remove it and everything below it; return whether nothing is left (a dying process can need a moment)."""
        deadline = time.monotonic() + 5
        while any(path.exists() for path in self._everywhere):
            for path in self._everywhere:
                for directory in [*_directories_below(path), path]:
                    with contextlib.suppress(OSError):
                        directory.rmdir()
            if time.monotonic() > deadline:
                return False
            time.sleep(0.002)
        return True


def _serves_files(pid: int) -> bool:
    """Return whether a process has /dev/fuse open, by which the kernel asks it for files."""
    with contextlib.suppress(OSError):  # it has ended, or is another user's
        for file in Path(f"/proc/{pid}/fd").iterdir():
            with contextlib.suppress(OSError):
                status = file.stat()
                if stat.S_ISCHR(status.st_mode) and status.st_rdev == _FUSE:
                    return True
    return False


def _groups_within(group: int) -> Iterator[Path]:
    """Yield the folders of an open group and all groups below it, without those that vanish meanwhile."""
    for _, _, _, folder in os.fwalk(".", dir_fd=group):
        yield Path(f"/proc/self/fd/{folder}")


def _directories_below(path: Path) -> Iterator[Path]:
    with contextlib.suppress(OSError):
        yield from sorted((p for p in path.rglob("*") if p.is_dir()), key=lambda p: -len(p.parts))


def runs(mount: Path = MOUNT, top: str = TOP) -> list[str]:
    """Return the ids of runs that have a group at the top of this user's trees."""
    run_ids: set[str] = set()
    for base in (base for tree in trees(mount) for base in hierarchies(tree)):
        with contextlib.suppress(OSError):
            run_ids.update(path.name for path in (base / top).iterdir() if path.is_dir())
    return sorted(run_ids)


def groups_of(name: GroupName, mount: Path = MOUNT) -> list[Cgroup]:
    """Return the groups with this name: one in each tree of this user."""
    groups: list[Cgroup] = []
    for tree in trees(mount):
        with contextlib.suppress(Unavailable):
            groups += [Cgroup(name, mount=tree, top=top) for top in TOPS]
    return groups


def remove_top(mount: Path = MOUNT, *, run_id: RunId | None = None) -> None:
    """Remove the groups `TOPS` if they are empty, and `ITSELF` if no process is left in it.

    With a ``run_id``, first remove the topmost groups of that run.
    """
    bases_of_ours = [base for tree in trees(mount) for base in hierarchies(tree)]
    for folder in (base / top / run_id for base in bases_of_ours for top in TOPS if run_id is not None):
        with contextlib.suppress(OSError):
            folder.rmdir()
    for folder in (base / top for base in bases_of_ours for top in (*TOPS, ITSELF)):
        with contextlib.suppress(OSError):
            added = _switched_on_controllers(folder)
            folder.rmdir()
            _switch_off(folder.parent, added)


def _active(group: Path) -> list[str]:
    return (group / "cgroup.subtree_control").read_text().split()


def _record_controllers(top: Path, controllers: list[str]) -> None:
    """Record on our topmost group what its parent's children had before, for the process that removes it."""
    with contextlib.suppress(OSError):  # before Linux 5.7, groups have no such attributes, and controllers stay on
        os.setxattr(top, _CONTROLLERS, " ".join(controllers).encode())


def _switched_on_controllers(top: Path) -> list[str]:
    """Return the controllers that the parent of our topmost group has enabled since that group was made."""
    try:
        noted = os.getxattr(top, _CONTROLLERS).decode().split()
        return [controller for controller in _active(top.parent) if controller not in noted]
    except OSError:
        return []


def _switch_off(parent: Path, controllers: list[str]) -> None:
    """Disable controllers that we or our engines' runtimes enabled; the kernel refuses if another group needs one."""
    for controller in controllers:
        with contextlib.suppress(OSError):
            _write(parent / "cgroup.subtree_control", f"-{controller}")
