#!/usr/bin/env python3
"""Build Kubernetes' own programs, and kube-router, into the user's cache: once, for the cluster of the tests.

`make kubernetes` runs it. Versions are those of go.mod in the folders beside this file, sums those of go.sum.
Kubernetes names its parts at v0.0.0 and replaces them by folders of its repository; go.mod replaces each by the
release of the same number (v1.35.4 -> v0.35.4). kube-router enforces NetworkPolicy in tests, where Kubernetes itself
only accepts it; flaws of its security are known: it is no part of a real cluster.
"""

import re
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from weighbridge import build_once
from weighbridge.errors import UserlandError, WeighbridgeError
from weighbridge.linux.packages import install_here
from weighbridge.linux.process import output, run, which
from weighbridge.model.command import Command
from weighbridge.user_cache import user_cache_folder
from weighbridge.userland import golang

FOLDER = Path(__file__).parent
_DEADLINE_S, _ANSWER_S = 2 * 3600.0, 30.0
_COMPILER = replace(golang.COMPILER, deadline_s=_DEADLINE_S)
_OPTIONS = ("-mod=readonly", "-trimpath", "-buildvcs=false")
_GO = re.compile(r"^go ([0-9]+)\.([0-9]+)", re.MULTILINE)
_COMPONENT = "k8s.io/component-base/version"
_VERSION_OPTIONS = ("--version", "version --client")
_RECIPE = 1


@dataclass(frozen=True, slots=True)
class Project:
    """Programs of one Go module, which the folder of this name requires in one version."""

    name: str
    module: str
    programs: tuple[str, ...]
    variables: Callable[[str], Mapping[str, str]]
    """Variables that are linked in, by the version: else each program calls itself v0.0.0, or nothing."""

    @property
    def go_mod(self) -> str:
        """The text of its go.mod."""
        return (FOLDER / self.name / "go.mod").read_text()

    @property
    def version(self) -> str:
        """The version of the module that go.mod requires."""
        required = re.search(rf"^(?:require)?\s+{re.escape(self.module)} (v\S+)", self.go_mod, re.MULTILINE)
        if required is None:
            raise UserlandError(f"{FOLDER / self.name / 'go.mod'} does not require {self.module}")
        return required[1]

    @property
    def key(self) -> str:
        """The name under which its programs are cached: by go.mod, go.sum and how they are built."""
        return f"{self.name}-{build_once.key_of_folder(FOLDER / self.name)}-{_RECIPE}"

    def cached(self, cache: Path) -> Path | None:
        """Return the folder with its built programs, or None."""
        folder = cache / "programs" / self.key
        return folder if folder.is_dir() else None


def _kubernetes(version: str) -> Mapping[str, str]:
    major, minor, _ = version.removeprefix("v").split(".", 2)
    numbers = {"gitVersion": version, "gitMajor": major, "gitMinor": minor}
    return {f"{_COMPONENT}.{name}": value for name, value in numbers.items()}


def _kube_router(version: str) -> Mapping[str, str]:
    return {"github.com/cloudnativelabs/kube-router/v2/pkg/version.Version": version}


PROJECTS = (
    Project(
        "kubernetes",
        "k8s.io/kubernetes",
        ("kubectl", "kube-proxy", "kubelet", "kube-scheduler", "kube-controller-manager", "kube-apiserver"),
        _kubernetes,
    ),
    Project("kube-router", "github.com/cloudnativelabs/kube-router/v2", ("kube-router",), _kube_router),
)


def programs(cache: Path) -> dict[str, Path] | None:
    """Return each program's path by its name; None where one of them is not built."""
    paths: dict[str, Path] = {}
    for project in PROJECTS:
        if (folder := project.cached(cache)) is None:
            return None
        paths |= {program: folder / program for program in project.programs}
    return paths


def ensure(project: Project, cache: Path, say: Callable[[str], None]) -> Path:
    """Return the folder with a project's programs, built if need be.

    Raises Unavailable without a Go that is new enough, UserlandError where the build fails, DiskFull.
    """
    what = f"{', '.join(project.programs)} {project.version}"
    return build_once.ensure(
        cache / "programs",
        project.key,
        what,
        partial(project.cached, cache),
        partial(_lacking, project),
        say,
        partial(_build, project, say),
    )


def _lacking(project: Project) -> tuple[str, str] | None:
    """Return what is missing to build a project, and what helps."""
    least = _GO.search(project.go_mod)
    wanted = (int(least[1]), int(least[2])) if least else (1, 0)
    if which("go") is None:
        return f"Go {wanted[0]}.{wanted[1]}, which builds {project.name}, is not installed", install_here(["go"])
    version = output(("go", "env", "GOVERSION")) or ""
    numbers = re.match(r"go([0-9]+)\.([0-9]+)", version)
    if numbers is not None and (int(numbers[1]), int(numbers[2])) < wanted:
        why = f"{project.name} needs Go {wanted[0]}.{wanted[1]} or later, and this is {version}"
        return why, "put a newer one before it in PATH (https://go.dev/dl)"
    return None


def _build(project: Project, say: Callable[[str], None], work: Path) -> None:
    variables = " ".join(f"-X {name}={value}" for name, value in project.variables(project.version).items())
    for program in project.programs:
        package, file = f"{project.module}/cmd/{program}", work / program
        say(f"  {program}")
        options = (*_OPTIONS, f"-ldflags=-s -w {variables}", "-o", str(file), package)
        _COMPILER.output(FOLDER / project.name, f"go build {program}", "build", *options)
        _must_call_itself(file, project.version)


def _must_call_itself(program: Path, version: str) -> None:
    """Raise UserlandError for a program that starts under another version than it was built as, or not at all."""
    answers = [run(Command((str(program), *options.split()), _ANSWER_S)) for options in _VERSION_OPTIONS]
    if not any(version.encode() in each.stdout + each.stderr for each in answers if each.returncode == 0):
        raise UserlandError(f"{program.name} was built as {version} and says {answers[0].last_words!r}")


def main() -> int:
    """Build what is not there yet. Returns the exit code."""
    try:
        for project in PROJECTS:
            print(ensure(project, user_cache_folder(), lambda text: print(text, flush=True)))
    except WeighbridgeError as error:
        print(f"kubernetes: {error}", file=sys.stderr)
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main())
