"""The program of an engine that a study names: whether it may be started here, with what stands beside it.

Nothing is started to find out: a study is looked at before anybody has agreed to it.
"""

import os
import stat
from collections.abc import Iterator
from pathlib import Path

from weighbridge.engines.private import HOST_FOLDERS
from weighbridge.engines.settings import PROGRAM
from weighbridge.model.plugin import Readiness

BESIDE = ("containerd", "containerd-shim-runc-v2", "runc", "docker-proxy", "docker-init")
"""What an engine starts that its own folder may have; else the one that PATH has is used."""
_COVERED = (Path("/run"), Path("/proc"), Path("/sys"), *HOST_FOLDERS.values())
"""The folders that are others for an engine of ours than for this machine."""
BESIDE_ANOTHER = Readiness(
    False,
    f"{PROGRAM}: an engine answers on this machine already, beside which no other one is started",
    "use hosts of kind testbed, or stop that engine",
)


def readiness(named: str) -> Readiness:
    """Whether such an engine can be started by this user."""
    file = Path(named)
    try:
        wrong = next(_faults(file), None)
    except OSError as error:
        wrong = (f"{error.filename or named} cannot be looked at ({error.strerror})", "see who may read it")
    if wrong is not None:
        return Readiness(False, f"{PROGRAM}: {wrong[0]}", wrong[1])
    if os.geteuid() != 0:
        return Readiness(False, f"{PROGRAM}: only root may start an engine of its own", "run as root")
    return Readiness(True, f"{named} is started for the run")


def _faults(file: Path) -> Iterator[tuple[str, str]]:
    """Why it may not be started, and what helps. Raises OSError."""
    if not file.exists():
        yield f"there is no {file}", f"name the {PROGRAM} of another Docker engine"
        return
    if not file.is_file() or not os.access(file, os.X_OK):
        yield f"{file} is no program that can be started", f"name the {PROGRAM} of another Docker engine"
        return
    programs = [file, *(beside for name in BESIDE if (beside := file.with_name(name)).exists())]
    ways = (way for program in programs for way in (program, program.resolve()))
    for path in dict.fromkeys(path for way in ways for path in (way, *way.parents)):
        if path in _COVERED:
            yield f"an engine of ours has other files in {path} than this machine", f"put {file.name} elsewhere"
        about = path.stat()
        if about.st_uid not in (0, os.geteuid()):
            yield f"{path} belongs to another user, who could change what root starts", f"chown root {path}"
        if about.st_mode & (stat.S_IWGRP | stat.S_IWOTH) and not (path.is_dir() and about.st_mode & stat.S_ISVTX):
            yield f"{path} may be written to by others, who could change what root starts", f"chmod go-w {path}"
