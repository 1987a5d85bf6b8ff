"""Weighbridge as pipx installs it, in a chroot of a machine's image: the same pipx and Python, in seconds.

In the machine itself, where every instruction is emulated, pip compiles the dependencies for half an hour.
"""

import hashlib
import os
import shutil
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

from . import carried, images

if TYPE_CHECKING:
    from .guest import Guest

HOME = Path("/opt/pipx")
_LATER = "--no-index --no-deps --force-reinstall --quiet"
_INSTALL = f"""
set -eu
if [ -e {HOME}/venvs/weighbridge/bin/weighbridge ]; then
    {HOME}/venvs/weighbridge/bin/python -m pip install {_LATER} /opt/wheel/*.whl
else
    rm -rf {HOME}/venvs/weighbridge  # what an interrupted one has left, pipx takes for installed
    pipx install /opt/wheel/*.whl
fi
{HOME}/venvs/weighbridge/bin/weighbridge --version
"""
_IN_IMAGE = """
set -eu
work=$1 image=$2 wheels=$3 wheel=$4 pipx=$5 emulated=$6; shift 6
mount -t tmpfs tmpfs "$work"
mkdir "$work/image" "$work/upper" "$work/work" "$work/root"
mount -o loop,ro "$image" "$work/image"
mount -t overlay overlay -o "lowerdir=$work/image,upperdir=$work/upper,workdir=$work/work" "$work/root"
cd "$work/root"
mkdir -p carried/wheels opt/wheel opt/pipx
mount --bind "$wheels" carried/wheels
mount --bind "$wheel" opt/wheel
mount --bind "$pipx" opt/pipx
mount -t proc proc proc
mount --bind /dev dev
exec $emulated chroot . "$@"
"""


def installed(folder: Path, machine: str) -> Path:
    """Return the folder that is to be /opt/pipx in the machine, with this checkout's wheel installed."""
    image, wheels = images.image(machine, folder), carried.dependencies(folder, machine)
    wheel = carried.wheel(folder, machine)
    pipx = folder / "pipx" / f"{image.name}-{wheels.name}"
    digest = hashlib.sha256(wheel.read_bytes()).hexdigest()
    mark = pipx / "wheel"
    if mark.exists() and mark.read_text() == digest:
        return pipx
    pipx.mkdir(parents=True, exist_ok=True)
    mark.unlink(missing_ok=True)
    work = folder / "chroot"
    work.mkdir(exist_ok=True)
    clean = {name: value for name, value in os.environ.items() if not name.startswith("PIP_")}
    settings = {
        "PIPX_HOME": str(HOME),
        "PIP_NO_INDEX": "1",
        "PIP_FIND_LINKS": "/carried/wheels",
        "PATH": "/usr/sbin:/usr/bin",
    }
    places = (work, image / "root.ext4", wheels, wheel.parent, pipx, " ".join(images.emulated(machine)))
    command = ["unshare", "--mount", "sh", "-c", _IN_IMAGE, "sh", *places]
    subprocess.run([*command, "sh", "-c", _INSTALL], env={**clean, **settings}, check=True)
    mark.write_text(digest)
    return pipx


def disk(folder: Path, machine: str) -> Path:
    """Return the image of the disk with `pipx/`, `wheels/` and `userlands/KEY`."""
    pipx, wheels = installed(folder, machine), carried.dependencies(folder, machine)
    userlands = carried.userlands(folder, machine)
    sources = [(pipx, "pipx"), (wheels, "wheels"), *((each, f"userlands/{each.name}") for each in userlands)]
    kept = folder / "carried" / f"{'-'.join([pipx.name, *(each.name for each in userlands)])}.ext4"
    if kept.exists():
        return kept
    content, building = carried.fresh(kept.with_suffix(".content")), kept.with_suffix(".building")
    (content / "userlands").mkdir()
    for source, target in sources:
        subprocess.run(["cp", "-a", "--reflink=auto", source, content / target], check=True)
    subprocess.run(["truncate", "--size", "3G", building], check=True)
    subprocess.run(["mke2fs", "-q", "-t", "ext4", "-d", content, building], check=True)
    shutil.rmtree(content)
    building.rename(kept)
    return kept


def refresh(machine: "Guest") -> None:
    """Put this checkout's Weighbridge in the place of the one that the machine has."""
    pipx = installed(machine.folder, machine.kind)
    if machine.run("root", "cat", "/opt/pipx/wheel").out == (pipx / "wheel").read_text():
        return
    machine.send("root", own_files(pipx, machine.folder), "/opt/own-files.tar")
    earlier = "/opt/pipx/venvs/weighbridge/lib/python3*/site-packages/weighbridge*"
    machine.must("root", "sh", "-c", f"rm -rf {earlier}; tar -C /opt/pipx -xf /opt/own-files.tar")


def own_files(pipx: Path, folder: Path) -> Path:
    """Return an archive of Weighbridge alone in such a folder, for a machine that has its dependencies."""
    (packages,) = (pipx / "venvs/weighbridge/lib").glob("python3*/site-packages")
    target = folder / f"own-files-{pipx.name}.tar"
    names = [path.relative_to(pipx) for path in packages.glob("weighbridge*")]
    subprocess.run(["tar", "-C", pipx, "-cf", target, *names, "wheel"], check=True)
    return target
