"""What a machine without a network is given: wheels of the dependencies, Weighbridge's own, its image, a userland."""

import hashlib
import os
import shlex
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from weighbridge import registry
from weighbridge.model.userland import UserlandSpec
from weighbridge.userland.build import ensure

from . import images

REPOSITORY = Path(__file__).parents[2]
PYTHONS = {"bookworm": "3.11", "trixie": "3.13", "sid": "3.14"}
_PROCESSORS = {"amd64": "x86_64", "arm64": "aarch64"}
"""Debian's name of an architecture -> that of wheels."""
WORKLOADS = (("iperf3", "sysbench-cpu"), ("sysbench-cpu",))
"""What the studies of tests/machines measure with: a userland for each has its programs."""

_PLATFORMS = ("manylinux_2_28", "manylinux_2_17", "manylinux2014", "manylinux_2_12", "manylinux_2_5", "manylinux1")


def dependencies(folder: Path, machine: str) -> Path:
    """Return a folder with the wheels of the dependencies, in the tested versions, for the machine's Python."""
    python, processor = PYTHONS[images.suite_of(machine)], _PROCESSORS[images.architecture_of(machine)]
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]
    constraints = REPOSITORY / "constraints.txt"
    parts = (*project["dependencies"], "pip", constraints.read_text(), python, processor)
    kept = folder / "wheels" / f"{python}-{processor}-{_key(parts)}"
    if kept.exists():
        return kept
    building = fresh(kept)
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--only-binary=:all:", "--python-version", python]
    command += [f"--platform={name}_{processor}" for name in _PLATFORMS]
    wanted = [*project["dependencies"], "pip"]  # the last for pipx, which brings its own pip up to date
    subprocess.run([*command, "-c", constraints, "-d", building, *wanted], check=True)
    building.rename(kept)
    return kept


def wheel(folder: Path, machine: str) -> Path:
    """Return Weighbridge's own wheel for a machine, built anew of this checkout, with its launcher inside."""
    target = folder / "wheels" / f"weighbridge-{machine}-{os.getpid()}"
    shutil.rmtree(target, ignore_errors=True)
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", target, REPOSITORY]
    processor = _PROCESSORS[images.architecture_of(machine)]
    subprocess.run(command, env={**os.environ, "WEIGHBRIDGE_WHEEL": processor}, check=True)
    (built,) = target.glob("weighbridge-*.whl")
    return built


def userlands(folder: Path, machine: str) -> list[Path]:
    """Return the folders of the userlands with the programs of `WORKLOADS`, built if need be, named by their keys.

    Those of another architecture are built by Weighbridge too: the mmdebstrap that it finds is one for that
    architecture, whose programs are emulated.
    """
    architecture = images.architecture_of(machine)
    programs = fresh(folder / "mmdebstrap" / architecture)
    if emulated := images.emulated(machine):
        words = shlex.join([*emulated, str(shutil.which("mmdebstrap")), f"--architectures={architecture}"])
        program = programs / "mmdebstrap"
        program.write_text(f'#!/bin/sh\nexec {words} "$@"\n')
        program.chmod(0o755)
    specs = [UserlandSpec.union(registry.workloads()[kind].userland() for kind in kinds) for kinds in WORKLOADS]
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PATH", f"{programs}:{os.environ['PATH']}")
        return [ensure(spec, folder / "userlands" / architecture, print).root.parent for spec in specs]


def own_image(folder: Path, machine: str) -> Path:
    """Return the archive of the image that the Dockerfile makes of this checkout, built by an engine here.

    In the machine, where every instruction is emulated, pip would compile the dependencies for half an hour.
    """
    from real import own_image
    from real.users_engine import bare_engine

    digest = hashlib.sha256(wheel(folder, machine).read_bytes()).hexdigest()
    parts = (digest, (REPOSITORY / "Dockerfile").read_text(), own_image.kept().name)
    kept = folder / "own-image" / f"{_key(parts)}.tar"
    if kept.exists():
        return kept
    building = fresh(kept)
    (building / "engine").mkdir()
    with bare_engine(building / "engine") as client:
        own_image.build(client, building / "context")
        with (building / "image.tar").open("wb") as file:
            file.writelines(client.images.get(own_image.IMAGE).save(named=True))
    (building / "image.tar").rename(kept)
    shutil.rmtree(building)
    return kept


def fresh(kept: Path) -> Path:
    """Return an empty folder beside it, to be renamed when it is complete."""
    building = kept.with_name(kept.name + ".building")
    shutil.rmtree(building, ignore_errors=True)
    building.mkdir(parents=True)
    return building


def _key(parts: tuple[str, ...]) -> str:
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:12]
