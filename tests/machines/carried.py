"""What a machine without a network is given on a second disk: wheels of the dependencies and a small userland."""

import hashlib
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

from weighbridge import registry
from weighbridge.model.userland import UserlandSpec
from weighbridge.userland.build import ensure, key_of

REPOSITORY = Path(__file__).parents[2]
PYTHONS = {"bookworm": "3.11", "trixie": "3.13", "sid": "3.14"}
WORKLOADS = ("iperf3", "sysbench-cpu")
"""What the studies of tests/machines measure with: one userland has the programs of both."""

_PLATFORMS = ("manylinux_2_28", "manylinux_2_17", "manylinux2014", "manylinux_2_12", "manylinux_2_5", "manylinux1")


def dependencies(folder: Path, python: str, machine: str = "x86_64") -> Path:
    """Return a folder with the wheels of the dependencies, in the tested versions, for a version of Python."""
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]
    constraints = REPOSITORY / "constraints.txt"
    parts = (*project["dependencies"], constraints.read_text(), python, machine)
    kept = folder / "wheels" / f"{python}-{machine}-{_key(parts)}"
    if kept.exists():
        return kept
    building = _fresh(kept)
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--only-binary=:all:", "--python-version", python]
    command += [f"--platform={name}_{machine}" for name in _PLATFORMS]
    subprocess.run([*command, "-c", constraints, "-d", building, *project["dependencies"]], check=True)
    building.rename(kept)
    return kept


def wheel(folder: Path) -> Path:
    """Return Weighbridge's own wheel, built anew of this checkout."""
    target = folder / "wheels" / "weighbridge"
    shutil.rmtree(target, ignore_errors=True)
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", target, REPOSITORY]
    subprocess.run(command, check=True)
    (built,) = target.glob("weighbridge-*.whl")
    return built


def disk(folder: Path, suite: str) -> Path:
    """Return the image of the disk with `wheels/` and `userlands/KEY` for the suite's machine."""
    spec = UserlandSpec.union(registry.workloads()[kind].userland() for kind in WORKLOADS)
    userland = ensure(spec, folder / "cache", print).root.parent
    wheels = dependencies(folder, PYTHONS[suite])
    kept = folder / "carried" / f"{wheels.name}-{key_of(spec)}.ext4"
    if kept.exists():
        return kept
    content = _fresh(kept.with_suffix(".content"))
    building = kept.with_suffix(".building")
    shutil.copytree(wheels, content / "wheels")
    (content / "userlands").mkdir()
    subprocess.run(["cp", "-a", "--reflink=auto", userland, content / "userlands"], check=True)
    subprocess.run(["truncate", "--size", "2G", building], check=True)
    subprocess.run(["mke2fs", "-q", "-t", "ext4", "-d", content, building], check=True)
    shutil.rmtree(content)
    building.rename(kept)
    return kept


def _fresh(kept: Path) -> Path:
    building = kept.with_name(kept.name + ".building")
    shutil.rmtree(building, ignore_errors=True)
    building.mkdir(parents=True)
    return building


def _key(parts: tuple[str, ...]) -> str:
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:12]
