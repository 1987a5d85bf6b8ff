"""Builds and caches the programs of the projects below ``weighbridge/golang``, with the user's Go configuration."""

from pathlib import Path

from weighbridge import build_once
from weighbridge.errors import UserlandError
from weighbridge.linux.process import which
from weighbridge.model.by_hand import Build
from weighbridge.userland.compiled import Compiler, program_of

PROJECTS = Path(__file__).parent.parent / "golang"
BUILD_DEADLINE_S = 900.0
_ENV = {"CGO_ENABLED": "0", "GOTOOLCHAIN": "local", "GOWORK": "off"}
"""Variables for one static file, without downloads of Go and without a workspace. Proxies stay the user's."""
_OPTIONS = ("-mod=readonly", "-trimpath", "-buildvcs=false", "-ldflags=-s -w")
_CONTENTS = "contents"
"""The file with the modules and the Go version of a build, by ``go version -m``."""


def key_of(project: str) -> str:
    """Return the name under which a program is cached, by its sources, go.mod and go.sum. Raises UserlandError."""
    folder = PROJECTS / project
    if not (folder / "go.mod").is_file():
        raise UserlandError(f"there is no Go project '{project}'")
    return build_once.key_of_folder(folder)


def versions(program: Path) -> dict[str, str]:
    """Return the version of each Go module in a built program, and of its Go compiler."""
    return versions_in((program.parent / _CONTENTS).read_text())


def versions_in(contents: str) -> dict[str, str]:
    """Return `versions` from output of ``go version -m``: ``PROGRAM: go1.22.1``, then lines ``dep PATH VERSION SUM``.

    A module's name is its path.
    """
    first, *lines = contents.splitlines() or [""]
    version_by_name = {"go (compiler)": first.rpartition(": go")[2]}
    for line in lines:
        kind, _, rest = line.strip().partition("\t")
        if kind == "dep":
            path, version, *_ = *rest.split("\t"), ""
            version_by_name[f"{path} (Go module)"] = version
    return version_by_name


def by_hand(project: str, place: str) -> Build:
    """Return how an image builds a project's program, for the folder ``place``."""
    folder, program = PROJECTS / project, program_of(project)
    variables = tuple(f"{name}={value}" for name, value in _ENV.items())
    command = ("env", *variables, "go", "build", *_OPTIONS, "-o", program, ".")
    packages = ("ca-certificates", "golang-go")
    return Build(project, packages, build_once.files_below(folder), (command,), program, f"{place}/{program}")


def _build(project: str, work: Path) -> None:
    folder, program = PROJECTS / project, work / program_of(project)
    COMPILER.output(folder, "go build", "build", *_OPTIONS, "-o", str(program), ".")
    contents = COMPILER.output(folder, "go version", "version", "-m", str(program)).replace(
        str(program), program.name
    )
    (work / _CONTENTS).write_text(contents)


def reason(stderr: str) -> str:
    """Return the most useful line of go's error messages, without downloads and package names."""
    lines = [line.strip() for line in stderr.splitlines() if line.strip()]
    complaints = [line for line in lines if not line.startswith(("#", "go: downloading", "go: finding"))]
    old = [line for line in complaints if line.startswith("note: module requires")]  # it causes the errors before it
    return (old or complaints or lines or ["it printed nothing"])[0][:300]


def _missing() -> tuple[str, ...]:
    return () if which("go") else ("go",)


COMPILER = Compiler("go", "a load generator", _missing, key_of, _build, reason, BUILD_DEADLINE_S, _ENV)
cached, cannot_build, ensure = COMPILER.cached, COMPILER.cannot_build, COMPILER.ensure
