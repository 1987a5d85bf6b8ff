"""A real Apptainer on a machine whose distribution has none: Debian sid's, with the libraries that it takes.

Its package is unpacked into the user's cache, and a copy can be made elsewhere, for a user who cannot read that. Its
programs name their dynamic loader by its full path, so each copy is patched to its own place (patchelf(1)). Apptainer
finds its files beside it by itself.
"""

import os
import shutil
import subprocess
from pathlib import Path

from weighbridge import build_once
from weighbridge.errors import WeighbridgeError
from weighbridge.features.guests import sid
from weighbridge.userland import debian_archive

PACKAGES = ("apptainer", "fuse-overlayfs", "patchelf", "squashfs-tools", "squashfuse")
PROGRAMS = ("apptainer", "fuse-overlayfs", "mksquashfs", "squashfuse", "squashfuse_ll", "unsquashfs")
KEY = "apptainer-sid-1"
_LIBRARIES = "usr/lib/x86_64-linux-gnu"
_LOADER = "ld-linux-x86-64.so.2"


def folder_of_programs() -> tuple[str, str]:
    """A folder for PATH with Apptainer and what it starts, "" where there is none, and then why.

    "" without a reason: one is on PATH anyway.
    """
    if shutil.which("apptainer") is not None:
        return "", ""
    if os.uname().machine != "x86_64":
        return "", "needs apptainer: that of Debian sid is unpacked on x86_64 alone"
    systems = Path.home() / ".cache/weighbridge/systems"

    def cached() -> Path | None:
        programs = systems / KEY / "bin"
        return programs if programs.is_dir() else None

    try:
        programs = build_once.ensure(
            systems, KEY, "Apptainer of Debian sid", cached, debian_archive.lacking, print, _build
        )
    except (WeighbridgeError, subprocess.CalledProcessError) as error:
        return "", f"needs apptainer, and Debian sid's cannot be had: {error}"
    return str(programs), ""


def copy(programs: Path, folder: Path) -> Path:
    """Copy Apptainer to a new folder that others can read; returns the folder for PATH in it."""
    shutil.copytree(programs.parent, folder, symlinks=True)
    _patch(folder, folder)
    return folder / "bin"


def _build(work: Path) -> None:
    everything = work / "system"
    debian_archive.mmdebstrap(
        "--variant=extract", f"--include={','.join(PACKAGES)}", *debian_archive.LEAN,
        sid.NOT_SIGNED_LATELY, sid.SUITE, str(everything), env={"TMPDIR": str(work)},
    )  # fmt: skip
    (work / "usr/bin").mkdir(parents=True)
    for program in (*PROGRAMS, "patchelf"):
        shutil.copy2(everything / "usr/bin" / program, work / "usr/bin" / program)
    shutil.copytree(everything / _LIBRARIES, work / _LIBRARIES, symlinks=True)
    # where one that is not in /usr looks for them: it, and what it starts, which takes usr/lib for its prefix
    shutil.copytree(everything / "etc/apptainer", work / "usr/etc/apptainer", symlinks=True)
    (work / "usr/var/lib/apptainer/mnt/session").mkdir(parents=True)
    for name, target in {"etc": "../etc", "var": "../var", "lib": "."}.items():
        (work / "usr/lib" / name).symlink_to(target)
    (work / "bin").mkdir()
    for program in PROGRAMS:
        (work / "bin" / program).symlink_to(f"../usr/bin/{program}")
    shutil.rmtree(everything)
    _patch(work, work.with_name(KEY))


def _patch(work: Path, place: Path) -> None:
    """Have programs below ``work`` start with the loader and libraries that they will have at ``place``."""
    there, libraries = work / _LIBRARIES, place / _LIBRARIES
    patchelf = (there / _LOADER, "--library-path", there, work / "usr/bin/patchelf")
    starters = (there / "apptainer/bin").iterdir()
    for program in (*(work / "usr/bin" / name for name in PROGRAMS), *starters):
        if program.is_symlink() or program.read_bytes()[:4] != b"\x7fELF":
            continue
        options = ("--set-interpreter", libraries / _LOADER, "--force-rpath", "--set-rpath", libraries)
        subprocess.run([*patchelf, *options, program], check=True, capture_output=True)
