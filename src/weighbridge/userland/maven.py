"""Builds and caches the jars of our own Maven projects, with the user's Maven configuration."""

import shutil
from collections.abc import Callable, Iterable
from pathlib import Path

from weighbridge import build_once
from weighbridge.errors import UserlandError
from weighbridge.linux.deletion import OwnFolder, remove_tree
from weighbridge.linux.packages import install_here
from weighbridge.linux.process import run
from weighbridge.model.by_hand import Build
from weighbridge.model.command import Command
from weighbridge.userland.compiled import project_folders

PROJECTS = project_folders("pom.xml")
BUILD_DEADLINE_S = 900.0
_OPTIONS = ("--batch-mode", "--no-transfer-progress", "--errors")
_NEEDED = ("mvn", "javac")


def key_of(project: str) -> str:
    """Return the name under which a project's jars are cached, by its pom and its sources. Raises UserlandError."""
    if project not in PROJECTS:
        raise UserlandError(f"there is no Maven project '{project}'")
    return build_once.key_of_folder(PROJECTS[project])


def cached(project: str, cache: Path) -> Path | None:
    """Return the folder with the project's built jars, which has the project's name, or None."""
    folder = cache / "jars" / key_of(project) / project
    return folder if folder.is_dir() else None


def cannot_build(projects: Iterable[str], cache: Path) -> tuple[str, str] | None:
    """Return why uncached jars cannot be built, and a remedy; None if they can."""
    if all(cached(project, cache) is not None for project in projects):
        return None
    missing = [program for program in _NEEDED if shutil.which(program) is None]
    if not missing:
        return None
    programs = f"{' and '.join(missing)}, which {'build' if len(missing) > 1 else 'builds'} the Java workloads,"
    return f"{programs} {'are' if len(missing) > 1 else 'is'} not installed", install_here(_NEEDED)


def ensure(project: str, cache: Path, say: Callable[[str], None]) -> Path:
    """Return the folder with the project's jars, built if needed.

    Raises Unavailable without Maven or a JDK, UserlandError if the build fails, DiskFull.
    """
    return build_once.ensure(
        cache / "jars",
        key_of(project),
        f"the jars of {project}",
        lambda: cached(project, cache),
        lambda: cannot_build([project], cache),
        say,
        lambda work: _build(project, work),
    )


def versions(jars: Path) -> dict[str, str]:
    """Return jar -> version, from Maven's file names such as coherence-22.06.15.jar."""
    names = (path.stem for path in sorted(jars.glob("*.jar")))
    split = (_name_and_version(name) for name in names)
    return {f"{name} (jar)": version for name, version in split}


def _name_and_version(stem: str) -> tuple[str, str]:
    """Return name and version: javassist-3.29.2-GA -> javassist, 3.29.2-GA. The first part with a digit begins it."""
    parts = stem.split("-")
    first = next((place for place, part in enumerate(parts) if place and part[:1].isdigit()), len(parts))
    return "-".join(parts[:first]), "-".join(parts[first:])


def by_hand(project: str) -> Build:
    """Return how an image builds a project's jars."""
    command = ("mvn", *_OPTIONS, "package")
    packages = ("ca-certificates", "default-jdk-headless", "maven")
    files = build_once.files_below(PROJECTS[project])
    return Build(project, packages, files, (command,), "target/jars", f"/opt/{project}")


def _build(project: str, work: Path) -> None:
    source = work / "source"
    shutil.copytree(PROJECTS[project], source)
    argv = ("setpriv", "--pdeathsig", "KILL", "--", "mvn", *_OPTIONS,
            f"--file={source / 'pom.xml'}", "package")  # fmt: skip
    completed = run(Command(argv, BUILD_DEADLINE_S))
    if completed.timed_out:
        raise UserlandError.too_slow("mvn", BUILD_DEADLINE_S)
    if completed.returncode != 0:
        errors = [line for line in completed.text.splitlines() if line.startswith("[ERROR]")] or [
            completed.last_words
        ]
        raise UserlandError(f"mvn failed: {errors[0].removeprefix('[ERROR]').strip()}")
    (source / "target" / "jars").rename(work / project)
    remove_tree(OwnFolder.of(work, "source"))
