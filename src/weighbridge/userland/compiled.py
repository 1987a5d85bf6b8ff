"""Builds programs of our own, each once, from a project's folder: the part that all languages share."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from weighbridge import build_once
from weighbridge.errors import UserlandError
from weighbridge.linux.packages import install_here
from weighbridge.linux.process import run
from weighbridge.model.command import Command

_PACKAGE = Path(__file__).parent.parent


def project_folders(marker: str) -> dict[str, Path]:
    """Return the folders of our own projects that contain a file like ``marker``, by the project's name.

    A project that one workload uses is in ``workloads/NAME/programs``, every other one in ``userland/projects``.
    """
    folders = (*_PACKAGE.glob("workloads/*/programs/*"), *_PACKAGE.glob("userland/projects/*"))
    return {folder.name: folder for folder in sorted(folders) if any(folder.glob(marker))}


def program_of(project: str) -> str:
    """The name of a project's program."""
    return f"weighbridge-{project}"


@dataclass(frozen=True, slots=True)
class Compiler:
    """A language's compiler. ``builds``: what for, in words; ``key_of`` and ``build`` are those of its projects.

    ``reason``: the line of its complaints that says why.
    """

    program: str
    builds: str
    missing: Callable[[], Sequence[str]]
    """What it takes and is not installed: programs and files, by their names in `weighbridge.linux.packages`."""
    key_of: Callable[[str], str]
    """The name under which a project's program is cached."""
    build: Callable[[str, Path], None]
    """Builds a project's program in a folder."""
    reason: Callable[[str], str]
    deadline_s: float
    variables: Mapping[str, str] = field(default_factory=dict)

    def cached(self, project: str, cache: Path) -> Path | None:
        """The project's built program, or None."""
        program = cache / "programs" / self.key_of(project) / program_of(project)
        return program if program.is_file() else None

    def cannot_build(self, projects: Iterable[str], cache: Path) -> tuple[str, str] | None:
        """Why the programs that are not cached yet cannot be built, and what helps; None where all is well."""
        if not (missing := self.missing()) or all(self.cached(each, cache) is not None for each in projects):
            return None
        return f"{missing[0]}, which builds {self.builds}, is not installed", install_here(missing)

    def ensure(self, project: str, cache: Path, say: Callable[[str], None]) -> Path:
        """The project's program, built if need be.

        Raises Unavailable without the compiler, UserlandError where the build fails, DiskFull.
        """
        name = program_of(project)
        return build_once.ensure_file(
            cache / "programs" / self.key_of(project) / name,
            name,
            say,
            lambda work: self.build(project, work),
            lambda: self.cannot_build([project], cache),
        )

    def output(self, folder: Path, what: str, *arguments: str) -> str:
        """What the compiler printed in a folder; ``what`` it is called. It is an option of go's since 1.20."""
        argv = ("setpriv", "--pdeathsig", "KILL", "--", "env", f"--chdir={folder}", self.program, *arguments)
        completed = run(Command(argv, self.deadline_s, self.variables))
        if completed.timed_out:
            raise UserlandError.too_slow(what, self.deadline_s)
        if completed.returncode != 0:
            raise UserlandError(f"{what} failed: {self.reason(completed.stderr.decode(errors='replace'))}")
        return completed.text
