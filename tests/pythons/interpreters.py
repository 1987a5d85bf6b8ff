"""Interpreters of other versions: Debian's in folders of their own, or one that is on this machine.

Each has Weighbridge's dependencies, of the versions in constraints.txt, in a virtual environment that is built once
and kept in the user's cache under a key of all that went into it. A chroot lacks this machine's certificates, so that
packages are gathered outside, as wheels of that version, and installed inside without a network.
"""

import hashlib
import os
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from downloads import download
from weighbridge import build_once

SOURCE = Path(__file__).parents[2]
CACHE = Path.home() / ".cache/weighbridge/systems"
SUITES = {"3.11": "bookworm", "3.13": "trixie", "3.14": "sid"}
"""Which of Debian's suites has a version."""
VERSIONS = ("3.11", "3.12", "3.13", "3.14")
NOT_NEEDED = {
    *("build", "ruff", "mypy", "types-docker", "types-requests", "scipy-stubs", "playwright"),
    *("sphinx", "myst-parser", "furo"),
}
"""Tools of `make check`, `make docs` and `make dist`, and a browser."""
BUILD = ("hatchling",)
"""What our own package is built with."""
_NOT_SIGNED_LATELY = '--aptopt=Acquire::Check-Valid-Until "false"'
"""A mirror may be a snapshot, whose list of packages has outlived its date."""
PIP = ("-m", "pip", "--disable-pip-version-check", "--quiet")
PYENV = ".pyenv/versions/{0}.*/bin/python{0}"
_RECIPE = 1
"""Counts changes of how such a folder is built."""
_ENTER = """set -e; root=$1 source=$2 temporary=$3; shift 3
mount -t proc proc "$root/proc"; mount --rbind /dev "$root/dev"; mount --rbind /sys "$root/sys"
mount --bind "$source" "$root/src"; mount -o remount,bind,ro "$root/src"; mount --bind "$temporary" "$root/tmp"
exec chroot "$root" env -C /src "$@"
"""
"""In a mount namespace of its own: nothing stays mounted."""
DEADLINE_S = 900.0


@dataclass(frozen=True)
class Interpreter:
    """A Python with our dependencies, and Weighbridge installed for it in a folder."""

    folder: Path
    """Where it is kept."""
    chrooted: bool
    temporary: Path
    """Its /tmp, with Weighbridge in ``project``."""

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run Python with these arguments in our source tree; gives exit code and output."""
        temporary = self._seen(self.temporary, "/tmp")
        argv: tuple[str, ...] = (str(self.folder / "venv/bin/python"), *arguments)
        if self.chrooted:
            enter = ("unshare", "--mount", "--pid", "--fork", "--kill-child", "sh", "-c", _ENTER, "enter")
            where = (str(self.folder / "root"), str(SOURCE), str(self.temporary))
            argv = (*enter, *where, "/venv/bin/python", *arguments)
        variables = {
            "PYTHONPATH": f"{temporary}/project", "HOME": temporary, "TMPDIR": temporary, "LANG": "C.UTF-8",
            "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
        }  # fmt: skip
        return subprocess.run(
            argv, cwd=SOURCE, env=variables, capture_output=True, text=True, timeout=DEADLINE_S, check=False
        )

    def install(self) -> subprocess.CompletedProcess[str]:
        """Install Weighbridge as a package of it: pip refuses a Python that pyproject.toml excludes."""
        return self.run(
            *(*PIP, "install", "--no-index", "--no-deps", "--no-build-isolation", "--no-compile"),
            *("--root-user-action=ignore", "--target", f"{self._seen(self.temporary, '/tmp')}/project"),
            self._seen(SOURCE, "/src"),
        )

    def _seen(self, outside: Path, inside: str) -> str:
        return inside if self.chrooted else str(outside)


def lacking(version: str) -> str:
    """Why a version cannot be tried here, or an empty text."""
    if version == f"{sys.version_info.major}.{sys.version_info.minor}":
        return f"the whole suite is run by Python {version}"
    if version in SUITES:
        if os.geteuid() != 0:
            return "a chroot needs root"
        return "" if shutil.which("mmdebstrap") else "needs mmdebstrap"
    return "" if next(_here(version), None) else f"Python {version} is not in PATH, pyenv or Debian"


def kept(version: str) -> Path:
    """The folder with this version and our dependencies, built if need be."""
    packages = _requirements()
    asked = (_RECIPE, version, SUITES.get(version), packages, (SOURCE / "constraints.txt").read_text())
    key = f"python-{version}-{hashlib.sha256(repr(asked).encode()).hexdigest()[:16]}"

    def cached() -> Path | None:
        return CACHE / key if (CACHE / key).exists() else None

    return build_once.ensure(
        CACHE, key, f"Python {version}", cached, lambda: None, print, lambda work: _build(work, version, packages)
    )


def _requirements() -> tuple[str, ...]:
    project = tomllib.loads((SOURCE / "pyproject.toml").read_text())["project"]
    named = (*project["dependencies"], *project["optional-dependencies"]["dev"])
    return tuple(each for each in named if re.split(r"[\s<>=!~;\[]", each)[0] not in NOT_NEEDED)


def _build(work: Path, version: str, packages: tuple[str, ...]) -> None:
    root, gathered = work / "root", work / "wheels"
    constraints = ("--constraint", str(SOURCE / "constraints.txt"))
    system = _system(root, SUITES[version]) if version in SUITES else None
    try:
        words = ("download", "--python-version", version, "--only-binary=:all:", "--dest", gathered, *constraints)
        download((sys.executable, *PIP, *words, *packages))
        if system is not None and system.wait(DEADLINE_S):
            raise RuntimeError(f"mmdebstrap failed: {system.communicate()[1][-1000:]}")
    finally:
        if system is not None:
            system.kill()
    if system is None:
        python, venv, wheels, enter = next(_here(version)), str(work / "venv"), str(gathered), ()
    else:
        python, venv, wheels, enter = "python3", "/venv", "/wheels", ("chroot", str(root))
        (root / "src").mkdir()
        gathered = gathered.rename(root / "wheels")
    shutil.copy(constraints[1], gathered / "constraints.txt")
    _must(*enter, python, "-m", "venv", venv)
    _must(
        *(*enter, f"{venv}/bin/python", *PIP, "install", "--root-user-action=ignore", "--no-index", "--no-compile"),
        *("--find-links", wheels, "--constraint", f"{wheels}/constraints.txt", *packages),
    )
    shutil.rmtree(gathered)


def _system(root: Path, suite: str) -> subprocess.Popen[str]:
    """Debian with Python is being installed in a folder."""
    argv = ("mmdebstrap", "--quiet", "--variant=apt", "--include=python3-venv", _NOT_SIGNED_LATELY, suite)
    return subprocess.Popen([*argv, str(root)], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)


def _here(version: str) -> Iterator[str]:
    """The interpreters of this version outside of Debian; one of pyenv may be a name that leads nowhere."""
    named = shutil.which(f"python{version}")
    for program in (*([named] if named else ()), *map(str, sorted(Path.home().glob(PYENV.format(version))))):
        told = subprocess.run([program, "--version"], capture_output=True, text=True, check=False)
        if told.returncode == 0 and told.stdout.startswith(f"Python {version}."):
            yield program


def _must(*argv: str) -> None:
    done = subprocess.run(argv, capture_output=True, text=True, timeout=DEADLINE_S, check=False)
    if done.returncode:
        raise RuntimeError(f"{' '.join(argv[:6])} ... failed: {done.stderr[-2000:]}")
