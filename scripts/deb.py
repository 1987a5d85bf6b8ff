#!/usr/bin/env python3
"""Build a Debian package into dist/: Weighbridge with the Python packages that it needs, for Debian's own Python.

`make deb` runs it. The packages come from the index, in the versions of constraints.txt: Debian has not all of them.
They are in /usr/lib/weighbridge, a virtual environment, where no other program sees them.
"""

import argparse
import gzip
import os
import platform
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Mapping
from pathlib import Path

ROOT = Path(__file__).parents[1]
ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}
HOME = Path("usr/lib/weighbridge")
_PLATFORMS = ("manylinux_2_28", "manylinux_2_17", "manylinux2014", "manylinux_2_12", "manylinux_2_5", "manylinux1")
_COMPLETIONS = {
    "bash": "usr/share/bash-completion/completions/weighbridge",
    "zsh": "usr/share/zsh/vendor-completions/_weighbridge",
    "fish": "usr/share/fish/vendor_completions.d/weighbridge.fish",
}
_PROGRAM = f"""#!/{HOME}/bin/python3
import sys

from weighbridge.__main__ import main

sys.exit(main())
"""
_CONTROL = """Package: weighbridge
Version: {version}
Architecture: {architecture}
Maintainer: {maintainer}
Installed-Size: {size}
Depends: python3 (>= {python}~), python3 (<< {next_python}~), libc6, libstdc++6, util-linux, iproute2
Recommends: docker.io | podman, ethtool, iptables, nftables
Suggests: mmdebstrap
Section: utils
Priority: optional
Description: {summary}
 {text}
"""
_COPYRIGHT = """Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/

Files: *
Copyright: the Weighbridge authors
License: MIT

Files: /{home}/lib/*/site-packages/*
Copyright: their authors
License: see the folders NAME.dist-info of each
Comment: These are the Python packages that Weighbridge needs, as the package index has them.

License: MIT
{licence}
"""
_SCRIPTS = {
    "postinst": f"#!/bin/sh\nset -e\n/{HOME}/bin/python3 -m compileall -q /{HOME}/lib || :\n",
    "prerm": f"#!/bin/sh\nset -e\nfind /{HOME} -depth -type d -name __pycache__ -exec rm -r {{}} +\n",
}


def main() -> int:
    """Build the package. Returns the exit code."""
    parser = argparse.ArgumentParser(description="Build a Debian package of this checkout.")
    parser.add_argument("--out", type=Path, default=ROOT / "dist", help="the folder that it is written to")
    parser.add_argument(
        "--python", default="3.11", help="the version of Debian's Python: 3.11 of Debian 12, 3.13 of 13"
    )
    options = parser.parse_args()
    for program in ("dpkg-deb", "git"):
        if shutil.which(program) is None:
            print(f"deb: {program} is not installed: it takes Debian, or one of its kin", file=sys.stderr)
            return 1
    try:
        package = build(options.out.absolute(), options.python)
    except subprocess.CalledProcessError as error:
        print(f"deb: {' '.join(map(str, error.cmd[:6]))} failed: {(error.stderr or '')[-2000:]}", file=sys.stderr)
        return 1
    print(f"{package}: {package.stat().st_size / 1e6:.0f} MB; installed by: apt-get install ./{package.name}")
    return 0


def build(out: Path, python: str) -> Path:
    """Return the package for a version of Python, on this machine's processor. Raises CalledProcessError."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    machine = platform.machine()
    architecture = ARCHITECTURES[machine]
    version = f"{project['version']}-1~py{python}"
    committed = _run("git", "log", "-1", "--format=%ct").strip()
    variables = {"SOURCE_DATE_EPOCH": committed, **os.environ}
    out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="weighbridge-deb-") as work:
        stage = Path(work, "stage")
        _install(Path(work, "wheel"), stage / HOME, machine, python, variables)
        _write(stage / "usr/bin/weighbridge", _PROGRAM, 0o755)
        for name, content in _documents().items():
            _write(stage / name, content)
        for shell, name in _COMPLETIONS.items():
            _write(stage / name, _completion(shell))
        size = sum(path.lstat().st_size for path in stage.rglob("*")) // 1024
        major, minor = python.split(".")
        control = _CONTROL.format(
            version=version, architecture=architecture, maintainer=project["authors"][0]["name"], size=size,
            python=python, next_python=f"{major}.{int(minor) + 1}", summary="what does isolation cost?",
            text=project["description"],
        )  # fmt: skip
        _write(stage / "DEBIAN/control", control)
        for name, text in _SCRIPTS.items():
            _write(stage / "DEBIAN" / name, text, 0o755)
        package = out / f"weighbridge_{version}_{architecture}.deb"
        _run("dpkg-deb", "--root-owner-group", "-Zzstd", "--build", str(stage), str(package), env=variables)
    return package


def _install(wheels: Path, home: Path, machine: str, python: str, variables: Mapping[str, str]) -> None:
    """Make a virtual environment for Debian's Python with our wheel and what it needs."""
    words = (sys.executable, "-m", "build", "--no-isolation", "--wheel", "--outdir", str(wheels), str(ROOT))
    _run(*words, env={**variables, "WEIGHBRIDGE_WHEEL": machine})
    packages = home / f"lib/python{python}/site-packages"
    _run(
        *(sys.executable, "-m", "pip", "install", "--quiet", "--no-compile", "--disable-pip-version-check"),
        *("--target", str(packages), "--python-version", python, "--only-binary=:all:"),
        *(f"--platform={name}_{machine}" for name in _PLATFORMS),
        *("--constraint", str(ROOT / "constraints.txt"), *map(str, wheels.iterdir())),
    )
    for name in ("bin", "share"):
        shutil.rmtree(packages / name, ignore_errors=True)
    (home / "bin").mkdir()
    (home / "bin/python3").symlink_to(f"/usr/bin/python{python}")
    _write(home / "pyvenv.cfg", f"home = /usr/bin\ninclude-system-site-packages = false\nversion = {python}\n")


def _documents() -> dict[str, bytes | str]:
    changes = (ROOT / "CHANGELOG.md").read_bytes()
    licence = "\n".join(f" {line or '.'}" for line in (ROOT / "LICENSE").read_text().splitlines())
    return {
        "usr/share/man/man1/weighbridge.1.gz": gzip.compress((ROOT / "docs/weighbridge.1").read_bytes(), 9, mtime=0),
        "usr/share/doc/weighbridge/changelog.gz": gzip.compress(changes, 9, mtime=0),
        "usr/share/doc/weighbridge/copyright": _COPYRIGHT.format(home=HOME, licence=licence),
    }


def _completion(shell: str) -> str:
    """Return the script of a shell, as the program prints it."""
    ask = "import sys; sys.argv = ['weighbridge']; from weighbridge.cli.app import main; main()"
    variables = {**os.environ, "_WEIGHBRIDGE_COMPLETE": f"source_{shell}", "PYTHONDONTWRITEBYTECODE": "1"}
    code = str(ROOT / "src")  # with our own dependencies: those of the package may be for another Python
    return _run(sys.executable, "-c", ask, env={**variables, "PYTHONPATH": code}).lstrip()


def _write(path: Path, content: str | bytes, mode: int = 0o644) -> None:
    path.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    path.chmod(mode)


def _run(*argv: str, env: Mapping[str, str] | None = None) -> str:
    return subprocess.run(argv, cwd=ROOT, env=env, capture_output=True, text=True, check=True).stdout


if __name__ == "__main__":
    os.umask(0o022)
    sys.exit(main())
