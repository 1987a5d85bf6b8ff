"""The image that the Dockerfile makes of this checkout, upon a Debian with Python."""

import hashlib
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import docker

from downloads import download
from weighbridge import build_once

ROOT = Path(__file__).parents[2]
CACHE = Path.home() / ".cache/weighbridge/systems"
BASE_IMAGE, IMAGE = "base:1", "weighbridge"
_PYTHON = "3.11"
_BASE = ("mmdebstrap", "--quiet", "--variant=apt", "--include=python3-venv,iproute2")
_MAKE_VENV = '--customize-hook=chroot "$1" python3 -m venv /venv'
"""As the usual images of Python have pip: Debian's own refuses to install beside its packages."""
_PATH = "ENV PATH=/venv/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


def kept() -> Path:
    """Return a folder with the base image and the wheels of our dependencies, kept in the user's cache."""
    dependencies = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["dependencies"]
    constraints = ROOT / "constraints.txt"

    def build(work: Path) -> None:
        command = (sys.executable, "-m", "pip", "download", "--quiet", "--only-binary=:all:")
        command += ("--python-version", _PYTHON, "-c", constraints, "-d", work / "dist")
        download([*command, *dependencies])
        subprocess.run([*_BASE, _MAKE_VENV, "bookworm", work / "base.tar"], check=True)

    key = hashlib.sha256(repr((*_BASE, _MAKE_VENV, dependencies, constraints.read_text())).encode()).hexdigest()[:16]
    file = CACHE / f"image-{key}" / "base.tar"
    return build_once.ensure_file(file, "the base of an image", print, build).parent


def build(client: docker.DockerClient, context: Path) -> None:
    """Build the image in an engine, which then has its base too; ``context`` is a folder for what it is made of."""
    shutil.copytree(kept() / "dist", context / "dist")
    wheel = (sys.executable, "-m", "build", "--no-isolation", "--wheel", "--outdir", context / "dist", ROOT)
    subprocess.run(wheel, check=True, stdout=subprocess.DEVNULL)
    shutil.copy(ROOT / "Dockerfile", context)
    shutil.copy(ROOT / ".dockerignore", context)
    repository, _, tag = BASE_IMAGE.partition(":")
    with (kept() / "base.tar").open("rb") as data:
        chunks = iter(lambda: data.read(2**20), b"")
        client.api.import_image_from_stream(chunks, repository=repository, tag=tag, changes=[_PATH])
    arguments = {"BASE": BASE_IMAGE, "PIP_NO_INDEX": "1"}
    client.images.build(path=str(context), tag=IMAGE, buildargs=arguments, rm=True, network_mode="none")
