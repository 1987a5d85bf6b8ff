#!/usr/bin/env python3
"""Build a release into dist/: wheels with the launcher, the source archive, checksums, the section of the changelog.

`make dist` runs it. Everything is checked as it will be installed, nothing is uploaded. The same commit and compilers
give the same bytes: times in the files are the commit's (SOURCE_DATE_EPOCH, where it is not set).
"""

import argparse
import hashlib
import os
import platform
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import tomllib
import zipfile
from collections.abc import Mapping
from pathlib import Path

from packaging.metadata import Metadata

ROOT = Path(__file__).parents[1]
MACHINES = {"x86_64": 62, "aarch64": 183}
"""The processors that there are wheels for, each with its number in the header of an ELF file."""
CHECKSUMS, CHANGES = "SHA256SUMS", "CHANGES.md"
_PROGRAM_HEADER, _INTERPRETER = 56, 3


class ReleaseError(Exception):
    """Why there is no release, in a sentence."""


def main() -> int:
    """Build, check and describe a release. Returns the exit code."""
    parser = argparse.ArgumentParser(description="Build and check wheels, source archive, checksums and changelog.")
    parser.add_argument("--out", type=Path, default=ROOT / "dist", help="the folder, which is emptied first")
    parser.add_argument("--machines", default=",".join(MACHINES), help="the processors to build wheels for")
    parser.add_argument("--dirty", action="store_true", help="also of what is not committed")
    options = parser.parse_args()
    try:
        print(release(options.out.absolute(), options.machines.split(","), dirty=options.dirty))
    except ReleaseError as error:
        print(f"dist: {error}", file=sys.stderr)
        return 1
    return 0


def release(out: Path, machines: list[str], *, dirty: bool) -> str:
    """Build a release into a folder and return its description. Raises ReleaseError."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    if unknown := [machine for machine in machines if machine not in MACHINES]:
        raise ReleaseError(f"there are no wheels for {unknown[0]}: name some of {', '.join(MACHINES)}")
    for machine in machines:
        compiler = "cc" if machine == platform.machine() else f"{machine}-linux-gnu-gcc"
        if shutil.which(compiler) is None:
            package = "gcc libc6-dev" if compiler == "cc" else f"gcc-{machine}-linux-gnu"
            raise ReleaseError(
                f"{compiler} is not installed, which compiles the launcher for {machine}: install it (Debian: "
                f"{package}), or build without that wheel (--machines)"
            )
    if not dirty and (changed := _run("git", "status", "--porcelain").splitlines()):
        raise ReleaseError(
            f"{len(changed)} files are not committed, such as {changed[0][3:]}: commit them, or --dirty"
        )
    variables = {"SOURCE_DATE_EPOCH": _run("git", "log", "-1", "--format=%ct").strip(), **os.environ}
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    with tempfile.TemporaryDirectory(prefix="weighbridge-dist-") as work:
        _build("sdist", ROOT, out, variables)
        (archive,) = out.glob("*.tar.gz")
        with tarfile.open(archive) as packed:
            packed.extractall(work, filter="data")
        (source,) = Path(work).iterdir()
        for machine in machines:  # of the archive, so that it has all that a wheel is built of
            _build("wheel", source, out, {**variables, "WEIGHBRIDGE_WHEEL": machine})
    files = sorted((*out.glob("*.whl"), archive))
    launchers = {machine: _checked(out, machine, project["version"]) for machine in machines}
    (out / CHECKSUMS).write_text("".join(f"{_sha256(file.read_bytes())}  {file.name}\n" for file in files))
    title, changes = changelog_section((ROOT / "CHANGELOG.md").read_text(), project["version"])
    (out / CHANGES).write_text(changes)
    lines = [f"weighbridge {project['version']} is in {out}:"]
    lines += [f"  {file.stat().st_size / 1e6:6.2f} MB  {file.name}" for file in files]
    lines += [f"launcher for {machine}: {digest}" for machine, digest in launchers.items()]
    lines += [f"{CHECKSUMS}: checksums; {CHANGES}: the changelog's section {title}"]
    if not project.get("urls"):
        lines += ["pyproject.toml names no URLs: a package index will show no link to the project"]
    if title != f"[{project['version']}]":
        lines += [f"CHANGELOG.md has no section of {project['version']}: name it before the release"]
    lines += ["nothing was uploaded; what uploads it: twine upload FILES"]
    return "\n".join(lines)


def changelog_section(changelog: str, version: str) -> tuple[str, str]:
    """Return the title and the text of a version's section, or of what is unreleased. Raises ReleaseError."""
    parts = re.split(r"^## (\[[^\]]+\]).*$", changelog, flags=re.MULTILINE)
    sections = dict(zip(parts[1::2], (text.strip() + "\n" for text in parts[2::2]), strict=True))
    for title in (f"[{version}]", "[Unreleased]"):
        if sections.get(title, "").strip():
            return title, sections[title]
    raise ReleaseError(f"CHANGELOG.md has a section neither of {version} nor of what is unreleased")


def launcher_in(wheel: Path) -> tuple[str, bytes]:
    """Return the launcher of a wheel: its path and bytes. Raises ReleaseError where there is not just one."""
    with zipfile.ZipFile(wheel) as packed:
        names = [name for name in packed.namelist() if name.startswith("weighbridge/launcher/built/")]
        if len(names) != 1:
            raise ReleaseError(f"{wheel.name} has {len(names)} launchers")
        return names[0], packed.read(names[0])


def is_static(program: bytes) -> bool:
    """Whether a 64-bit ELF program of little-endian numbers names no dynamic loader (elf(5): no PT_INTERP)."""
    first, count = int.from_bytes(program[32:40], "little"), int.from_bytes(program[56:58], "little")
    headers = [program[at : at + 4] for at in range(first, first + count * _PROGRAM_HEADER, _PROGRAM_HEADER)]
    return _INTERPRETER not in [int.from_bytes(header, "little") for header in headers]


def _checked(out: Path, machine: str, version: str) -> str:
    """Return the digest of the launcher in a machine's wheel, as it is installed. Raises ReleaseError."""
    (wheel,) = out.glob(f"*_{machine}.whl")
    path, program = launcher_in(wheel)
    if program[:6] != b"\x7fELF\x02\x01" or int.from_bytes(program[18:20], "little") != MACHINES[machine]:
        raise ReleaseError(f"the launcher of {wheel.name} is no program for {machine}")
    if not is_static(program):
        raise ReleaseError(f"the launcher of {wheel.name} is not linked statically")
    digest = _sha256(program)[:16]
    _check_metadata(wheel, version)
    with tempfile.TemporaryDirectory(prefix="weighbridge-dist-") as folder:
        with zipfile.ZipFile(wheel) as packed:
            packed.extractall(folder)  # noqa: S202 - we built it
        ask = "import sys; from weighbridge.launcher import build; print(build.source_key(sys.argv[1]), build.NAME)"
        variables = {"PYTHONPATH": folder, "PATH": "/nonexistent", "HOME": folder}
        words = _run(sys.executable, "-S", "-c", ask, machine, env=variables).split()
        if path != f"weighbridge/launcher/built/{'/'.join(words)}":
            raise ReleaseError(f"{wheel.name} has a launcher that its own code will not find: {path}")
        if machine == platform.machine():
            said = _run(sys.executable, "-S", "-m", "weighbridge", "--version", env=variables)
            if not said.startswith(f"weighbridge {version}\nlauncher {digest} "):
                raise ReleaseError(f"{wheel.name} says of itself: {said}")
    return digest


def _check_metadata(wheel: Path, version: str) -> None:
    """Raise ReleaseError where a wheel's metadata breaks the specification, or is not this version's."""
    with zipfile.ZipFile(wheel) as packed:
        (name,) = [name for name in packed.namelist() if name.endswith(".dist-info/METADATA")]
        text = packed.read(name)
    try:
        metadata = Metadata.from_email(text)
    except ExceptionGroup as faults:
        raise ReleaseError(f"the metadata of {wheel.name}: {'; '.join(map(str, faults.exceptions))}") from faults
    if str(metadata.version) != version:
        raise ReleaseError(f"{wheel.name} is version {metadata.version}, not {version}")


def _build(kind: str, source: Path, out: Path, variables: Mapping[str, str]) -> None:
    _run(
        *(sys.executable, "-m", "build", "--no-isolation", f"--{kind}", "--outdir", str(out), str(source)),
        env=variables,
    )


def _sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def _run(*argv: str, env: Mapping[str, str] | None = None) -> str:
    """Return what a command prints. Raises ReleaseError with its last words."""
    done = subprocess.run(argv, cwd=ROOT, env=env, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise ReleaseError(f"{' '.join(argv[:5])} failed: {(done.stdout + done.stderr).strip()[-2000:]}")
    return done.stdout


if __name__ == "__main__":
    sys.exit(main())
