"""What no command may touch: files, mounts, processes, control groups and another run that is alive."""

import contextlib
import os
import shutil
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from weighbridge.linux import cgroups
from weighbridge.linux.process import RUN_VARIABLE
from weighbridge.runner import run_lock
from weighbridge.userland.build import cache_folder

from .values import LIVE_RUN, VICTIM

CASES = Path("/srv/cases")
"""Where runs are changed: on the file system of `VICTIM`, so that hard links can be made."""
_WATCHED = ("/srv", "/root", "/home", "/var/tmp", "/run", "/tmp")
_WATCHED_AT_THE_TOP = ("/", "/etc", "/var")
"""Folders of so many files that to look at all of them takes longer than most commands: only what is in them."""
_OWN_STATE = Path("/run/weighbridge")
_STATE_OF_PROGRAMS = (
    "/run/netns",
    "/run/lock",
    "/run/xtables.lock",
    "/run/systemd",
    "/root/.docker",
    "/var/lib/containers",
)
"""What programs that Weighbridge calls may leave in a folder of their own."""
_CHANGING = ("/run", "/tmp", "/proc", "/sys", "/dev", "/srv", "/root", "/var", "/var/tmp")
"""Folders in which something comes and goes, of which the time changes then."""
Snapshot = dict[str, tuple[int, ...]]


class Canaries:
    """All of them. They are laid once, and again after one was touched."""

    def __init__(self) -> None:
        self._pids: dict[int, str] = {}
        self._groups: list[Path] = []
        self._populated: list[Path] = []

    # -- to lay them ---------------------------------------------------------------------------------

    def lay(self) -> None:
        """Make the files, groups, mounts and processes."""
        for path in self._files():
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(f"{path}\n")
        Path("/root/secret").chmod(0o600)
        if not os.path.ismount("/srv/mounted"):
            Path("/srv/mounted").mkdir(exist_ok=True)
            subprocess.run(("mount", "-t", "tmpfs", "canary", "/srv/mounted"), check=True)
            Path("/srv/mounted/file").write_text("mounted\n")
        for base in cgroups.hierarchies():
            for name in ("canary", f"weighbridge/{LIVE_RUN}/site"):
                with contextlib.suppress(OSError):
                    (base / name).mkdir(parents=True, exist_ok=True)
                    self._groups.append(base / name)
        self._start("in a group of its own", "canary", {})
        self._start("in the group of a live run", f"weighbridge/{LIVE_RUN}/site", {RUN_VARIABLE: LIVE_RUN})
        self._start("of a live run", "", {RUN_VARIABLE: LIVE_RUN})
        self._start("in no group", "", {})
        self._live_run()

    def lift(self) -> None:
        """End the processes, and remove what may be half gone."""
        for pid in self._pids:
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL)
                os.waitpid(pid, 0)
        self._pids.clear()
        for group in self._groups:
            for folder in (group, *group.parents[:2]):  # that of the live run, and the one of all runs
                with contextlib.suppress(OSError):
                    folder.rmdir()
        self._groups.clear()
        self._populated.clear()
        for folder in (_OWN_STATE, Path(VICTIM)):
            shutil.rmtree(folder, ignore_errors=True)

    @staticmethod
    def _files() -> Iterator[Path]:
        cache = cache_folder()
        yield from (Path(VICTIM) / name for name in ("file", "inner/file", "deeper/still/file"))
        yield from map(Path, ("/srv/file", "/root/secret", "/home/user/file", "/opt/file", "/var/lib/canary/file"))
        yield from map(Path, ("/etc/canary", "/tmp/canary/file", "/run/canary/file", "/var/tmp/canary"))
        yield from (cache.parent / "file", cache.parent / "other/file", cache / "userlands/kept/file")
        yield cache / f"engines/{LIVE_RUN}/data/file"
        yield CASES.parent / "neighbour/run.sqlite"

    def _start(self, name: str, group: str, environment: dict[str, str]) -> None:
        pid = os.posix_spawn("/bin/sleep", ("sleep", "infinity"), {**os.environ, **environment})
        self._pids[pid] = name
        for base in cgroups.hierarchies() if group else ():
            with contextlib.suppress(OSError):
                (base / group / "cgroup.procs").write_text(str(pid))  # refused of a cpuset without CPUs
                self._populated.append(base / group)

    def _live_run(self) -> None:
        pid = os.fork()
        if pid == 0:
            with run_lock.claim(LIVE_RUN, cache_folder(), Path("/srv/neighbour")):
                signal.pause()
            os._exit(0)
        self._pids[pid] = "that is a live run"
        deadline = time.monotonic() + 10
        while not (_OWN_STATE / LIVE_RUN / "owner.json").exists():
            if time.monotonic() > deadline:
                raise TimeoutError("the live run did not begin")
            time.sleep(0.01)

    # -- to look at them -----------------------------------------------------------------------------

    @property
    def pids(self) -> set[int]:
        """The processes."""
        return {*self._pids}

    def touched(self, before: Snapshot) -> list[str]:
        """Return a sentence for each that is not as it was in ``before``."""
        now = snapshot()
        wrong = [f"{path} was removed" for path in sorted(before.keys() - now.keys())]
        wrong += [f"{path} was made" for path in sorted(now.keys() - before.keys())]
        wrong += [f"{path} was changed" for path in sorted(now.keys() & before.keys()) if now[path] != before[path]]
        for pid, name in self._pids.items():
            if not _is_alive(pid):
                wrong.append(f"the process {name} was killed")
        for group in self._groups:
            if not group.is_dir():
                wrong.append(f"the control group {group} was removed")
            elif group in self._populated and not (group / "cgroup.procs").read_text().strip():
                wrong.append(f"the control group {group} was emptied")
        if not os.path.ismount("/srv/mounted"):
            wrong.append("/srv/mounted was unmounted")
        return wrong


def _is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in ("Z", "X")
    except OSError:
        return False


def snapshot() -> Snapshot:
    """Return what the files look like that commands may not touch, by path."""
    cache, seen = cache_folder(), Snapshot()
    skipped = {str(CASES), str(cache), sys.prefix, sys.base_prefix, *_STATE_OF_PROGRAMS}
    for top in _WATCHED:
        _look(top, skipped, seen)
    for top in _WATCHED_AT_THE_TOP:
        with contextlib.suppress(OSError):
            for path in Path(top).iterdir():
                _note(str(path), seen)
    for canary in Canaries._files():
        _note(str(canary), seen)
    for each in ("", "lock", "owner.json"):
        _note(str(_OWN_STATE / LIVE_RUN / each), seen)
    return {path: state for path, state in seen.items() if _is_watched(path)}


def _is_watched(path: str) -> bool:
    """Whether nothing of ours changes it: state folders of other runs come and go beside the live one's."""
    if path.startswith(f"{_OWN_STATE}/") and f"/{LIVE_RUN}" not in path:
        return False
    return path not in _CHANGING and path not in (str(_OWN_STATE), str(cache_folder().parent))


def _look(folder: str, skipped: set[str], seen: Snapshot) -> None:
    _note(folder, seen)
    with contextlib.suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            if entry.path in skipped:
                continue
            if entry.is_dir(follow_symlinks=False):
                _look(entry.path, skipped, seen)
            else:
                _note(entry.path, seen)


def _note(path: str, seen: Snapshot) -> None:
    with contextlib.suppress(OSError):
        status = os.lstat(path)
        # not the number of its names: another one can have been in the run
        size = () if stat.S_ISDIR(status.st_mode) else (status.st_size,)
        seen[path] = (status.st_ino, status.st_mode, status.st_uid, status.st_mtime_ns, *size)
