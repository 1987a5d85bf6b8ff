"""What the tests of a release share: ``scripts/dist.py`` as a module, and a new environment with its wheel."""

import importlib.util
import os
import platform
import subprocess
import sys
import venv
from pathlib import Path

ROOT = Path(__file__).parents[2]
MACHINE = platform.machine()


def script(name: str):
    """Return a module of the folder ``scripts``."""
    spec = importlib.util.spec_from_file_location(name, ROOT / "scripts" / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def wheel_in(folder: Path, machine: str = MACHINE) -> Path:
    (wheel,) = folder.glob(f"weighbridge-*_{machine}.whl")
    return wheel


def new_environment(folder: Path, wheel: Path) -> Path:
    """Return the program of a wheel, installed in a new virtual environment beside our own dependencies."""
    venv.create(folder, with_pip=False, symlinks=True)
    packages = folder / f"lib/python{sys.version_info.major}.{sys.version_info.minor}/site-packages"
    dependencies = [path for path in sys.path if path.endswith("site-packages")]
    (packages / "dependencies.pth").write_text("\n".join(dependencies))  # behind what is installed in it
    pip = [sys.executable, "-m", "pip", "--python", str(folder / "bin/python"), "--disable-pip-version-check"]
    must(*pip, "install", "--quiet", "--no-deps", "--no-index", "--ignore-installed", str(wheel))
    return folder / "bin/weighbridge"


def must(*argv: object, **options) -> str:
    done = run(*argv, **options)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def run(*argv: object, **options) -> "subprocess.CompletedProcess[str]":
    return subprocess.run([*map(str, argv)], capture_output=True, text=True, check=False, timeout=3000, **options)


def path_of(folder: Path, *programs: str) -> Path:
    """Return a folder with links to this machine's programs of these names alone: all of a PATH."""
    folder.mkdir()
    for program in programs:
        link = next(path for each in os.defpath.split(":") if (path := Path(each, program)).exists())
        (folder / program).symlink_to(link)
    return folder
