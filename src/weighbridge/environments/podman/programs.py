"""Whether Podman can be used on this machine, and what is missing: programs, ids, devices."""

import os
import re
import shutil
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from weighbridge.engines import runtimes
from weighbridge.engines.podman import program_of
from weighbridge.linux import cgroup_files, user_namespaces
from weighbridge.linux.packages import install_here
from weighbridge.linux.process import output
from weighbridge.linux.remedies import load_module
from weighbridge.linux.user_namespaces import has_ranges, range_command, user
from weighbridge.model.plugin import Readiness

_HELPERS = (Path("/usr/lib/podman"), Path("/usr/libexec/podman"), Path("/usr/local/libexec/podman"))
_KNOWS_PASTA = (4, 4)
_TUN = Path("/dev/net/tun")


def version() -> tuple[int, ...]:
    """Return podman's version as numbers, or () if podman does not print it.

    Every call of podman creates folders in the user's runtime folder, or in /tmp without one, and fails without a
    home. It gets temporary folders.
    """
    with TemporaryDirectory(prefix="weighbridge-") as folder:
        words = ("env", f"HOME={folder}", f"XDG_RUNTIME_DIR={folder}", "podman", "--version")
        return _numbers_in(output(words) or "")


def readiness(options: Any | None) -> Readiness:
    """Return whether podman can be used with these options (None: with any)."""
    root = os.geteuid() == 0
    rootless = options.rootless if options is not None else not root
    if not root and not rootless:
        return Readiness(
            False, "only root can start podman's rootful containers", "run as root, or use podman-rootless"
        )
    wanted = runtimes.DEFAULT if options is None else options.runtime
    if wanted != runtimes.DEFAULT and (refusal := _lacking_runtime(wanted, root=root)) is not None:
        return refusal
    programs = [program_of(wanted)] if wanted in (runtimes.DEFAULT, runtimes.STOCK) else []
    if rootless:
        programs += ["newuidmap", "newgidmap"]
    network = options.joined if options is not None else ""
    if network in ("slirp4netns", "pasta"):
        programs.append(network)
    missing = [program for program in programs if shutil.which(program) is None]
    if network == "bridge" and not any((folder / "netavark").exists() for folder in _HELPERS):
        missing.append("netavark")
    if options is not None and options.init and init_program() is None:
        missing.append("catatonit")
    if missing:
        return Readiness(False, f"podman needs {' and '.join(missing)}", install_here(missing))
    if rootless and (refusal := _rootless(root, network)) is not None:
        return refusal
    version_text = ".".join(str(number) for number in version())
    only_so = ", with rootless: true" if options is None and not root else ""
    runtime = runtimes.version_here(program_of(wanted)) if options is None else program_of(wanted)
    return Readiness(True, f"podman {version_text}, {runtime}{only_so}")


def _lacking_runtime(wanted: str, *, root: bool) -> Readiness | None:
    """Return why podman cannot use an OCI runtime, or None."""
    hybrid = (cgroup_files.BESIDE_VERSION_1 / "cgroup.controllers").exists()
    if Path(wanted).name == "crun" and hybrid and not root:
        why = "crun does not work with both versions of control groups, and only root can hide one of them"
        return Readiness(False, why, "use runtime: runc, or run as root")
    if (refusal := runtimes.lacking_hardware(wanted)) is not None:
        return refusal
    if not runtimes.is_path(wanted) and wanted not in runtimes.KNOWN:
        return None  # podman has a table of its own
    state = runtimes.of_engine_to_start(wanted)
    return None if state.ready else state


def init_program() -> str | None:
    """Return the path of the init that podman gives a container: catatonit, or tini, which is started alike."""
    of_podman = (str(folder / "catatonit") for folder in _HELPERS if (folder / "catatonit").exists())
    return next(of_podman, None) or shutil.which("catatonit") or shutil.which("tini")


def _rootless(root: bool, network: str) -> Readiness | None:
    if (refusal := user_namespaces.refusal("podman")) is not None:
        return Readiness(False, refusal[0], f"{refusal[1]}, or as root use rootless: false")
    if not root and not has_ranges():
        return Readiness(
            False, f"{user()[0]} has no subordinate ids in /etc/subuid and /etc/subgid", f"as root: {range_command()}"
        )
    if network in ("slirp4netns", "pasta"):
        if not _TUN.exists():
            return Readiness(False, f"{network} needs {_TUN}, which this machine does not have", load_module("tun"))
        if not root and not os.access(_TUN, os.R_OK | os.W_OK):
            return Readiness(
                False, f"{network} needs {_TUN}, which this user cannot open", f"as root: chmod 666 {_TUN}"
            )
    return None


def knows_pasta(version_text: str) -> bool:
    """Return whether a podman of this version connects containers by pasta itself, as from 4.4 on."""
    return _numbers_in(version_text)[:2] >= _KNOWS_PASTA


def _numbers_in(text: str) -> tuple[int, ...]:
    match = re.search(r"(\d+)\.(\d+)\.(\d+)", text)
    return tuple(int(number) for number in match.groups()) if match else ()
