"""Builds and caches the programs of the projects below ``weighbridge/golang``, with Go as its user has set it up."""

import shutil
from collections.abc import Callable, Iterable
from pathlib import Path

from weighbridge import build_once
from weighbridge.errors import UserlandError
from weighbridge.linux.process import run
from weighbridge.model.by_hand import Build
from weighbridge.model.command import Command

PROJECTS = Path(__file__).parent.parent / "golang"
BUILD_DEADLINE_S = 900.0
_ENV = {"CGO_ENABLED": "0", "GOTOOLCHAIN": "local", "GOWORK": "off"}
"""One static file; Go itself is never fetched, and no workspace of the user's has a say. Proxies stay the user's."""
_OPTIONS = ("-mod=readonly", "-trimpath", "-buildvcs=false", "-ldflags=-s -w")
_CONTENTS = "contents"
"""Beside the program: what it was built from and by, as ``go version -m`` tells it."""


def program_of(project: str) -> str:
    """The name of a project's program."""
    return f"weighbridge-{project}"


def key_of(project: str) -> str:
    """The name under which a program is cached: what its sources, go.mod and go.sum say. Raises UserlandError."""
    folder = PROJECTS / project
    if not (folder / "go.mod").is_file():
        raise UserlandError(f"there is no Go project '{project}'")
    return build_once.key_of_folder(folder)


def cached(project: str, cache: Path) -> Path | None:
    """The project's built program, or None."""
    program = cache / "programs" / key_of(project) / program_of(project)
    return program if program.is_file() else None


def cannot_build(projects: Iterable[str], cache: Path) -> tuple[str, str] | None:
    """Why the programs that are not cached yet cannot be built, and what helps; None where all is well."""
    if shutil.which("go") is not None or all(cached(project, cache) is not None for project in projects):
        return None
    return "go, which builds a load generator, is not installed", "apt-get install golang-go"


def ensure(project: str, cache: Path, say: Callable[[str], None]) -> Path:
    """The project's program, built if need be.

    Raises Unavailable without Go, UserlandError where the build fails, DiskFull.
    """
    return build_once.ensure(
        cache / "programs",
        key_of(project),
        program_of(project),
        lambda: cached(project, cache),
        lambda: cannot_build([project], cache),
        say,
        lambda work: _build(project, work),
    )


def versions(program: Path) -> dict[str, str]:
    """The version of each Go module in a built program, and of the Go that built it."""
    return versions_in((program.parent / _CONTENTS).read_text())


def versions_in(contents: str) -> dict[str, str]:
    """The same from what ``go version -m`` printed: ``PROGRAM: go1.22.1``, then lines ``dep PATH VERSION SUM``.

    A module's name is its path.
    """
    first, *lines = contents.splitlines() or [""]
    found = {"go (compiler)": first.rpartition(": go")[2]}
    for line in lines:
        kind, _, rest = line.strip().partition("\t")
        if kind == "dep":
            path, version, *_ = *rest.split("\t"), ""
            found[f"{path} (Go module)"] = version
    return found


def by_hand(project: str, place: str) -> Build:
    """How an image builds a project's program, for the folder ``place``."""
    folder, program = PROJECTS / project, program_of(project)
    variables = tuple(f"{name}={value}" for name, value in _ENV.items())
    command = ("env", *variables, "go", "build", *_OPTIONS, "-o", program, ".")
    packages = ("ca-certificates", "golang-go")
    return Build(project, packages, build_once.files_below(folder), (command,), program, f"{place}/{program}")


def _build(project: str, work: Path) -> None:
    """The sources are only read, where they are; the modules are those that go.sum names."""
    program = work / program_of(project)
    _go(project, "build", *_OPTIONS, "-o", str(program), ".")
    contents = _go(project, "version", "-m", str(program)).replace(str(program), program.name)
    (work / _CONTENTS).write_text(contents)


def _go(project: str, *arguments: str) -> str:
    """What go printed. It is not told its folder by an option, which Go has since 1.20 only."""
    argv = ("setpriv", "--pdeathsig", "KILL", "--", "env", f"--chdir={PROJECTS / project}", "go", *arguments)
    completed = run(Command(argv, BUILD_DEADLINE_S, _ENV))
    if completed.timed_out:
        raise UserlandError(f"go {arguments[0]} did not end within {BUILD_DEADLINE_S / 60:.0f} minutes")
    if completed.returncode != 0:
        raise UserlandError(f"go {arguments[0]} failed: {reason(completed.stderr.decode(errors='replace'))}")
    return completed.text


def reason(stderr: str) -> str:
    """The line of go's complaints that says why: not what it downloads, and not which package it is about."""
    lines = [line.strip() for line in stderr.splitlines() if line.strip()]
    told = [line for line in lines if not line.startswith(("#", "go: downloading", "go: finding"))]
    old = [line for line in told if line.startswith("note: module requires")]  # the errors before it come of that
    return (old or told or lines or ["it printed nothing"])[0][:300]
