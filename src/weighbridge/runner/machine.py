"""What this machine must have, beyond what each environment needs: for ``doctor``."""

import os
import shutil
from pathlib import Path

from weighbridge import cgroups
from weighbridge.hosts.kernel import cpus_online
from weighbridge.model.plugin import Readiness, Workload
from weighbridge.userland.build import cache_folder, cached


def workload_readiness(workload: Workload) -> Readiness:
    """A workload is ready where its userland is built or can be."""
    if cached(workload.packages, cache_folder()) is not None:
        return Readiness(True, "its userland is built")
    if shutil.which("mmdebstrap") is None:
        return Readiness(False, "no program here builds userlands", "apt-get install mmdebstrap")
    return Readiness(True, "its userland is built at its first run")


def checks() -> dict[str, Readiness]:
    """By name: root, control groups, CPUs, space."""
    root = os.geteuid() == 0
    version = cgroups.version()
    free = shutil.disk_usage(_existing(cache_folder())).free
    cpus = len(cpus_online())
    return {
        "root": Readiness(root, "" if root else "without root limits may not be honoured (a stated confounder) and "
                          "no private Docker engine can be started", "" if root else "run as root"),
        "control groups": Readiness(version > 0, f"version {version}" if version else "none are mounted",
                                    "" if version else "mount -t cgroup2 none /sys/fs/cgroup"),
        "CPUs": Readiness(cpus > 1, f"{cpus}" + ("" if cpus > 1 else ": server and client share one"),
                          "" if cpus > 1 else "give the machine a second CPU"),
        "disk": Readiness(free > 2 * 2**30, f"{free / 2**30:.1f} GiB free at {cache_folder()}",
                          "" if free > 2 * 2**30 else "make room, or set WEIGHBRIDGE_CACHE to a larger disk"),
    }  # fmt: skip


def _existing(folder: Path) -> Path:
    while not folder.exists():
        folder = folder.parent
    return folder
