"""Builds Weighbridge's own programs from project folders, once each: the common part of all languages."""

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
    """Return the name of a project's program."""
    return f"weighbridge-{project}"


@dataclass(frozen=True, slots=True)
class Compiler:
    """A language's compiler; ``key_of`` and ``build`` are functions for its projects.

    ``builds`` describes its products. ``reason`` selects the most useful line of its error messages.
    """

    program: str
    builds: str
    missing: Callable[[], Sequence[str]]
    """Returns the missing programs and files, by their names in `weighbridge.linux.packages`."""
    key_of: Callable[[str], str]
    """Returns the name under which a project's program is cached."""
    build: Callable[[str, Path], None]
    """Builds a project's program in a folder."""
    reason: Callable[[str], str]
    deadline_s: float
    variables: Mapping[str, str] = field(default_factory=dict)

    def cached(self, project: str, cache: Path) -> Path | None:
        """Return the project's built program, or None."""
        program = cache / "programs" / self.key_of(project) / program_of(project)
        return program if program.is_file() else None

    def cannot_build(self, projects: Iterable[str], cache: Path) -> tuple[str, str] | None:
        """Return why uncached programs cannot be built, and a remedy; None if they can."""
        if not (missing := self.missing()) or all(self.cached(each, cache) is not None for each in projects):
            return None
        return f"{missing[0]}, which builds {self.builds}, is not installed", install_here(missing)

    def ensure(self, project: str, cache: Path, say: Callable[[str], None]) -> Path:
        """Return the project's program, built if needed.

        Raises Unavailable without the compiler, UserlandError if the build fails, DiskFull.
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
        """Return the compiler's output in a folder, called ``what`` in errors; go's own option needs 1.20."""
        argv = ("setpriv", "--pdeathsig", "KILL", "--", "env", f"--chdir={folder}", self.program, *arguments)
        completed = run(Command(argv, self.deadline_s, self.variables))
        if completed.timed_out:
            raise UserlandError.too_slow(what, self.deadline_s)
        if completed.returncode != 0:
            raise UserlandError(f"{what} failed: {self.reason(completed.stderr.decode(errors='replace'))}")
        return completed.text
